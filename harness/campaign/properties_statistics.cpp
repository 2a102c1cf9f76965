// SPDX-License-Identifier: Apache-2.0
// Relations of the statistics that need no oracle.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "harness/campaign/case_edit.h"
#include "harness/campaign/property_groups.h"
#include "harness/campaign/relation.h"
#include "harness/compare/norm_bound.h"
#include "reference/exact/float_bits.h"
#include "reference/fp64/coefficients.h"
#include "reference/model/statistics.h"

namespace gradguard::harness {
namespace {

constexpr int kRepeats = 20;
constexpr int kGreatestPower = 12;

CaseShape scan_shape(const Abilities& abilities, std::uint64_t index) {
    return valid_shape(abilities, Operation::kStatistics, index);
}

CaseShape good_scan_shape(const Abilities& abilities, std::uint64_t index) {
    CaseShape shape = scan_shape(abilities, index);
    shape.bad_values = false;
    return shape;
}

/// Whether a step gave a report; an error of a valid case is a failure.
const GradientStatsReport* report_of(Relation& relation, const Outcome& outcome) {
    if (outcome.steps.empty()) {
        relation.equal("0", "1", {}, "steps", 0);
        return nullptr;
    }
    const StepOutcome& step = outcome.steps.front();
    if (step.error) relation.equal(step.error->message, "a result", {}, "error", 0);
    if (!step.error && !step.report) relation.equal("absent", "present", {}, "report", 0);
    return !step.error && step.report ? &*step.report : nullptr;
}

bool normal(float x) { return reference::classify(x) == reference::FloatClass::kNormal; }

/// Zeroes the elements that leave the normal range, before or after unscaling, in either case; true when others than
/// zeros are left.
bool scale_values(Case& base, Case& scaled, int k) {
    const float r = reference::reciprocal_scale(base.control.gradient_scale);
    bool any = false;
    for (std::size_t e = 0; e < base.entries.size(); ++e) {
        CaseTensor& one = base.entries[e].gradients;
        CaseTensor& two = scaled.entries[e].gradients;
        ArrayBits first(one.layout.dtype, one.values);
        ArrayBits second(two.layout.dtype, two.values);
        for (std::uint64_t i = 0; i < first.size(); ++i) {
            const bool finite = first.is_finite(i);
            if (first.is_zero(i) || !finite) continue;
            if (second.scale(i, k) && normal(first.value(i) * r) && normal(second.value(i) * r)) {
                any = true;
            } else {
                first.set(i, 0);
                second.set(i, 0);
            }
        }
    }
    return any;
}

PropertyVerdict values_times_power(const Property& property, const Bench& bench, const Case& c) {
    const int magnitude = 1 + static_cast<int>(chosen(c, 1, kGreatestPower));
    const int k = chosen(c, 2, 2) == 0 ? magnitude : -magnitude;
    Case base = scan_of(c);
    Case scaled = base;
    if (!scale_values(base, scaled, k)) return Relation::not_applicable();
    Relation relation(property, "gradients times 2^" + std::to_string(k) +
                                    "; values that leave the normal range are 0 in both cases");
    const Outcome got = relation.run(bench.subject(), scaled);
    const Outcome want = relation.run(bench.subject(), base);
    const GradientStatsReport* one = report_of(relation, want);
    const GradientStatsReport* two = report_of(relation, got);
    if (one == nullptr || two == nullptr) return relation.result();
    GradientStatsReport expected = *one;
    for (GradientSummary& summary : expected.summaries) summary.scale = std::ldexp(summary.scale, k);
    expected.stats.max_finite_abs = std::ldexp(expected.stats.max_finite_abs, k);
    expected.stats.total_norm = std::ldexp(expected.stats.total_norm, k);
    relation.mismatch(compare_reports(*two, expected));
    return relation.result();
}

PropertyVerdict signs_flipped(const Property& property, const Bench& bench, const Case& c) {
    const Case base = scan_of(c);
    Case flipped = base;
    const bool all = chosen(c, 1, 4) == 0;
    bool any = false;
    for_each_gradient(flipped, [&](ArrayBits array, std::size_t entry, float) {
        for (std::uint64_t i = 0; i < array.size(); ++i) {
            if (!all && chosen(c, 2 + entry + i * 64, 2) == 0) continue;
            array.flip_sign(i);
            any = true;
        }
    });
    if (!any) return Relation::not_applicable();
    Relation relation(property, all ? "all signs of gradients flipped" : "about half of the signs flipped");
    const Outcome want = relation.run(bench.subject(), base);
    relation.same_bits(relation.run(bench.subject(), flipped), want);
    return relation.result();
}

PropertyVerdict zeros_appended(const Property& property, const Bench& bench, const Case& c) {
    const Case base = scan_of(c);
    Case longer = base;
    const std::uint32_t limit = bench.subject().abilities().block_limit;
    bool any = false;
    for (std::size_t e = 0; e < longer.entries.size(); ++e) {
        CaseTensor& tensor = longer.entries[e].gradients;
        const std::uint64_t n = count(tensor);
        if (n == 0) continue;
        const std::uint64_t blocks = reference::reduction_blocks(n, limit);
        if (n >= blocks * 1024) continue;
        const std::uint64_t zeros = 1 + chosen(c, 1 + e, blocks * 1024 - n);
        std::vector<std::byte> values = tensor.values;
        values.resize((n + zeros) * element_bytes(tensor.layout.dtype));
        ArrayBits array(tensor.layout.dtype, values);
        for (std::uint64_t i = n; i < n + zeros; i += 2) array.flip_sign(i);  // every other one -0
        tensor = dense_tensor(tensor.layout.dtype, std::move(values));
        any = true;
    }
    if (!any) return Relation::not_applicable();
    Relation relation(property, "zeros appended to each tensor as far as its blocks stay as many");
    const Outcome want = relation.run(bench.subject(), base);
    relation.same_bits(relation.run(bench.subject(), longer), want, {.elements = false});
    return relation.result();
}

/// Bound on the reported norm of a good group (BOUNDS.md).
double norm_bound(const Case& c, const Abilities& abilities) {
    const std::vector<reference::GradientView> views = gradient_views(c);
    const float r = reference::reciprocal_scale(c.control.gradient_scale);
    if (abilities.norm != NormKind::kContractTree) {
        std::uint64_t elements = 0;
        for (const reference::GradientView& view : views) elements += view.elements;
        return any_order_bound(reference::exact_norm(views, c.control.gradient_scale), elements, views.size(), r,
                               abilities.flushes);
    }
    std::vector<TreeBound> bounds;
    for (const reference::GradientView& view : views) bounds.push_back(tree_bound(view, r, abilities.block_limit));
    return norm_error_bound(bounds);
}

/// The two norms lie within the sum of their bounds, as their exact norms are equal.
void close_norms(Relation& relation, const Bench& bench, const Case& base, const GradientStatsReport& one,
                 const Case& second, const GradientStatsReport& two) {
    const Abilities& abilities = bench.subject().abilities();
    const double bound = norm_bound(base, abilities) + norm_bound(second, abilities);
    const double apart = std::fabs(two.stats.total_norm - one.stats.total_norm);
    if (apart <= bound) return;
    Failure failure;
    failure.operand = "total_norm";
    failure.got = double_text(two.stats.total_norm);
    failure.want.push_back(double_text(one.stats.total_norm));
    failure.notes.push_back("apart    " + double_text(apart));
    failure.notes.push_back("bounds   " + double_text(bound));
    relation.fail(std::move(failure));
}

PropertyVerdict tensor_split(const Property& property, const Bench& bench, const Case& c) {
    const Case base = scan_of(c);
    std::vector<std::size_t> divisible;
    for (std::size_t e = 0; e < base.entries.size(); ++e) {
        if (count(base.entries[e].gradients) > 1) divisible.push_back(e);
    }
    if (divisible.empty() || !all_finite(base)) return Relation::not_applicable();
    const std::size_t entry = divisible[chosen(c, 1, divisible.size())];
    Case split = base;
    const CaseTensor& whole = base.entries[entry].gradients;
    const DType dtype = whole.layout.dtype;
    const std::uint64_t at = 1 + chosen(c, 2, count(whole) - 1);
    const auto cut = whole.values.begin() + static_cast<std::ptrdiff_t>(at * element_bytes(dtype));
    split.entries[entry].gradients = dense_tensor(dtype, {whole.values.begin(), cut});
    CaseEntry rest = split.entries[entry];
    rest.gradients = dense_tensor(dtype, {cut, whole.values.end()});
    split.entries.insert(split.entries.begin() + static_cast<std::ptrdiff_t>(entry) + 1, std::move(rest));
    Relation relation(property, "entry " + std::to_string(entry) + " split before element " + std::to_string(at));
    const Outcome first = relation.run(bench.subject(), base);
    const Outcome second = relation.run(bench.subject(), split);
    const GradientStatsReport* one = report_of(relation, first);
    const GradientStatsReport* two = report_of(relation, second);
    if (one != nullptr && two != nullptr) close_norms(relation, bench, base, *one, split, *two);
    return relation.result();
}

/// The scan of a group of two tensors at least: a single one gets its own first half as a neighbour.
Case scan_in_company(const Case& c) {
    Case scan = scan_of(c);
    if (scan.entries.size() != 1) return scan;
    CaseEntry second = scan.entries[0];
    const CaseTensor& whole = scan.entries[0].gradients;
    const DType dtype = whole.layout.dtype;
    const auto half = static_cast<std::ptrdiff_t>((count(whole) + 1) / 2 * element_bytes(dtype));
    second.gradients = dense_tensor(dtype, {whole.values.begin(), whole.values.begin() + half});
    scan.entries.push_back(std::move(second));
    return scan;
}

PropertyVerdict entries_permuted(const Property& property, const Bench& bench, const Case& c) {
    const Case base = scan_in_company(c);
    const std::size_t n = base.entries.size();
    if (n < 2 || !all_finite(base)) return Relation::not_applicable();
    const std::size_t turn = 1 + chosen(c, 1, n - 1);
    Case permuted = base;
    std::ranges::rotate(permuted.entries, permuted.entries.begin() + static_cast<std::ptrdiff_t>(turn));
    Relation relation(property, "entries in another order, beginning with " + std::to_string(turn));
    const Outcome first = relation.run(bench.subject(), base);
    const Outcome second = relation.run(bench.subject(), permuted);
    const GradientStatsReport* one = report_of(relation, first);
    const GradientStatsReport* two = report_of(relation, second);
    if (one == nullptr || two == nullptr) return relation.result();
    close_norms(relation, bench, base, *one, permuted, *two);
    // A report without a summary for each tensor is the judge's to refuse.
    const bool complete = one->summaries.size() == n && two->summaries.size() == n;
    if (!has_contract_tree(bench.subject().abilities()) || !complete) return relation.result();
    GradientStatsReport expected = *one;
    std::ranges::rotate(expected.summaries, expected.summaries.begin() + static_cast<std::ptrdiff_t>(turn));
    expected.stats.total_norm = two->stats.total_norm;
    relation.mismatch(compare_reports(*two, expected));
    return relation.result();
}

PropertyVerdict scan_repeated(const Property& property, const Bench& bench, const Case& c) {
    const Case base = scan_of(c);
    Relation relation(property, "the same scan under another schedule seed");
    const Outcome want = relation.run(bench.subject(), base);
    for (int i = 1; i < kRepeats && relation.verdict().ok(); ++i) {
        Case again = base;
        again.schedule_seed = chosen(c, static_cast<std::uint64_t>(i), UINT64_MAX);
        relation.same_bits(relation.run(bench.subject(), again), want);
    }
    return relation.result();
}

PropertyVerdict neighbours_gone(const Property& property, const Bench& bench, const Case& c) {
    const Case base = scan_in_company(c);
    if (base.entries.size() < 2) return Relation::not_applicable();
    Relation relation(property, "the entry alone");
    const Outcome group = relation.run(bench.subject(), base);
    const GradientStatsReport* all = report_of(relation, group);
    for (std::size_t e = 0; all != nullptr && e < base.entries.size(); ++e) {
        Case alone = base;
        alone.entries = {base.entries[e]};
        const Outcome outcome = relation.run(bench.subject(), alone);
        const GradientStatsReport* one = report_of(relation, outcome);
        if (one == nullptr || one->summaries.size() != 1 || all->summaries.size() != base.entries.size()) {
            relation.equal("a missing summary", "one summary for each tensor", e, "summary", 0);
            break;
        }
        const GradientSummary& got = one->summaries[0];
        const GradientSummary& want = all->summaries[e];
        relation.equal(float_text(got.scale), float_text(want.scale), e, "summary.scale", 0);
        relation.equal(float_text(got.sumsq), float_text(want.sumsq), e, "summary.sumsq", 0);
        relation.equal(float_text(got.bad), float_text(want.bad), e, "summary.bad", 0);
    }
    return relation.result();
}

}  // namespace

std::vector<Property> statistics_properties() {
    return {
        {"values_times_power", "all values times 2^k: scale times 2^k, sumsq the same bits", 2, has_contract_tree,
         scan_shape, values_times_power},
        {"signs_flipped", "flipping signs changes no statistics", 1, has_contract_tree, scan_shape, signs_flipped},
        {"zeros_appended", "zeros appended while the blocks stay as many change no statistics", 2, has_contract_tree,
         scan_shape, zeros_appended},
        {"tensor_split", "splitting a tensor moves the norm by no more than the sum of the two bounds", 1, has_norm,
         good_scan_shape, tensor_split},
        {"entries_permuted", "permuting entries moves the norm by no more than the sum of the two bounds", 1, has_norm,
         good_scan_shape, entries_permuted},
        {"scan_repeated", "twenty repeats of one scan have the same bits", 1, has_contract_tree, scan_shape,
         scan_repeated},
        {"neighbours_gone", "a tensor's summary does not depend on its neighbours in the group", 1, has_contract_tree,
         scan_shape, neighbours_gone},
    };
}

}  // namespace gradguard::harness
