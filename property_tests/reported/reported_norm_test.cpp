// SPDX-License-Identifier: Apache-2.0
// Rows N* of cases.csv: norms of small tensors. Hexadecimal values are FP32 bit patterns.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/compare/case_judge.h"
#include "harness/compare/ulp.h"
#include "harness/subjects/subject.h"
#include "property_tests/reported/reported_case.h"
#include "reference/fp64/decision.h"

namespace gradguard::testing {
namespace {

using harness::Outcome;
using reference::bits_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint32_t kOne = 0x3F800000;  // a clip that leaves the gradient alone

void expect_max_finite_abs(const std::vector<Gradient>& gradients, float value) {
    on_every_subject(statistics(gradients), [&](const Outcome& outcome) {
        ASSERT_TRUE(outcome.steps[0].report);
        EXPECT_EQ(bits_of(outcome.steps[0].report->stats.max_finite_abs), bits_of(value));
    });
}

TEST(Reported, N01_F16NormOfThreeHundredDoesNotOverflow) {
    expect_norm({f16({300.0F})}, 300.0, 0x3B5A740E, 1.0F, 1.0F, {1.0F});
}

TEST(Reported, N03_F16NormOfOrdinaryDataIsFinite) {
    expect_norm({f16({1000.0F})}, 1000.0, 0x3A83126F);
    expect_norm({f16({600.0F, 800.0F})}, 1000.0, 0x3A83126F);
}

TEST(Reported, N04_F16NormWhoseSquareLeavesTheTypeIsFinite) {
    expect_norm({f16({200.0F, 200.0F, 200.0F})}, 346.41016151377545, 0x3B3D2FA7);
}

TEST(Reported, N05_ANormMayBeLargerThanTheStorageTypeCanHold) {
    expect_norm({f16(std::vector<float>(4, 65504.0F))}, 131008.0, 0x37001002);
}

TEST(Reported, N07_HugeFiniteGradientsAreClippedAndInfiniteOnesSkipped) {
    expect_norm({f32(std::vector<float>(100, 1e20F))}, 1.0000000200408773e21, 0x1C971DA0, 1.0F, 1.0F, {0.1F});
    expect_bad({f32(std::vector<float>(100, kInfinity))});
}

TEST(Reported, N08_OneLargeValueDoesNotMakeTheNormInfinite) {
    expect_norm({f32({1e20F, 1.0F, 1.0F})}, 1.0000000200408773e20, 0x1E3CE508);
    expect_max_finite_abs({f32({1e20F, 1.0F, 1.0F})}, 1e20F);
}

TEST(Reported, N09_TheNormOfOneElementIsItsMagnitude) {
    const double huge = 2.0000000400817547e20;
    expect_norm({f32({2e20F})}, huge, bits_of(reference::clip_multiplier(huge, {})));
    expect_norm({f32({2e-28F})}, 2.0000000063421537e-28, kOne);
}

TEST(Reported, N10_TheNormOfATinyVectorIsNotZero) { expect_norm({f32({1e-20F})}, 9.999999682655225e-21, kOne); }

TEST(Reported, N11_TheNormOfATinyValueBesideZeroIsNotZero) {
    expect_norm({f32({1e-23F, 0.0F})}, 9.999999998199587e-24, kOne);
}

TEST(Reported, N13_HugeFiniteGradientsAreNotZeroedByClipping) {
    expect_norm({f32(std::vector<float>(128, 1e19F))}, 1.1313708476930323e20, 0x1EA6F5FB, 2.0F, 1.0F,
                {1e19F * reference::float_of(0x1EA6F5FB)});
    EXPECT_GT(1e19F * reference::float_of(0x1EA6F5FB), 0.0F);
}

TEST(Reported, N15_AnInfiniteNormIsNeverReplacedByALargeConstant) { expect_bad({f32({kInfinity, 1.0F})}, 1.0F); }

TEST(Reported, N18_TheLeastNormalBesideZerosIsNotLost) {
    expect_norm({f32({0x1p-126F}), f32({0.0F})}, 1.1754943508222875e-38, kOne);
    for (const std::size_t place : {0U, 300U}) {  // the first block of two, and the second
        std::vector<float> blocks(2048, 0.0F);
        blocks[place] = 0x1p-126F;
        expect_norm({f32(blocks)}, 1.1754943508222875e-38, kOne);
    }
}

TEST(Reported, N22_NormsOfSubnormalsAreNotInfinite) {
    expect_norm({f32({5 * 0x1p-149F})}, 7.006492321624085e-45, kOne);
    expect_norm({f32(std::vector<float>(128, 0x1p-149F))}, 1.5853882345445977e-44, kOne);
}

TEST(Reported, N23_TheNormOfTwoSubnormalsIsNotInfinite) {
    expect_norm({f32({0x1p-148F, 0x1p-149F})}, 3.133398622996355e-45, kOne);
}

TEST(Reported, N26_InfinitiesSetTheFlagAndStayOutOfThePair) {
    for (const auto& values : {std::vector{kInfinity}, {-kInfinity}, {kInfinity, -kInfinity}}) {
        expect_bad({f32(values)});
        on_every_subject(statistics({f32(values)}), [](const Outcome& outcome) {
            ASSERT_TRUE(outcome.steps[0].report);
            const GradientSummary summary = outcome.steps[0].report->summaries.at(0);
            EXPECT_EQ(bits_of(summary.bad), bits_of(1.0F));
            EXPECT_EQ(bits_of(summary.scale), 0U);
            EXPECT_EQ(bits_of(summary.sumsq), 0U);
            EXPECT_EQ(outcome.steps[0].report->stats.total_norm, HUGE_VAL);
        });
    }
}

TEST(Reported, N27_ZerosBesideAValueGiveNoNaN) {
    expect_norm({f32({0.0F, 1.0F})}, 1.0, 0x3F7FFFEF);
    expect_norm({f32({-0.0F, 1.0F})}, 1.0, 0x3F7FFFEF);
    expect_norm({f32({0.0F, 0.0F, 0.0F})}, 0.0, kOne);
    on_every_subject(statistics({f32({0.0F, 0.0F, 0.0F})}), [](const Outcome& outcome) {
        const GradientSummary summary = outcome.steps[0].report.value().summaries.at(0);
        EXPECT_EQ(bits_of(summary.scale), 0U);
        EXPECT_EQ(bits_of(summary.sumsq), 0U);
    });
}

TEST(Reported, N29_AViewOfStrideZeroIsRefusedAndNeverReadAsCopies) {
    harness::CaseTensor view = tensor_of(f32({}));
    view.layout.shape = {4};
    view.layout.strides = {0};
    view.storage_bytes = 4;
    harness::Case c = guarded({{ones(4), view, std::nullopt}});
    expect_refused(c, ErrorKind::kInvalidTensor, 0, "gradients");
    c.operation = harness::Operation::kStatistics;
    expect_refused(c, ErrorKind::kInvalidTensor, 0, "gradients");
}

TEST(Reported, N30_TheJudgeMeasuresSubnormalResultsInTheirOwnSpacing) {
    EXPECT_EQ(harness::ulp_of(0x1p-149), 0x1p-149);
    EXPECT_EQ(harness::ulp_of(0x1p-140), 0x1p-149);
    EXPECT_EQ(harness::ulp_error(0x1p-148F, 0x1p-149), 1.0);
    // A subject that sums in an order of its own is held against a bound: right subnormal norms are inside it, a
    // flushed one is not.
    harness::Abilities free;
    free.norm = harness::NormKind::kWithinBound;
    for (const auto& values : {std::vector{0x1p-149F}, {0x1p-148F, 0x1p-149F}, std::vector<float>(128, 0x1p-149F)}) {
        const harness::Case c = statistics({f32(values)});
        Outcome outcome = harness::make_subject("oracle")->step(c);
        EXPECT_TRUE(judge_case(c, outcome, free).ok());
        outcome.steps[0].report.value().summaries[0] = {};
        outcome.steps[0].report.value().stats.total_norm = 0.0;
        EXPECT_FALSE(judge_case(c, outcome, free).ok());
    }
}

TEST(Reported, N31_SubnormalsAreNotReadAsZero) {
    expect_norm({f32({0x1p-149F})}, 1.401298464324817e-45, kOne);
    expect_norm({f32({std::numeric_limits<float>::min() / 2})}, 5.877471754111438e-39, kOne);
}

TEST(Reported, N25_ANaNIsSeenWhereverItStands) {
    expect_bad({f32({0.0F, kNaN})});
    expect_bad({f32({kNaN, 0.0F})});
    std::vector<float> last(1025, 1.0F);
    last.back() = kNaN;
    expect_bad({f32(last)}, 1.0F);
}

TEST(Reported, N19_TheFlagOfABlockOfZerosIsNotLost) {
    std::vector<float> zeros(5000, 0.0F);
    zeros[256 * 3 + 7] = kNaN;  // block 3 of 5
    expect_bad({f32(zeros)});
    expect_bad({f32({0.0F, 0.0F}), f32({kNaN})});
}

TEST(Reported, N32_TheMaximumIsOfTheFiniteValuesAndTheNaNIsSeen) {
    for (const std::size_t place : {0U, 255U, 256U, 1023U, 1024U}) {
        std::vector<float> values(1025);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F + static_cast<float>(i % 900);
        values[899] = -5000.0F;
        values[place] = kNaN;
        expect_bad({f32(values)}, 5000.0F);
    }
}

}  // namespace
}  // namespace gradguard::testing
