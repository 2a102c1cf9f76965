// SPDX-License-Identifier: Apache-2.0
#include "reference/exact/widen.h"

#include <gtest/gtest.h>
#include <cmath>

#include "reference/exact/float_bits.h"

namespace gradguard::reference {
namespace {

/// A bit pattern's value from the definition of the format.
double value_by_definition(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
    const auto mantissa = static_cast<int>(bits & ((1U << mantissa_bits) - 1));
    const auto exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1));
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

TEST(Widen, EveryF16PatternHasItsValue) {
    for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
        const double want = value_by_definition(bits, 5, 10);
        ASSERT_TRUE(same_float(widen_f16(static_cast<std::uint16_t>(bits)), static_cast<float>(want))) << bits;
    }
}

TEST(Widen, EveryBF16PatternHasItsValue) {
    for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
        const double want = value_by_definition(bits, 8, 7);
        ASSERT_TRUE(same_float(widen_bf16(static_cast<std::uint16_t>(bits)), static_cast<float>(want))) << bits;
    }
}

TEST(FloatBits, ClassesFollowTheInteger) {
    EXPECT_EQ(classify(-0.0F), FloatClass::kZero);
    EXPECT_EQ(classify(0x1p-149F), FloatClass::kSubnormal);
    EXPECT_EQ(classify(float_of(0x007FFFFFU)), FloatClass::kSubnormal);
    EXPECT_EQ(classify(0x1p-126F), FloatClass::kNormal);
    EXPECT_EQ(classify(-HUGE_VALF), FloatClass::kInfinite);
    EXPECT_EQ(classify(float_of(0x7F800001U)), FloatClass::kNaN);
    EXPECT_EQ(classify(float_of(0xFFFFFFFFU)), FloatClass::kNaN);
}

TEST(FloatBits, StepsCrossZeroAndBinades) {
    EXPECT_EQ(step_ulps(0.0F, 1), 0x1p-149F);
    EXPECT_EQ(step_ulps(-0x1p-149F, 2), 0x1p-149F);
    EXPECT_EQ(step_ulps(1.0F, -1), 0x1.fffffep-1F);
    EXPECT_EQ(step_ulps(0x1.fffffep127F, 1), HUGE_VALF);
    EXPECT_EQ(ordinal_of(-0.0F), ordinal_of(0.0F));
}

TEST(FloatBits, AnyNaNEqualsAnyNaNAndMinusZeroDiffersFromPlusZero) {
    EXPECT_TRUE(same_float(float_of(0x7FC00000U), float_of(0xFF800001U)));
    EXPECT_FALSE(same_float(float_of(0x7FC00000U), HUGE_VALF));
    EXPECT_FALSE(same_float(0.0F, -0.0F));
}

}  // namespace
}  // namespace gradguard::reference
