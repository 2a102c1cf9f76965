// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/summary_rules.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace gradguard::reference {
namespace {

Violation invalid(std::size_t entry, const std::string& message) {
    return make_violation(ErrorKind::kInvalidSummary, entry, "gradients", message);
}

}  // namespace

std::optional<Violation> check_summary(const GradientSummary& summary, std::size_t entry) {
    for (const auto& rule : kSummaryRules) {
        if (rule.accepts(summary)) continue;
        char got[128];
        std::snprintf(got, sizeof got, ", got scale %.9g, sumsq %.9g, bad %.9g", static_cast<double>(summary.scale),
                      static_cast<double>(summary.sumsq), static_cast<double>(summary.bad));
        return invalid(entry, "want " + std::string(rule.wanted) + got);
    }
    return std::nullopt;
}

double sum_of_squares(const GradientSummary& summary) {
    const auto scale = static_cast<double>(summary.scale);
    return (scale * scale) * static_cast<double>(summary.sumsq);
}

std::optional<Violation> GroupTotals::add(std::uint64_t elements, const GradientSummary& summary) {
    constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
    const auto entry = static_cast<std::size_t>(tensors_);
    if (tensors_ == kMost || elements > kMost - elements_) return invalid(entry, "want counters below 2^64");
    if (elements != 0) {
        if (auto violation = reference::check_summary(summary, entry)) return violation;
        const double sum = sum_ + reference::sum_of_squares(summary);
        if (!std::isfinite(sum)) return invalid(entry, "want a finite running sum of squares");
        sum_ = sum;
        if (summary.scale > max_) max_ = summary.scale;
        bad_ = bad_ || summary.bad == 1.0F;
    }
    elements_ += elements;
    ++tensors_;
    return std::nullopt;
}

GradientStats GroupTotals::stats(float gradient_scale) const {
    GradientStats stats;
    stats.total_norm = bad_ ? std::numeric_limits<double>::infinity() : std::sqrt(sum_);
    stats.max_finite_abs = max_;
    stats.all_finite = !bad_;
    stats.elements = elements_;
    stats.tensors = tensors_;
    stats.gradient_scale = gradient_scale;
    return stats;
}

}  // namespace gradguard::reference
