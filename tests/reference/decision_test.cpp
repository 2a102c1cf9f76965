// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/decision.h"

#include <gtest/gtest.h>
#include <bit>
#include <limits>

#include "reference/contract/error.h"

namespace gradguard::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::uint32_t clip_bits(double norm, std::optional<float> max_norm) {
    return std::bit_cast<std::uint32_t>(clip_multiplier(norm, {.max_norm = max_norm}));
}

GradientStats bad_group() { return {.total_norm = kInfinity, .all_finite = false, .elements = 1, .tensors = 1}; }

// The clips of cases.csv, from the exact norms.
TEST(Decision, ClipsOfReportedCases) {
    EXPECT_EQ(clip_bits(300.0, 1.0F), 0x3B5A740EU);                   // N01
    EXPECT_EQ(clip_bits(1000.0, 1.0F), 0x3A83126FU);                  // N03
    EXPECT_EQ(clip_bits(346.41016151377545, 1.0F), 0x3B3D2FA7U);      // N04
    EXPECT_EQ(clip_bits(131008.0, 1.0F), 0x37001002U);                // N05
    EXPECT_EQ(clip_bits(1.0000000200408773e21, 1.0F), 0x1C971DA0U);   // N07
    EXPECT_EQ(clip_bits(1.0000000200408773e20, 1.0F), 0x1E3CE508U);   // N08
    EXPECT_EQ(clip_bits(9.999999682655225e-21, 1.0F), 0x3F800000U);   // N10
    EXPECT_EQ(clip_bits(1.1313708476930323e20, 2.0F), 0x1EA6F5FBU);   // N13
    EXPECT_EQ(clip_bits(1.1754943508222875e-38, 1.0F), 0x3F800000U);  // N18
    EXPECT_EQ(clip_bits(10.0, 1.0F), 0x3DCCCCCBU);                    // C08
    EXPECT_EQ(clip_bits(5.0, 1.0F), 0x3E4CCCCAU);                     // C09
    EXPECT_EQ(clip_bits(1.0, 2.0F), 0x3F800000U);                     // C12
    EXPECT_EQ(clip_bits(1.0, 1.0F), 0x3F7FFFEFU);                     // C13
}

// C01, C02
TEST(Decision, ZeroNormAndZeroLimitGiveNoNaN) {
    EXPECT_EQ(clip_bits(0.0, 0.0F), 0U);
    EXPECT_EQ(clip_bits(0.0, 1.0F), 0x3F800000U);
    EXPECT_EQ(clip_bits(7.0, 0.0F), 0U);
}

// C03
TEST(Decision, MinusZeroAsLimitGivesPlusZero) { EXPECT_EQ(clip_bits(0.0, -0.0F), 0U); }

TEST(Decision, WithoutALimitTheClipIsOne) { EXPECT_EQ(clip_bits(1e300, std::nullopt), 0x3F800000U); }

TEST(Decision, AQuotientBelowFp32RoundsToZero) { EXPECT_EQ(clip_bits(1e60, 1.0F), 0U); }

TEST(Decision, TheQuotientIsRoundedOnceFromFp64) {
    // 1 / (3 + 1e-6): forming the sum or the quotient in FP32 would give another neighbour for some norms of this list.
    for (double norm = 1.0; norm < 2.0; norm += 0x1p-9) {
        const double quotient = 1.0 / (norm + static_cast<double>(1e-6F));
        EXPECT_EQ(clip_multiplier(norm, {}), static_cast<float>(quotient < 1.0 ? quotient : 1.0));
    }
}

TEST(Decision, AGoodGroupIsClippedAndNotSkipped) {
    const GradientDecision decision = decide({.total_norm = 5.0, .elements = 2, .tensors = 2}, {});
    EXPECT_EQ(std::bit_cast<std::uint32_t>(decision.clip_multiplier), 0x3E4CCCCAU);
    EXPECT_FALSE(decision.skip_update);
}

// C05, C11, N15: branches, not multiplication; finiteness is checked whatever the limit.
TEST(Decision, ABadGroupIsSkippedWithClipOneWhateverTheLimit) {
    for (const std::optional<float> max_norm : {std::optional<float>(1.0F), std::optional<float>(), {0.0F}}) {
        const GradientDecision decision = decide(bad_group(), {.max_norm = max_norm});
        EXPECT_TRUE(decision.skip_update);
        EXPECT_EQ(decision.clip_multiplier, 1.0F);
    }
}

TEST(Decision, PolicyErrorThrowsNonFiniteGradients) {
    try {
        (void)decide(bad_group(), {.nonfinite = NonFinitePolicy::kError});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kNonFiniteGradients);
    }
}

TEST(Decision, InvalidGuardOptionsAreRefusedEvenForABadGroup) {
    try {
        (void)decide(bad_group(), {.max_norm = -1.0F});
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInvalidOption);
        EXPECT_EQ(error.site().operand, "max_norm");
    }
}

TEST(Decision, ANaNNormPassesNoComparison) {
    const GradientDecision decision = decide({.total_norm = std::numeric_limits<double>::quiet_NaN()}, {});
    EXPECT_TRUE(decision.skip_update);
}

}  // namespace
}  // namespace gradguard::reference
