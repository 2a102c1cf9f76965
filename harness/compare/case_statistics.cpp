// SPDX-License-Identifier: Apache-2.0
// The part of StepJudge that looks at gradients and at what was reported of them.
#include <algorithm>
#include <cmath>

#include "harness/compare/case_step.h"
#include "harness/compare/norm_bound.h"
#include "harness/compare/ulp.h"
#include "reference/exact/float_bits.h"
#include "reference/model/statistics.h"

namespace gradguard::harness {

/// Fills what is exactly true of the group's gradients; true when one of them is bad.
bool StepJudge::scan(const GroupBefore& group) {
    const float r = reference::reciprocal_scale(group.control.gradient_scale);
    reference::ExactSumOfSquares sum;
    first_bad_.assign(group.gradients.size(), std::nullopt);
    max_abs_ = least_abs_ = 0.0F;
    bool bad = false;
    for (std::size_t i = 0; i < group.gradients.size(); ++i) {
        const reference::ExactScan scan = reference::exact_scan(group.gradients[i], r);
        sum += scan.sum;
        first_bad_[i] = scan.first_bad;
        bad = bad || scan.first_bad;
        max_abs_ = std::max(max_abs_, scan.max_finite_abs);
        const float least = scan.least_nonzero_abs;
        if (least != 0.0F && (least_abs_ == 0.0F || least < least_abs_)) least_abs_ = least;
    }
    exact_norm_ = sum.root();
    return bad;
}

void StepJudge::judge_report(const GroupBefore& group, const GradientStatsReport& report) {
    if (abilities_.norm == NormKind::kContractTree) {
        if (auto mismatch =
                judge_statistics(report, group.gradients, group.control.gradient_scale, abilities_.block_limit)) {
            add(failure_of(*mismatch));
        }
    } else {
        judge_foreign_report(group, report);
    }
    if (options_.measure && std::isfinite(report.stats.total_norm)) measure_norm(group, report.stats.total_norm);
}

void StepJudge::judge_foreign_report(const GroupBefore& group, const GradientStatsReport& report) {
    constexpr const char* kExact = "flags, counts and the greatest magnitude are exact (contract section 4)";
    const bool bad = std::ranges::any_of(first_bad_, [](const auto& first) { return first.has_value(); });
    std::uint64_t elements = 0;
    for (const auto& view : group.gradients) elements += view.elements;
    const GradientStats& stats = report.stats;
    const auto count = [&](const char* what, std::uint64_t got, std::uint64_t want) {
        if (got != want) add(kExact, {}, what, std::to_string(got), std::to_string(want));
    };
    count("all_finite", stats.all_finite ? 1 : 0, bad ? 0 : 1);
    count("elements", stats.elements, elements);
    count("tensors", stats.tensors, group.gradients.size());
    if (reference::bits_of(stats.max_finite_abs) != reference::bits_of(max_abs_)) {
        add(kExact, {}, "max_finite_abs", float_text(stats.max_finite_abs), float_text(max_abs_));
    }
    for (std::size_t i = 0; i < report.summaries.size() && i < first_bad_.size(); ++i) {
        const float flag = first_bad_[i] ? 1.0F : 0.0F;
        if (report.summaries[i].bad != flag) {
            add(kExact, i, "summary.bad", float_text(report.summaries[i].bad), float_text(flag));
        }
    }
    if (bad) {
        if (!(stats.total_norm == HUGE_VAL)) {
            add("the norm of a bad group is +inf (contract section 1)", {}, "total_norm", double_text(stats.total_norm),
                double_text(HUGE_VAL));
        }
        return;
    }
    const double bound = foreign_bound(group);
    if (!(std::fabs(stats.total_norm - exact_norm_) <= bound)) {
        add("the norm lies within the bound for any order of summation", {}, "total_norm",
            double_text(stats.total_norm), double_text(exact_norm_) + " give or take " + double_text(bound));
    }
}

/// Of a norm that is not the contract's tree.
double StepJudge::foreign_bound(const GroupBefore& group) const {
    std::uint64_t elements = 0;
    for (const auto& view : group.gradients) elements += view.elements;
    return any_order_bound(exact_norm_, elements, group.gradients.size(),
                           reference::reciprocal_scale(group.control.gradient_scale), abilities_.flushes);
}

/// Along the contract's tree.
double StepJudge::bound_along_tree(const GroupBefore& group) const {
    const float r = reference::reciprocal_scale(group.control.gradient_scale);
    std::vector<TreeBound> bounds;
    for (const auto& view : group.gradients) bounds.push_back(tree_bound(view, r, abilities_.block_limit));
    return norm_error_bound(bounds);
}

void StepJudge::measure_norm(const GroupBefore& group, double total_norm) {
    const double error = std::fabs(total_norm - exact_norm_);
    double fraction = 0.0;
    // Squares within a factor of 4 of each other, in the normal range.
    const bool balanced = least_abs_ >= 0x1p-126F && max_abs_ <= 2.0F * least_abs_;
    if (balanced && error > 0.0) {
        const bool tree = abilities_.norm == NormKind::kContractTree;
        fraction = error / (tree ? bound_along_tree(group) : foreign_bound(group));
    }
    take_worst(Quantity::kNorm, error / ulp_of(exact_norm_), fraction, 0, 0);
}

}  // namespace gradguard::harness
