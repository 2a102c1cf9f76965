// SPDX-License-Identifier: Apache-2.0
#include "reference/model/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/fp64/coefficients.h"
#include "reference/fp64/fp64_norm.h"
#include "reference/fp64/self_check.h"
#include "reference/fp64/summary_rules.h"

namespace gradguard::reference {
namespace {

constexpr std::uint64_t kThreads = 256;
constexpr std::uint64_t kElementsOfABlock = 1024;
constexpr std::uint64_t kMostBlocks = 1024;
constexpr std::uint64_t kTripleBytesInMemory = 12;

/// A pair standing for scale^2 * sumsq (contract section 4).
struct Pair {
    float scale;
    float sumsq;
};

/// Contract section 4's merge, without branches so that a loop over lanes vectorizes. Where a scale is 0 the quotient
/// is made 0 over a divisor that is not: sumsq + 0 keeps the other pair's bits, and nothing is divided by zero.
inline Pair merge(Pair a, Pair b) {
    const bool a_is_larger = a.scale >= b.scale;
    const float larger = a_is_larger ? a.scale : b.scale;
    const float smaller = a_is_larger ? b.scale : a.scale;
    const float sumsq_of_larger = a_is_larger ? a.sumsq : b.sumsq;
    const float sumsq_of_smaller = a_is_larger ? b.sumsq : a.sumsq;
    const float q = smaller / (larger == 0.0F ? 1.0F : larger);
    const float q2 = q * q;
    return {larger, sumsq_of_larger + sumsq_of_smaller * q2};
}

/// 256 lanes' triples, as the three shared arrays.
struct Lanes {
    std::array<float, kThreads> scale{};
    std::array<float, kThreads> sumsq{};
    std::array<float, kThreads> bad{};

    void merge_into(std::size_t lane, const GradientSummary& triple) {
        const Pair pair = merge({scale[lane], sumsq[lane]}, {triple.scale, triple.sumsq});
        scale[lane] = pair.scale;
        sumsq[lane] = pair.sumsq;
        bad[lane] = std::max(bad[lane], triple.bad);
    }

    GradientSummary reduce() {
        for (std::size_t offset = kThreads / 2; offset != 0; offset /= 2) {
            for (std::size_t lane = 0; lane < offset; ++lane) {
                merge_into(lane, {scale[lane + offset], sumsq[lane + offset], bad[lane + offset]});
            }
        }
        return {scale[0], sumsq[0], bad[0]};
    }
};

/// Lane t takes element first + t, for t < count; the loop over lanes is the one that vectorizes.
template <class Load>
void take_row(Lanes& lanes, const std::byte* data, std::uint64_t first, std::size_t count, float r) {
    std::array<float, kThreads> row{};
    for (std::size_t t = 0; t < count; ++t) row[t] = Load::at(data, first + t);
    for (std::size_t t = 0; t < count; ++t) {
        const float value = unscaled(row[t], r);
        const bool bad = is_bad(row[t], value);
        const float magnitude = bad ? 0.0F : std::fabs(value);
        const Pair pair = merge({lanes.scale[t], lanes.sumsq[t]}, {magnitude, magnitude > 0.0F ? 1.0F : 0.0F});
        lanes.scale[t] = pair.scale;
        lanes.sumsq[t] = pair.sumsq;
        lanes.bad[t] = bad ? 1.0F : lanes.bad[t];
    }
}

template <class Load>
GradientSummary scan_block(const std::byte* data, std::uint64_t elements, float r, std::uint64_t block,
                           std::uint64_t blocks) {
    Lanes lanes;
    for (std::uint64_t first = block * kThreads; first < elements; first += kThreads * blocks) {
        take_row<Load>(lanes, data, first, static_cast<std::size_t>(std::min(kThreads, elements - first)), r);
    }
    return lanes.reduce();
}

}  // namespace

std::uint32_t reduction_blocks(std::uint64_t elements, std::uint32_t block_limit) {
    const std::uint64_t wanted = elements / kElementsOfABlock + (elements % kElementsOfABlock != 0 ? 1 : 0);
    return static_cast<std::uint32_t>(std::min({wanted, kMostBlocks, std::uint64_t{block_limit}}));
}

GradientSummary merge_summaries(const GradientSummary& a, const GradientSummary& b) {
    const Pair pair = merge({a.scale, a.sumsq}, {b.scale, b.sumsq});
    return {pair.scale, pair.sumsq, std::max(a.bad, b.bad)};
}

GradientSummary tree_summary(const GradientView& view, float r, std::uint32_t block_limit) {
    require_sound_arithmetic();
    if (view.elements == 0) return {};
    const std::uint64_t blocks = reduction_blocks(view.elements, block_limit);
    const auto* data = static_cast<const std::byte*>(view.data);
    return with_loader(view.dtype, [&](auto load) {
        using Load = decltype(load);
        if (blocks == 1) return scan_block<Load>(data, view.elements, r, 0, 1);
        std::vector<GradientSummary> partials(blocks);
        for (std::uint64_t b = 0; b < blocks; ++b) partials[b] = scan_block<Load>(data, view.elements, r, b, blocks);
        Lanes lanes;
        for (std::uint64_t i = 0; i < blocks; ++i) lanes.merge_into(i % kThreads, partials[i]);
        return lanes.reduce();
    });
}

GradientStatsReport combine_report(std::span<const std::uint64_t> elements, std::span<const GradientSummary> summaries,
                                   float gradient_scale, std::uint32_t block_limit) {
    GradientStatsReport report;
    GroupTotals totals;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const GradientSummary summary = elements[i] == 0 ? GradientSummary{} : summaries[i];
        if (const auto violation = totals.add(elements[i], summary)) raise(*violation);
        report.summaries.push_back(summary);
        if (elements[i] == 0) continue;
        const std::uint64_t blocks = reduction_blocks(elements[i], block_limit);
        report.reduction_launches += blocks == 1 ? 1 : 2;
        report.readback_bytes += kTripleBytesInMemory;
        report.scratch_bytes += kTripleBytesInMemory * (blocks == 1 ? 1 : blocks + 1);
    }
    report.stats = totals.stats(gradient_scale);
    return report;
}

GradientStatsReport group_statistics(std::span<const GradientView> gradients, float gradient_scale,
                                     std::uint32_t block_limit) {
    const float r = reciprocal_scale(gradient_scale);
    std::vector<std::uint64_t> elements;
    std::vector<GradientSummary> summaries;
    for (const auto& view : gradients) {
        elements.push_back(view.elements);
        summaries.push_back(tree_summary(view, r, block_limit));
    }
    return combine_report(elements, summaries, gradient_scale, block_limit);
}

double tensor_norm(const GradientSummary& summary) { return std::sqrt(sum_of_squares(summary)); }

ExactScan exact_scan(const GradientView& view, float r) {
    require_sound_arithmetic();
    ExactScan scan;
    float least = std::numeric_limits<float>::infinity();
    const auto* data = static_cast<const std::byte*>(view.data);
    with_loader(view.dtype, [&](auto load) {
        for (std::uint64_t i = 0; i < view.elements; ++i) {
            const float raw = load.at(data, i);
            const float value = unscaled(raw, r);
            if (is_finite_bits(raw) && is_finite_bits(value)) {
                scan.sum.add(value);
                const float magnitude = std::fabs(value);
                scan.max_finite_abs = std::max(scan.max_finite_abs, magnitude);
                least = std::min(least, magnitude == 0.0F ? least : magnitude);
            } else {
                if (!scan.first_bad) scan.first_bad = i;
                ++scan.bad_elements;
            }
        }
    });
    if (is_finite_bits(least)) scan.least_nonzero_abs = least;
    return scan;
}

std::optional<std::uint64_t> first_bad(const GradientView& view, float r) {
    const auto* data = static_cast<const std::byte*>(view.data);
    return with_loader(view.dtype, [&](auto load) -> std::optional<std::uint64_t> {
        for (std::uint64_t i = 0; i < view.elements; ++i) {
            const float raw = load.at(data, i);
            if (is_bad(raw, unscaled(raw, r))) return i;
        }
        return std::nullopt;
    });
}

double exact_norm(std::span<const GradientView> gradients, float gradient_scale) {
    const float r = reciprocal_scale(gradient_scale);
    ExactSumOfSquares sum;
    for (const auto& view : gradients) {
        const ExactScan scan = exact_scan(view, r);
        if (scan.bad_elements != 0) return std::numeric_limits<double>::infinity();
        sum += scan.sum;
    }
    return sum.root();
}

}  // namespace gradguard::reference
