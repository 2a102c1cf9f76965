// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/statistics_bound.h"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

#include "reference/exact/float_bits.h"
#include "reference/model/statistics.h"
#include "tests/support/values.h"

namespace gradguard::harness {
namespace {

using gradguard::testing::f16;
using gradguard::testing::f32;

struct Group {
    gradguard::testing::Gradient a = f32({3.0F, -4.0F, 0.1F});
    gradguard::testing::Gradient b = f16({});
    gradguard::testing::Gradient c = f16({12.0F, 7.0F});
    std::vector<reference::GradientView> views{a.view(), b.view(), c.view()};
    GradientStatsReport report = reference::group_statistics(views, 2.0F);

    std::optional<Mismatch> judge() const { return judge_statistics(report, views, 2.0F); }
};

TEST(StatisticsBound, TheRightReportPasses) { EXPECT_FALSE(Group().judge()); }

TEST(StatisticsBound, EveryFieldIsComparedBitForBit) {
    const std::pair<const char*, void (*)(GradientStatsReport&)> rows[] = {
        {"summary.scale", [](auto& r) { r.summaries[0].scale = reference::step_ulps(r.summaries[0].scale, 1); }},
        {"summary.sumsq", [](auto& r) { r.summaries[2].sumsq = reference::step_ulps(r.summaries[2].sumsq, -1); }},
        {"summary.bad", [](auto& r) { r.summaries[1].bad = 1.0F; }},
        {"summaries", [](auto& r) { r.summaries.pop_back(); }},
        {"all_finite", [](auto& r) { r.stats.all_finite = false; }},
        {"max_finite_abs", [](auto& r) { r.stats.max_finite_abs = 0.0F; }},
        {"total_norm", [](auto& r) { r.stats.total_norm = std::nextafter(r.stats.total_norm, 0.0); }},
        {"total_norm", [](auto& r) { r.stats.total_norm = std::numeric_limits<double>::quiet_NaN(); }},
        {"elements", [](auto& r) { r.stats.elements = 4; }},
        {"tensors", [](auto& r) { r.stats.tensors = 2; }},
        {"gradient_scale", [](auto& r) { r.stats.gradient_scale = 1.0F; }},
        {"reduction_launches", [](auto& r) { r.reduction_launches = 3; }},
        {"readback_bytes", [](auto& r) { r.readback_bytes = 36; }},
        {"scratch_bytes", [](auto& r) { r.scratch_bytes = 0; }}};
    for (const auto& [what, change] : rows) {
        Group group;
        change(group.report);
        const auto mismatch = group.judge();
        ASSERT_TRUE(mismatch) << what;
        EXPECT_EQ(mismatch->what, what);
        EXPECT_NE(mismatch->got, mismatch->want);
    }
}

TEST(StatisticsBound, AMismatchOfASummaryNamesItsEntry) {
    Group group;
    group.report.summaries[2].sumsq *= 2.0F;
    EXPECT_EQ(group.judge()->entry, 2U);
}

TEST(StatisticsBound, TheDecisionIsRecomputedFromTheReportedNorm) {
    Group group;
    const GradientStats& stats = group.report.stats;
    const GradientDecision right{static_cast<float>(1.0 / (stats.total_norm + double(1e-6F))), false};
    EXPECT_FALSE(judge_decision(right, stats, {}));
    EXPECT_EQ(judge_decision({reference::step_ulps(right.clip_multiplier, 1), false}, stats, {})->what,
              "clip_multiplier");
    EXPECT_EQ(judge_decision({right.clip_multiplier, true}, stats, {})->what, "skip_update");
    EXPECT_TRUE(judge_decision({std::numeric_limits<float>::quiet_NaN(), false}, stats, {}));
}

TEST(StatisticsBound, ADecisionWhereAnErrorWasDueIsAMismatch) {
    GradientStats bad{.total_norm = HUGE_VAL, .all_finite = false, .elements = 1, .tensors = 1};
    EXPECT_FALSE(judge_decision({1.0F, true}, bad, {}));
    EXPECT_TRUE(judge_decision({1.0F, true}, bad, {.nonfinite = NonFinitePolicy::kError}));
}

TEST(StatisticsBound, CoefficientsAreComparedBitForBit) {
    const auto want = reference::update_coefficients({}, {.gradient_scale = 3.0F}, 0.5F, 7);
    EXPECT_FALSE(compare_coefficients(want, want));
    for (float reference::UpdateCoefficients::*field :
         {&reference::UpdateCoefficients::r, &reference::UpdateCoefficients::clip,
          &reference::UpdateCoefficients::beta1, &reference::UpdateCoefficients::one_minus_beta1,
          &reference::UpdateCoefficients::beta2, &reference::UpdateCoefficients::one_minus_beta2,
          &reference::UpdateCoefficients::inverse_bias1, &reference::UpdateCoefficients::inverse_bias2,
          &reference::UpdateCoefficients::epsilon, &reference::UpdateCoefficients::learning_rate,
          &reference::UpdateCoefficients::decay}) {
        auto got = want;
        got.*field = reference::step_ulps(got.*field, 1);
        EXPECT_TRUE(compare_coefficients(got, want));
    }
    auto got = want;
    got.maximize = true;
    EXPECT_EQ(compare_coefficients(got, want)->what, "maximize");
}

}  // namespace
}  // namespace gradguard::harness
