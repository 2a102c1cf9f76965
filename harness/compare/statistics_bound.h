// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "reference/contract/options.h"
#include "reference/contract/report.h"
#include "reference/fp64/coefficients.h"
#include "reference/model/gradient_view.h"

namespace gradguard::harness {

/// A value of a report or decision that is not the one legal value.
struct Mismatch {
    std::string what;  ///< "summary.scale", "total_norm", "reduction_launches", "clip_multiplier", ...
    std::optional<std::uint64_t> entry;  ///< For a tensor's summary.
    std::string got, want;               ///< As hexadecimal float and bits, or as an integer.
};

/// Bit for bit: summaries, stats and accounting. Nothing when all are equal.
std::optional<Mismatch> compare_reports(const GradientStatsReport& got, const GradientStatsReport& want);

/// Judges a report against the gradients: each summary against the contract's tree run on the host, the norm recombined
/// from them, counts and accounting; all have one legal value (contract section 4).
std::optional<Mismatch> judge_statistics(const GradientStatsReport& got,
                                         std::span<const reference::GradientView> gradients, float gradient_scale,
                                         std::uint32_t block_limit = 1024);

/// The decision recomputed from the *reported* statistics (contract section 5); `guard` must be valid. For a bad group
/// with policy Error there is no decision to compare: the subject has to report NonFiniteGradients.
std::optional<Mismatch> judge_decision(const GradientDecision& got, const GradientStats& reported,
                                       const GradientGuardOptions& guard);

/// Coefficients are exact facts: bit for bit.
std::optional<Mismatch> compare_coefficients(const reference::UpdateCoefficients& got,
                                             const reference::UpdateCoefficients& want);

}  // namespace gradguard::harness
