// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/host/decision.h"
#include "reference/contract/error.h"
#include "reference/fp64/decision.h"
#include "tests/host/group.h"

namespace gradguard {
namespace {

using testing::bits;
using testing::expect_error;
using testing::from_bits;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

GradientStats finite(double norm) { return {.total_norm = norm, .all_finite = true}; }
GradientStats bad() { return {.total_norm = std::numeric_limits<double>::infinity(), .all_finite = false}; }

TEST(Decision, ClipIsTheQuotientRoundedOnce) {
    EXPECT_EQ(bits(decide(finite(5.0)).clip_multiplier), 0x3E4CCCCAU);
    EXPECT_EQ(bits(decide(finite(10.0)).clip_multiplier), 0x3DCCCCCBU);
    EXPECT_EQ(bits(decide(finite(300.0)).clip_multiplier), 0x3B5A740EU);
    EXPECT_EQ(bits(decide(finite(1.0)).clip_multiplier), 0x3F7FFFEFU);
    EXPECT_EQ(bits(decide(finite(1.0000000200408773e21)).clip_multiplier), 0x1C971DA0U);
}

TEST(Decision, ANormBelowTheLimitIsLeftAlone) {
    EXPECT_EQ(decide(finite(0.0)).clip_multiplier, 1.0F);
    EXPECT_EQ(decide(finite(0.5)).clip_multiplier, 1.0F);
}

TEST(Decision, NoLimitMeansNoClipping) {
    EXPECT_EQ(decide(finite(1e30), {.max_norm = std::nullopt}).clip_multiplier, 1.0F);
}

TEST(Decision, ZeroLimitOfEitherSignGivesPositiveZero) {
    EXPECT_EQ(bits(decide(finite(0.0), {.max_norm = 0.0F}).clip_multiplier), 0U);
    EXPECT_EQ(bits(decide(finite(2.0), {.max_norm = -0.0F}).clip_multiplier), 0U);
}

TEST(Decision, QuotientBelowFp32RoundsToZero) {
    EXPECT_EQ(decide(finite(1e30), {.max_norm = 1e-38F}).clip_multiplier, 0.0F);
}

TEST(Decision, BadGroupSkipsWhateverTheLimit) {
    for (const std::optional<float> max_norm :
         {std::optional<float>(1.0F), std::optional<float>(), std::optional<float>(0.0F)}) {
        const GradientDecision decision = decide(bad(), {.max_norm = max_norm});
        EXPECT_TRUE(decision.skip_update);
        EXPECT_EQ(decision.clip_multiplier, 1.0F);
    }
}

TEST(Decision, BadGroupUnderPolicyErrorThrows) {
    expect_error(ErrorKind::kNonFiniteGradients, std::nullopt, "gradients",
                 [] { decide(bad(), {.nonfinite = NonFinitePolicy::kError}); });
}

TEST(Decision, StatisticsAgreedElsewhereCannotSmuggleASentinelIn) {
    expect_error(ErrorKind::kInvalidSummary, std::nullopt, "total_norm", [] { decide(finite(-1.0)); });
    EXPECT_TRUE(decide(finite(std::numeric_limits<double>::infinity())).skip_update);
    EXPECT_TRUE(decide(finite(std::numeric_limits<double>::quiet_NaN())).skip_update);
}

TEST(Decision, AFlagThatWasRaisedElsewhereCountsWhateverTheNorm) {
    EXPECT_TRUE(decide({.total_norm = 1.0, .all_finite = false}).skip_update);
}

TEST(Decision, TheOptionsAreCheckedBeforeTheStatistics) {
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "guard_epsilon",
                 [] { decide(finite(-1.0), {.epsilon = 0.0F}); });
}

TEST(Decision, RefusesInvalidGuardOptions) {
    for (const float value : {-1.0F, kInfinity, kNan, -std::numeric_limits<float>::denorm_min()}) {
        expect_error(ErrorKind::kInvalidOption, std::nullopt, "max_norm",
                     [&] { decide(finite(1.0), {.max_norm = value}); });
    }
    for (const float value : {0.0F, -1e-6F, kInfinity, kNan}) {
        expect_error(ErrorKind::kInvalidOption, std::nullopt, "guard_epsilon",
                     [&] { decide(finite(1.0), {.epsilon = value}); });
    }
    EXPECT_NO_THROW(decide(finite(1.0), {.max_norm = std::numeric_limits<float>::max(), .epsilon = from_bits(1)}));
}

TEST(Decision, AgreesWithTheOracleOverTheWholeRange) {
    for (int exponent = -150; exponent < 160; exponent += 3) {
        for (const float max_norm : {0.0F, from_bits(1), 1e-20F, 1.0F, 3.0F, std::numeric_limits<float>::max()}) {
            const GradientStats stats = finite(std::ldexp(1.375, exponent));
            const GradientGuardOptions guard = {.max_norm = max_norm, .epsilon = 1e-6F};
            EXPECT_EQ(bits(decide(stats, guard).clip_multiplier),
                      bits(reference::decide(stats, guard).clip_multiplier));
        }
    }
}

}  // namespace
}  // namespace gradguard
