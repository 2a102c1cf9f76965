// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include "harness/generators/drawing.h"

namespace gradguard::harness {
namespace {

/// On both sides of every constant of the geometry: warp, block, elements for a block, two and more blocks, where the
/// second stage wraps and where the number of blocks stops growing.
constexpr std::array<std::uint64_t, 59> kEdges{
    1,     2,     3,     4,     5,     7,      8,      15,     16,     17,     31,      32,      33,      63,     64,
    65,    127,   128,   129,   255,   256,    257,    511,    512,    513,    767,     769,     1023,    1024,   1025,
    1026,  2047,  2048,  2049,  3072,  3073,   4095,   4096,   4097,   5121,   8191,    8192,    8193,    16384,  16385,
    32769, 65535, 65536, 65537, 65793, 131073, 262143, 262144, 262145, 263169, 1048575, 1048576, 1048577, 1049601};

std::uint64_t edge_up_to(std::uint64_t most, Random& random) {
    const auto end = std::ranges::upper_bound(kEdges, most);
    const auto known = static_cast<std::uint64_t>(end - kEdges.begin());
    if (known == 0) return 0;
    // Half of the time one of the six greatest, so that many blocks are as frequent as the shape lets them be.
    const std::uint64_t last = std::min<std::uint64_t>(known, 6);
    return random.percent(50) ? kEdges[known - 1 - random.below(last)] : kEdges[random.below(known)];
}

std::uint64_t draw_total(const CaseShape& shape, Random& random) {
    const std::uint64_t most = shape.max_elements;
    if (shape.exact_group_elements) return most;
    std::uint64_t total = 0;
    const std::uint64_t kind = random.below(10);
    if (kind < 5) {
        total = edge_up_to(most, random);
    } else if (kind < 7) {
        total = random.below(most + 1);
    } else {
        const std::uint64_t up_to = most >> random.below(12);
        total = random.below(up_to + 1);
    }
    return std::clamp(total, std::min(shape.min_elements, most), most);
}

constexpr std::array<std::uint64_t, 12> kFactors{2, 3, 4, 5, 7, 8, 16, 31, 32, 64, 128, 256};

bool has_unit_dimension(const std::vector<std::uint64_t>& shape) { return std::ranges::find(shape, 1) != shape.end(); }

/// Any stride where none is read: dimensions of size 1, and every dimension of an empty tensor.
std::int64_t any_stride(Random& random) {
    constexpr std::array<std::int64_t, 6> kStrides{
        0, -1, 7, 1000003, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
    return random.pick(kStrides);
}

std::vector<std::int64_t> draw_strides(const std::vector<std::uint64_t>& shape, Random& random) {
    std::vector<std::int64_t> strides(shape.size());
    const bool empty = std::ranges::find(shape, 0) != shape.end();
    std::uint64_t dense = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = empty || shape[i] == 1 ? any_stride(random) : static_cast<std::int64_t>(dense);
        if (!empty) dense *= shape[i];
    }
    return strides;
}

}  // namespace

std::vector<std::uint64_t> draw_sizes(const CaseShape& shape, Random& random) {
    if (shape.operation == Operation::kUnguardedStep) return {draw_total(shape, random)};
    const bool free = shape.min_elements == 0 && !shape.exact_group_elements && !shape.balanced;
    if (free && random.percent(1)) return {};
    std::uint64_t left = draw_total(shape, random);
    const std::uint64_t most = std::max<std::uint32_t>(shape.max_entries, 1);
    const std::uint64_t entries = random.percent(35) ? 1 : 1 + random.below(most);
    std::vector<std::uint64_t> sizes;
    while (sizes.size() + 1 < entries) {
        const std::uint64_t kind = random.below(20);
        const std::uint64_t piece = kind < 3 ? 0 : kind < 14 ? edge_up_to(left, random) : random.below(left + 1);
        sizes.push_back(piece);
        left -= piece;
    }
    sizes.push_back(left);
    for (std::size_t i = sizes.size(); i-- > 1;) std::swap(sizes[i], sizes[random.below(i + 1)]);
    return sizes;
}

std::vector<std::uint64_t> draw_dimensions(std::uint64_t n, Random& random) {
    constexpr std::uint64_t kGreatest = 0xFFFFFFFFULL;
    std::vector<std::uint64_t> shape;
    if (n == 0) {
        switch (random.below(8)) {
            case 0:
                return {0, 3};
            case 1:
                return {3, 0};
            case 2:
                return {2, 0, 5};
            case 3:
                return {1, 0, 1};
            case 4:
                return {0, kGreatest};
            case 5:
                return {kGreatest, 0};
            default:
                return {0};
        }
    }
    const std::uint64_t kind = random.below(20);
    if (n == 1 && kind < 8) return {};
    shape = {n};
    for (int split = 0; kind >= 9 && split < 2; ++split) {
        const std::uint64_t factor = random.pick(kFactors);
        if (shape.back() % factor != 0 || random.percent(20)) continue;
        shape.back() /= factor;
        shape.insert(random.percent(50) ? shape.begin() : shape.end(), factor);
    }
    if (kind >= 15) {
        for (std::uint64_t units = 1 + random.below(2); units > 0; --units) {
            shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(random.below(shape.size() + 1)), 1);
        }
    }
    return shape;
}

void place(TensorRecipe& tensor, DType dtype, const std::vector<std::uint64_t>& shape, Random& random) {
    tensor.dtype = dtype;
    tensor.shape = shape;
    const bool free_strides = has_unit_dimension(shape) || std::ranges::find(shape, 0) != shape.end();
    if (random.percent(free_strides ? 50 : 8)) tensor.strides = draw_strides(shape, random);
    const std::uint64_t word = random.next();
    if (word % 2 == 0) return;
    tensor.byte_offset = element_bytes(dtype) * ((word >> 8U) % 3 != 0 ? 1 : (word >> 16U) % 65);
    tensor.slack_bytes = static_cast<std::int64_t>((word >> 32U) % 2 != 0 ? (word >> 40U) % 33 : 0);
}

}  // namespace gradguard::harness
