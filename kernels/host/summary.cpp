// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/host/option_rules.h"
#include "reference/contract/error.h"

namespace gradguard::kernels {
namespace {

/// What is wrong with a summary, or nullptr. Comparisons are written so that NaN breaks them.
const char* broken_rule(const GradientSummary& summary) {
    if (!(std::isfinite(summary.scale) && summary.scale >= 0.0F)) return "a scale that is finite and >= 0";
    if (!(std::isfinite(summary.sumsq) && summary.sumsq >= 0.0F)) return "a sumsq that is finite and >= 0";
    if (!(summary.bad == 0.0F || summary.bad == 1.0F)) return "a flag that is exactly 0 or 1";
    if (summary.scale == 0.0F && summary.sumsq != 0.0F) return "sumsq 0 with scale 0";
    if (summary.scale > 0.0F && !(summary.sumsq >= 1.0F)) return "sumsq >= 1 with scale > 0";
    return nullptr;
}

[[noreturn]] void reject(std::size_t entry, const std::string& wanted, const GradientSummary& got) {
    throw Error(ErrorKind::kInvalidSummary, {.entry = entry, .operand = "summary"},
                "want " + wanted + ", got (" + number_to_string(got.scale) + ", " + number_to_string(got.sumsq) + ", " +
                    number_to_string(got.bad) + ")");
}

}  // namespace

void SummaryTotals::add(std::size_t entry, const GradientSummary& summary, std::uint64_t elements) {
    if (const char* rule = broken_rule(summary)) reject(entry, rule, summary);
    const double scale = summary.scale;
    const double sum = sum_of_squares_ + (scale * scale) * static_cast<double>(summary.sumsq);
    if (!std::isfinite(sum)) reject(entry, "a finite running sum of squares", summary);
    constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
    if (elements > kMax - elements_) reject(entry, "an element count that fits in 64 bits", summary);
    if (tensors_ == kMax) reject(entry, "a tensor count that fits in 64 bits", summary);
    sum_of_squares_ = sum;
    max_finite_abs_ = std::max(max_finite_abs_, summary.scale);
    all_finite_ = all_finite_ && summary.bad == 0.0F;
    elements_ += elements;
    ++tensors_;
}

GradientStats SummaryTotals::stats(float gradient_scale) const {
    GradientStats stats;
    stats.total_norm = all_finite_ ? std::sqrt(sum_of_squares_) : std::numeric_limits<double>::infinity();
    stats.max_finite_abs = max_finite_abs_;
    stats.all_finite = all_finite_;
    stats.elements = elements_;
    stats.tensors = tensors_;
    stats.gradient_scale = gradient_scale;
    return stats;
}

}  // namespace gradguard::kernels
