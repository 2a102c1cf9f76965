// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reference/contract/report.h"
#include "reference/fp64/violation.h"

namespace gradguard::reference {

/// One row of the rules for a summary read back (contract section 3).
struct SummaryRule {
    std::string_view wanted;
    bool (*accepts)(const GradientSummary&);
};

inline constexpr std::array<SummaryRule, 5> kSummaryRules{{
    {"scale finite and >= 0", [](const GradientSummary& s) { return s.scale - s.scale == 0.0F && s.scale >= 0.0F; }},
    {"sumsq finite and >= 0", [](const GradientSummary& s) { return s.sumsq - s.sumsq == 0.0F && s.sumsq >= 0.0F; }},
    {"bad exactly 0 or 1", [](const GradientSummary& s) { return s.bad == 0.0F || s.bad == 1.0F; }},
    {"sumsq = 0 where scale = 0", [](const GradientSummary& s) { return s.scale != 0.0F || s.sumsq == 0.0F; }},
    {"sumsq >= 1 where scale > 0", [](const GradientSummary& s) { return !(s.scale > 0.0F) || s.sumsq >= 1.0F; }},
}};

/// The first rule that `summary` breaks (kind InvalidSummary, operand "gradients", `entry` the tensor's index).
std::optional<Violation> check_summary(const GradientSummary& summary, std::size_t entry);

/// Combines summaries in FP64 in input order (contract section 4).
class GroupTotals {
  public:
    /// Adds the next tensor, empty ones included; an empty tensor's summary is not looked at. On a violation (invalid
    /// summary, a running sum that is not finite, a counter that overflows) nothing has changed.
    std::optional<Violation> add(std::uint64_t elements, const GradientSummary& summary);

    /// total_norm is +inf when anything was bad.
    GradientStats stats(float gradient_scale) const;

  private:
    double sum_ = 0.0;
    float max_ = 0.0F;
    bool bad_ = false;
    std::uint64_t elements_ = 0;
    std::uint64_t tensors_ = 0;
};

/// scale^2 * sumsq in FP64, rounded as the host's combination does it.
double sum_of_squares(const GradientSummary& summary);

}  // namespace gradguard::reference
