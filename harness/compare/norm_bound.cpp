// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/norm_bound.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/fp64/fp64_norm.h"
#include "reference/model/statistics.h"

namespace gradguard::harness {
namespace {

constexpr double kUnit = 0x1p-24;  // one rounding to nearest in FP32
constexpr double kOwn = 0x1p-50;   // FP64's own, over any sum of at most 2^32 terms
constexpr std::uint64_t kLanes = 256;

/// The 256 lanes of a block.
struct Lanes {
    std::array<float, kLanes> scale{};
    std::array<double, kLanes> sum{};
    std::array<double, kLanes> error{};

    void merge_into(std::size_t lane, const BoundNode& other) {
        const BoundNode node = merge_bounds({scale[lane], sum[lane], error[lane]}, other);
        scale[lane] = node.scale;
        sum[lane] = node.sum;
        error[lane] = node.error;
    }
    /// `live`: lanes from there on hold nothing.
    BoundNode reduce(std::size_t live) {
        for (std::size_t offset = kLanes / 2; offset != 0; offset /= 2) {
            const std::size_t end = live > offset ? std::min(offset, live - offset) : 0;
            for (std::size_t lane = 0; lane < end; ++lane) {
                merge_into(lane, {scale[lane + offset], sum[lane + offset], error[lane + offset]});
            }
        }
        return {scale[0], sum[0], error[0]};
    }
};

template <class Load>
BoundNode scan_block(const std::byte* data, std::uint64_t elements, float r, std::uint64_t block,
                     std::uint64_t blocks) {
    Lanes lanes;
    std::array<float, kLanes> row{};
    for (std::uint64_t first = block * kLanes; first < elements; first += kLanes * blocks) {
        const auto count = static_cast<std::size_t>(std::min(kLanes, elements - first));
        for (std::size_t t = 0; t < count; ++t) row[t] = Load::at(data, first + t);
        for (std::size_t t = 0; t < count; ++t) {
            const float value = reference::unscaled(row[t], r);
            const float magnitude = reference::is_bad(row[t], value) ? 0.0F : std::fabs(value);
            const double wide = magnitude;
            lanes.merge_into(t, {magnitude, wide * wide, 0.0});
        }
    }
    return lanes.reduce(static_cast<std::size_t>(std::min(kLanes, elements - block * kLanes)));
}

/// ceil(log2 n), n > 0.
std::uint64_t levels(std::uint64_t n) { return static_cast<std::uint64_t>(std::bit_width(n - 1)); }
std::uint64_t quotient_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

TreeBound tree_bound(const reference::GradientView& view, float r, std::uint32_t block_limit) {
    if (view.elements == 0) return {};
    const std::uint64_t blocks = reference::reduction_blocks(view.elements, block_limit);
    const auto* data = static_cast<const std::byte*>(view.data);
    const BoundNode root = reference::with_loader(view.dtype, [&](auto load) {
        using Load = decltype(load);
        if (blocks == 1) return scan_block<Load>(data, view.elements, r, 0, 1);
        Lanes lanes;
        for (std::uint64_t b = 0; b < blocks; ++b) {
            lanes.merge_into(b % kLanes, scan_block<Load>(data, view.elements, r, b, blocks));
        }
        return lanes.reduce(static_cast<std::size_t>(std::min(kLanes, blocks)));
    });
    return {root.sum, root.error};
}

double norm_error_bound(std::span<const TreeBound> tensors) {
    double sum = 0.0;
    double error = 0.0;
    for (const TreeBound& tensor : tensors) {
        sum += tensor.sum;
        // scale * scale is exact in FP64, times sumsq and the running sum are rounded.
        error = (error + tensor.error) * (1.0 + 0x1p-52) + 0x1p-52 * sum;
    }
    if (sum == 0.0) return 0.0;
    error += kOwn * sum;
    const double norm = std::sqrt(sum);
    return error / (norm + std::sqrt(std::max(sum - error, 0.0))) + kOwn * norm;
}

double closed_form_bound(std::uint64_t elements, std::uint32_t block_limit) {
    const std::uint64_t blocks = reference::reduction_blocks(elements, block_limit);
    std::uint64_t depth = quotient_up(elements, kLanes * blocks) - 1 + std::min<std::uint64_t>(8, levels(elements));
    if (blocks > 1) depth += quotient_up(blocks, kLanes) - 1 + std::min<std::uint64_t>(8, levels(blocks));
    const double k = 5.0 * static_cast<double>(depth) + 4.0;
    if (k * kUnit >= 1.0) return std::numeric_limits<double>::infinity();
    return k * kUnit / (1.0 - k * kUnit);
}

double any_order_bound(double exact, std::uint64_t elements, std::uint64_t tensors, float r, bool flushes) {
    // (1 + u)^k - 1, by the exponential: larger than it.
    const double roundings = 5.0 * static_cast<double>(elements) + 6.0 * static_cast<double>(tensors) + 8.0;
    double bound = exact * std::expm1(0.5 * roundings * kUnit + 2.0 * kUnit) * (1.0 + kOwn) + exact * kOwn;
    if (flushes) bound += std::sqrt(static_cast<double>(elements)) * 0x1p-126 * std::max(1.0, static_cast<double>(r));
    return bound;
}

}  // namespace gradguard::harness
