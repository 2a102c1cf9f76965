// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/contract/report.h"
#include "reference/model/gradient_view.h"

namespace gradguard::testing {

/// Contract section 4 read word by word, one element and one branch at a time: slow, and nothing else.
inline GradientSummary literal_merge(const GradientSummary& a, const GradientSummary& b) {
    GradientSummary result = a;
    if (a.scale == 0.0F) {
        result = b;
    } else if (b.scale != 0.0F) {
        const GradientSummary& larger = a.scale > b.scale ? a : b;
        const GradientSummary& smaller = a.scale > b.scale ? b : a;
        const float q = smaller.scale / larger.scale;
        const float q2 = q * q;
        const float product = smaller.sumsq * q2;
        result.sumsq = larger.sumsq + product;
        result.scale = larger.scale;
    }
    result.bad = a.bad != 0.0F || b.bad != 0.0F ? 1.0F : 0.0F;
    return result;
}

inline GradientSummary literal_reduce(std::vector<GradientSummary> lanes) {
    for (const std::size_t offset : {128, 64, 32, 16, 8, 4, 2, 1}) {
        for (std::size_t i = 0; i < offset; ++i) lanes[i] = literal_merge(lanes[i], lanes[i + offset]);
    }
    return lanes[0];
}

inline GradientSummary literal_tree(const reference::GradientView& view, float r, std::uint64_t limit) {
    const std::uint64_t n = view.elements;
    if (n == 0) return {};
    const std::uint64_t blocks = std::min({(n + 1023) / 1024, std::uint64_t{1024}, limit});
    std::vector<GradientSummary> partials;
    for (std::uint64_t b = 0; b < blocks; ++b) {
        std::vector<GradientSummary> lanes(256);
        for (std::uint64_t t = 0; t < 256; ++t) {
            for (std::uint64_t i = b * 256 + t; i < n; i += 256 * blocks) {
                const float raw = reference::raw_value(view, i);
                const float value = raw * r;
                if (!std::isfinite(raw) || !std::isfinite(value)) {
                    lanes[t].bad = 1.0F;
                } else if (value != 0.0F) {
                    lanes[t] = literal_merge(lanes[t], {std::fabs(value), 1.0F, 0.0F});
                }
            }
        }
        partials.push_back(literal_reduce(lanes));
    }
    if (blocks == 1) return partials[0];
    std::vector<GradientSummary> lanes(256);
    for (std::uint64_t t = 0; t < 256; ++t) {
        for (std::uint64_t i = t; i < blocks; i += 256) lanes[t] = literal_merge(lanes[t], partials[i]);
    }
    return literal_reduce(lanes);
}

}  // namespace gradguard::testing
