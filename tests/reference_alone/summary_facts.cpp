// SPDX-License-Identifier: Apache-2.0
// Contract sections 3 and 4: which summaries are valid, and how the host combines them.
#include "reference/fp64/summary_rules.h"
#include "tests/reference_alone/facts.h"

namespace gradguard::reference_alone {
namespace {

using reference::check_summary;
using reference::GroupTotals;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr float kBelowOne = 0x1.fffffep-1F;

constexpr GradientSummary kInvalid[] = {
    {-1.0F, 1.0F, 0.0F}, {-kLeast, 1.0F, 0.0F},   {kNaN, 1.0F, 0.0F},      {kInfinity, 1.0F, 0.0F},
    {1.0F, -1.0F, 0.0F}, {1.0F, kNaN, 0.0F},      {1.0F, kInfinity, 0.0F}, {1.0F, 1.0F, 2.0F},
    {1.0F, 1.0F, kNaN},  {1.0F, 1.0F, -1.0F},     {1.0F, 1.0F, kBelowOne}, {1.0F, 1.0F, kLeast},
    {0.0F, 1.0F, 0.0F},  {0.0F, kLeast, 0.0F},    {-0.0F, kLeast, 0.0F},   {1.0F, 0.5F, 0.0F},
    {1.0F, 0.0F, 0.0F},  {1.0F, kBelowOne, 0.0F}, {kLeast, 0.0F, 1.0F},
};
constexpr GradientSummary kValid[] = {
    {}, {0.0F, 0.0F, 1.0F}, {-0.0F, -0.0F, -0.0F}, {kLeast, 1.0F, 0.0F}, {kMax, 0x1p30F, 1.0F}, {1.0F, 1.0F, 1.0F},
};

void damaged() {
    for (const auto& summary : kInvalid) {
        const auto violation = check_summary(summary, 3);
        GRADGUARD_CHECK(refuses(violation, ErrorKind::kInvalidSummary, "gradients") && violation->site.entry == 3U);
    }
}

void valid() {
    for (const auto& summary : kValid) GRADGUARD_CHECK(!check_summary(summary, 0));
}

void totals_unchanged() {
    GroupTotals totals;
    GRADGUARD_CHECK(!totals.add(2, {4.0F, 1.5625F, 0.0F}));
    for (const auto& summary : kInvalid) GRADGUARD_CHECK(totals.add(7, summary).has_value());
    const auto stats = totals.stats(2.0F);
    GRADGUARD_CHECK(stats.total_norm == 5.0 && stats.max_finite_abs == 4.0F && stats.all_finite);
    GRADGUARD_CHECK(stats.elements == 2 && stats.tensors == 1 && stats.gradient_scale == 2.0F);
}

void combination() {
    GroupTotals totals;
    GRADGUARD_CHECK(!totals.add(1, {3.0F, 1.0F, 0.0F}));
    GRADGUARD_CHECK(!totals.add(0, {}));
    GRADGUARD_CHECK(!totals.add(1, {4.0F, 1.0F, 0.0F}));
    const auto stats = totals.stats(1.0F);
    GRADGUARD_CHECK(stats.total_norm == 5.0 && stats.max_finite_abs == 4.0F);
    GRADGUARD_CHECK(stats.elements == 2 && stats.tensors == 3);
    GRADGUARD_CHECK(reference::sum_of_squares({0x1.000002p0F, 1.5F, 0.0F}) == 0x1.800006000006p0);
}

void input_order() {
    // 2^-53 is half an ulp of 1: added to 1 it vanishes each time, four of them first make two ulps.
    const GradientSummary one{1.0F, 1.0F, 0.0F};
    const GradientSummary half_ulp{0x1p-27F, 2.0F, 0.0F};
    GroupTotals descending;
    GroupTotals ascending;
    GRADGUARD_CHECK(!descending.add(1, one));
    for (int i = 0; i < 4; ++i) GRADGUARD_CHECK(!descending.add(2, half_ulp) && !ascending.add(2, half_ulp));
    GRADGUARD_CHECK(!ascending.add(1, one));
    GRADGUARD_CHECK(descending.stats(1.0F).total_norm == 1.0);
    GRADGUARD_CHECK(ascending.stats(1.0F).total_norm == 1.0 + 0x1p-52);
}

void range() {
    GroupTotals totals;
    for (int i = 0; i < 4; ++i) GRADGUARD_CHECK(!totals.add(1, {0x1p127F, 1.0F, 0.0F}));
    GRADGUARD_CHECK(totals.stats(1.0F).total_norm == 0x1p128);
    GroupTotals least;
    GRADGUARD_CHECK(!least.add(1, {kLeast, 1.0F, 0.0F}));
    GRADGUARD_CHECK(least.stats(1.0F).total_norm == 0x1p-149);
}

void bad_tensors() {
    GroupTotals totals;
    GRADGUARD_CHECK(!totals.add(5, {0.0F, 0.0F, 0.0F}));
    GRADGUARD_CHECK(!totals.add(1, {3.0F, 1.0F, 1.0F}));
    GRADGUARD_CHECK(!totals.add(1, {2.0F, 1.0F, 0.0F}));
    const auto stats = totals.stats(1.0F);
    GRADGUARD_CHECK(stats.total_norm == std::numeric_limits<double>::infinity() && !stats.all_finite);
    GRADGUARD_CHECK(stats.max_finite_abs == 3.0F && stats.elements == 7 && stats.tensors == 3);
}

void counters() {
    GroupTotals totals;
    GRADGUARD_CHECK(!totals.add(kMost, {1.0F, 1.0F, 0.0F}));
    GRADGUARD_CHECK(!totals.add(0, {}));
    GRADGUARD_CHECK(refuses(totals.add(1, {1.0F, 1.0F, 0.0F}), ErrorKind::kInvalidSummary, "gradients"));
    const auto stats = totals.stats(1.0F);
    GRADGUARD_CHECK(stats.elements == kMost && stats.tensors == 2 && stats.total_norm == 1.0);
}

void empty_tensors() {
    GroupTotals totals;
    GRADGUARD_CHECK(!totals.add(0, {kNaN, kNaN, kNaN}));
    const auto stats = totals.stats(1.0F);
    GRADGUARD_CHECK(stats.total_norm == 0.0 && stats.all_finite && stats.tensors == 1 && stats.elements == 0);
}

constexpr Fact kFacts[] = {
    {"each damaged summary is refused, with its tensor's index", damaged},
    {"valid summaries pass, zeros of either sign included", valid},
    {"a refused summary leaves the totals unchanged", totals_unchanged},
    {"summaries are combined in FP64", combination},
    {"summaries are added in input order, each sum rounded", input_order},
    {"a group's norm may exceed FP32 and may be subnormal", range},
    {"one bad tensor makes the norm infinite and keeps the maximum", bad_tensors},
    {"the counter of elements does not overflow", counters},
    {"an empty tensor's summary is not looked at", empty_tensors},
};

}  // namespace

std::span<const Fact> summary_facts() { return kFacts; }

}  // namespace gradguard::reference_alone
