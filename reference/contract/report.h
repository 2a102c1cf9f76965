// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace gradguard {

/// A tensor's reduction (contract section 4): scale^2 * sumsq is its sum of squares over the good elements, `scale`
/// its greatest good magnitude after unscaling, `bad` is 1 when an element is NaN or infinite and 0 otherwise.
/// Held as read back, so a damaged one is representable; validity rules in contract section 3.
struct GradientSummary {
    float scale = 0.0F;
    float sumsq = 0.0F;
    float bad = 0.0F;
};

/// Statistics of a group (contract section 1).
struct GradientStats {
    double total_norm = 0.0;      ///< L2 norm of the group as if concatenated; +inf when anything is bad.
    float max_finite_abs = 0.0F;  ///< Greatest |value| after unscaling over the good elements; 0 if there are none.
    bool all_finite = true;
    std::uint64_t elements = 0;  ///< Bad ones included.
    std::uint64_t tensors = 0;   ///< Empty ones included.
    float gradient_scale = 1.0F;
};

/// Statistics with their accounting (contract section 4).
struct GradientStatsReport {
    GradientStats stats;
    std::uint64_t reduction_launches = 0;
    std::uint64_t readback_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    /// One for each tensor in input order; an empty tensor's is all zero.
    std::vector<GradientSummary> summaries;
};

/// What the guard decided for the whole group (contract section 5).
struct GradientDecision {
    float clip_multiplier = 1.0F;  ///< In [0, 1]; 1 when skipping.
    bool skip_update = false;
};

/// Why a guarded step changed nothing (contract section 2).
enum class SkipReason : std::uint8_t { kRequested, kEmpty, kNonFinite };

constexpr std::string_view to_string(SkipReason reason) {
    switch (reason) {
        case SkipReason::kRequested:
            return "Requested";
        case SkipReason::kEmpty:
            return "Empty";
        case SkipReason::kNonFinite:
            return "NonFinite";
    }
    return "?";
}

}  // namespace gradguard
