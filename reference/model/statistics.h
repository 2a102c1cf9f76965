// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reference/contract/report.h"
#include "reference/exact/exact_sum.h"
#include "reference/model/gradient_view.h"

namespace gradguard::reference {

/// Blocks of the first stage (contract section 4, stated anew): min(ceil(n / 1024), 1024, block_limit).
/// `elements` > 0; `block_limit`: the device's limit on blocks in x, at least 1.
std::uint32_t reduction_blocks(std::uint64_t elements, std::uint32_t block_limit = 1024);

/// The summary that the contract's tree gives, bit for bit, on the host. All zero for an empty view.
/// `r`: 1 / gradient_scale in FP32.
GradientSummary tree_summary(const GradientView& view, float r, std::uint32_t block_limit = 1024);

/// Merges two pairs (contract section 4); commutative bit for bit. Flags merge by OR.
GradientSummary merge_summaries(const GradientSummary& a, const GradientSummary& b);

/// The statistics of a group with exact launches, bytes and summaries (contract section 4).
/// `gradient_scale` must be valid. Throws Error(InvalidSummary) where a running total overflows.
GradientStatsReport group_statistics(std::span<const GradientView> gradients, float gradient_scale,
                                     std::uint32_t block_limit = 1024);

/// A report from summaries got elsewhere: section 4's combination and accounting. `elements`: one for each summary.
/// Throws Error(InvalidSummary) for a summary that breaks a rule of section 3.
GradientStatsReport combine_report(std::span<const std::uint64_t> elements, std::span<const GradientSummary> summaries,
                                   float gradient_scale, std::uint32_t block_limit = 1024);

/// sqrt(scale^2 * sumsq) in FP64: the norm of one tensor's good elements.
double tensor_norm(const GradientSummary& summary);

/// What is exactly true of one tensor, without any rounding after unscaling.
struct ExactScan {
    ExactSumOfSquares sum;                   ///< Of the good elements' unscaled FP32 values.
    float max_finite_abs = 0.0F;             ///< Over the good elements.
    float least_nonzero_abs = 0.0F;          ///< Likewise; 0 when there is none.
    std::uint64_t bad_elements = 0;          ///< NaN or infinite, before or after unscaling.
    std::optional<std::uint64_t> first_bad;  ///< Index of the first of them.
};
ExactScan exact_scan(const GradientView& view, float r);

/// Index of the first element that is NaN or infinite before or after unscaling.
std::optional<std::uint64_t> first_bad(const GradientView& view, float r);

/// The root of the exact sum of squares of section 4's values over the group, rounded once to FP64; +inf when anything
/// is bad, as total_norm is.
double exact_norm(std::span<const GradientView> gradients, float gradient_scale);

}  // namespace gradguard::reference
