// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/summary_rules.h"

#include <gtest/gtest.h>
#include <limits>

namespace gradguard::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

const GradientSummary kInvalid[] = {
    // cases.csv C06 and the rest of contract section 3's row
    {-1.0F, 1.0F, 0.0F}, {kNaN, 1.0F, 0.0F},           {kInfinity, 1.0F, 0.0F}, {1.0F, -1.0F, 0.0F},
    {1.0F, kNaN, 0.0F},  {1.0F, kInfinity, 0.0F},      {1.0F, 1.0F, 2.0F},      {1.0F, 1.0F, kNaN},
    {1.0F, 1.0F, -1.0F}, {1.0F, 1.0F, 0.5F},           {0.0F, 1.0F, 0.0F},      {0.0F, 0x1p-149F, 0.0F},
    {1.0F, 0.5F, 0.0F},  {1.0F, 0x1.fffffep-1F, 0.0F}, {1.0F, 0.0F, 0.0F},      {0x1p-149F, 0.0F, 1.0F},
};

TEST(SummaryRules, EachDamagedSummaryIsRefused) {
    for (const auto& summary : kInvalid) {
        const auto violation = check_summary(summary, 3);
        ASSERT_TRUE(violation.has_value()) << summary.scale << " " << summary.sumsq << " " << summary.bad;
        EXPECT_EQ(violation->kind, ErrorKind::kInvalidSummary);
        EXPECT_EQ(violation->site.entry, 3U);
    }
}

TEST(SummaryRules, ValidSummariesPass) {
    for (const GradientSummary& summary :
         {GradientSummary{}, GradientSummary{0.0F, 0.0F, 1.0F}, GradientSummary{-0.0F, -0.0F, -0.0F},
          GradientSummary{0x1p-149F, 1.0F, 0.0F}, GradientSummary{std::numeric_limits<float>::max(), 0x1p30F, 1.0F}}) {
        EXPECT_FALSE(check_summary(summary, 0));
    }
}

TEST(SummaryRules, ARefusedSummaryLeavesTheTotalsUnchanged) {
    GroupTotals totals;
    ASSERT_FALSE(totals.add(2, {4.0F, 1.5625F, 0.0F}));
    for (const auto& summary : kInvalid) EXPECT_TRUE(totals.add(7, summary));
    const GradientStats stats = totals.stats(2.0F);
    EXPECT_EQ(stats.total_norm, 5.0);
    EXPECT_EQ(stats.max_finite_abs, 4.0F);
    EXPECT_TRUE(stats.all_finite);
    EXPECT_EQ(stats.elements, 2U);
    EXPECT_EQ(stats.tensors, 1U);
    EXPECT_EQ(stats.gradient_scale, 2.0F);
}

TEST(SummaryRules, TheElementCounterDoesNotOverflow) {
    GroupTotals totals;
    ASSERT_FALSE(totals.add(std::numeric_limits<std::uint64_t>::max(), {1.0F, 1.0F, 0.0F}));
    ASSERT_FALSE(totals.add(0, {}));
    const auto violation = totals.add(1, {1.0F, 1.0F, 0.0F});
    ASSERT_TRUE(violation.has_value());
    EXPECT_EQ(violation->kind, ErrorKind::kInvalidSummary);
    EXPECT_EQ(totals.stats(1.0F).total_norm, 1.0);
    EXPECT_EQ(totals.stats(1.0F).tensors, 2U);
}

TEST(SummaryRules, AnEmptyTensorCountsAsATensorAndNothingElse) {
    GroupTotals totals;
    ASSERT_FALSE(totals.add(0, {kNaN, kNaN, kNaN}));
    const GradientStats stats = totals.stats(1.0F);
    EXPECT_EQ(stats.total_norm, 0.0);
    EXPECT_TRUE(stats.all_finite);
    EXPECT_EQ(stats.tensors, 1U);
    EXPECT_EQ(stats.elements, 0U);
}

TEST(SummaryRules, ABadTensorMakesTheNormInfiniteAndKeepsTheMaximum) {
    GroupTotals totals;
    ASSERT_FALSE(totals.add(1, {3.0F, 1.0F, 1.0F}));
    ASSERT_FALSE(totals.add(1, {2.0F, 1.0F, 0.0F}));
    EXPECT_EQ(totals.stats(1.0F).total_norm, std::numeric_limits<double>::infinity());
    EXPECT_EQ(totals.stats(1.0F).max_finite_abs, 3.0F);
    EXPECT_FALSE(totals.stats(1.0F).all_finite);
}

TEST(SummaryRules, TheSumIsFormedInInputOrderUnfused) {
    // (scale * scale) * sumsq rounded, then added: with the product fused into the sum the last bit differs.
    const GradientSummary one{0x1.000002p0F, 0x1.000002p0F, 0.0F};
    const double product = (double(one.scale) * double(one.scale)) * double(one.sumsq);
    EXPECT_EQ(sum_of_squares(one), product);
}

}  // namespace
}  // namespace gradguard::reference
