// SPDX-License-Identifier: Apache-2.0
#include "reference/exact/real.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <cmath>

#include "tests/support/property.h"
#include "tests/support/values.h"

namespace gradguard::reference {
namespace {

const gradguard::testing::FixedRapidCheckSeed kSeed;

TEST(Real, RoundsOnceWhereTwoRoundingsWouldDiffer) {
    // Just above a tie of FP32, at a place that FP64 rounds onto the tie.
    const Real above = Real(1) + ldexp(Real(1), -24) + ldexp(Real(1), -200);
    EXPECT_EQ(to_float(above), 0x1.000002p0F);
    EXPECT_EQ(static_cast<float>(to_double(above)), 1.0F);
    EXPECT_EQ(to_float(Real(1) + ldexp(Real(1), -24)), 1.0F);
    EXPECT_EQ(to_float(-above), -0x1.000002p0F);
}

TEST(Real, RoundsIntoTheSubnormalsAndToZero) {
    EXPECT_EQ(to_float(ldexp(Real(1), -150)), 0.0F);
    EXPECT_EQ(to_float(ldexp(Real(1), -150) + ldexp(Real(1), -300)), 0x1p-149F);
    EXPECT_EQ(to_float(ldexp(Real(3), -150)), 0x1p-148F);
    EXPECT_EQ(to_float(ldexp(Real(1), -126) - ldexp(Real(1), -151)), 0x1p-126F);
    EXPECT_EQ(to_double(ldexp(Real(1), -1075)), 0.0);
    EXPECT_EQ(to_double(ldexp(Real(3), -1075)), 0x1p-1073);
    EXPECT_EQ(bits_of(to_float(-ldexp(Real(1), -3000))), kSignBit);
}

TEST(Real, OverflowsExactlyWhereFp32Does) {
    const Real limit = ldexp(Real(1), 128) - ldexp(Real(1), 103);
    EXPECT_EQ(to_float(limit), HUGE_VALF);
    EXPECT_EQ(to_float(limit - ldexp(Real(1), -50)), 0x1.fffffep127F);
    EXPECT_EQ(to_float(-limit), -HUGE_VALF);
    EXPECT_EQ(to_double(ldexp(Real(1), 5000)), HUGE_VAL);
}

RC_GTEST_PROP(Real, EveryFp32ValueComesBack, ()) {
    const float value = gradguard::testing::any_float(gradguard::testing::any_word());
    RC_ASSERT(same_float(to_float(Real(value)), value) || value == 0.0F);
    const double wide = to_double(Real(value));
    RC_ASSERT(wide == static_cast<double>(value) || (std::isnan(value) && std::isnan(wide)));
}

RC_GTEST_PROP(Real, SumsOfTwoFp32ValuesRoundAsTheProcessorRoundsThem, ()) {
    const float a = gradguard::testing::spread_float(gradguard::testing::any_word());
    const float b = gradguard::testing::spread_float(gradguard::testing::any_word());
    // 256 bits hold these sums unless the magnitudes lie far apart, where one rounding to 256 bits changes no tie: the
    // smaller operand is then a tail far below the last place of the larger.
    RC_ASSERT(to_float(Real(a) + Real(b)) == a + b);
    RC_ASSERT(to_float(Real(a) * Real(b)) == a * b);
    if (b != 0.0F) {
        RC_ASSERT(to_float(Real(a) / Real(b)) == a / b);
    }
    RC_ASSERT(to_float(sqrt(abs(Real(a)))) == std::sqrt(std::fabs(a)));
}

TEST(Real, AnExactSumKeepsItsValue) {
    ExactSumOfSquares sum;
    sum.add(3.0F);
    sum.add(-4.0F);
    EXPECT_EQ(to_real(sum), Real(25));
}

}  // namespace
}  // namespace gradguard::reference
