// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/contract/error.h"
#include "tests/host/group.h"

namespace gradguard::kernels {
namespace {

using testing::expect_error;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Summary, RefusesEveryDamagedSummaryAndKeepsTheTotals) {
    const GradientSummary damaged[] = {
        {-1.0F, 1.0F, 0.0F}, {kNan, 1.0F, 0.0F},      {kInfinity, 1.0F, 0.0F}, {1.0F, -1.0F, 0.0F},
        {1.0F, kNan, 0.0F},  {1.0F, kInfinity, 0.0F}, {1.0F, 1.0F, 2.0F},      {1.0F, 1.0F, 0.5F},
        {1.0F, 1.0F, kNan},  {0.0F, 1.0F, 0.0F},      {1.0F, 0.5F, 0.0F},      {1.0F, 0.0F, 0.0F},
    };
    SummaryTotals totals;
    totals.add(0, {3.0F, 1.0F, 0.0F}, 4);
    for (const GradientSummary& summary : damaged) {
        expect_error(ErrorKind::kInvalidSummary, 7, "summary", [&] { totals.add(7, summary, 100); });
    }
    const GradientStats stats = totals.stats(1.0F);
    EXPECT_EQ(stats.total_norm, 3.0);
    EXPECT_EQ(stats.max_finite_abs, 3.0F);
    EXPECT_EQ(stats.elements, 4U);
    EXPECT_EQ(stats.tensors, 1U);
    EXPECT_TRUE(stats.all_finite);
}

TEST(Summary, AcceptsTheEdgesOfTheRules) {
    SummaryTotals totals;
    totals.add(0, {0.0F, 0.0F, 0.0F}, 1);
    totals.add(1, {-0.0F, -0.0F, -0.0F}, 1);
    totals.add(2, {std::numeric_limits<float>::denorm_min(), 1.0F, 0.0F}, 1);
    totals.add(3, {1.0F, 1024.0F, 0.0F}, 1);
    EXPECT_EQ(totals.stats(1.0F).tensors, 4U);
}

TEST(Summary, CounterOverflowIsRefused) {
    SummaryTotals totals;
    totals.add(0, {1.0F, 1.0F, 0.0F}, std::numeric_limits<std::uint64_t>::max());
    expect_error(ErrorKind::kInvalidSummary, 1, "summary", [&] { totals.add(1, {1.0F, 1.0F, 0.0F}, 1); });
    EXPECT_EQ(totals.stats(1.0F).tensors, 1U);
}

TEST(Summary, TheElementCountMayReachItsEnd) {
    constexpr auto kLast = std::numeric_limits<std::uint64_t>::max();
    SummaryTotals totals;
    totals.add(0, {1.0F, 1.0F, 0.0F}, 1);
    expect_error(ErrorKind::kInvalidSummary, 1, "summary", [&] { totals.add(1, {1.0F, 1.0F, 0.0F}, kLast); });
    totals.add(1, {1.0F, 1.0F, 0.0F}, kLast - 1);
    EXPECT_EQ(totals.stats(1.0F).elements, kLast);
}

TEST(Summary, TheMaximumOfNegativeZerosIsPositive) {
    SummaryTotals totals;
    totals.add(0, {-0.0F, 0.0F, 0.0F}, 1);
    EXPECT_EQ(testing::bits(totals.stats(1.0F).max_finite_abs), 0U);
}

TEST(Summary, OneBadTensorMakesTheNormInfiniteButKeepsTheMaximum) {
    SummaryTotals totals;
    totals.add(0, {2.0F, 1.0F, 1.0F}, 3);
    totals.add(1, {1.0F, 1.0F, 0.0F}, 3);
    const GradientStats stats = totals.stats(8.0F);
    EXPECT_EQ(stats.total_norm, std::numeric_limits<double>::infinity());
    EXPECT_EQ(stats.max_finite_abs, 2.0F);
    EXPECT_FALSE(stats.all_finite);
    EXPECT_EQ(stats.elements, 6U);
    EXPECT_EQ(stats.gradient_scale, 8.0F);
}

TEST(Summary, EmptyTensorsCountAsTensorsOnly) {
    SummaryTotals totals;
    totals.add_empty();
    const GradientStats stats = totals.stats(1.0F);
    EXPECT_EQ(stats.tensors, 1U);
    EXPECT_EQ(stats.elements, 0U);
    EXPECT_EQ(stats.total_norm, 0.0);
}

TEST(Summary, HugeSummariesStayFiniteInFp64) {
    SummaryTotals totals;
    constexpr float kMax = std::numeric_limits<float>::max();
    for (int i = 0; i < 64; ++i) totals.add(0, {kMax, kMax, 0.0F}, 1);
    EXPECT_TRUE(std::isfinite(totals.stats(1.0F).total_norm));
}

}  // namespace
}  // namespace gradguard::kernels
