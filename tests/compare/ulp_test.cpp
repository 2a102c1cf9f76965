// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/ulp.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <cmath>
#include <limits>

#include "reference/exact/float_bits.h"
#include "tests/support/property.h"
#include "tests/support/values.h"

namespace gradguard::harness {
namespace {

using reference::Real;
using reference::step_ulps;

const gradguard::testing::FixedRapidCheckSeed kSeed;
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Ulp, TheSpacingAcrossBinades) {
    EXPECT_EQ(ulp_of(1.0), 0x1p-23);
    EXPECT_EQ(ulp_of(-1.0), 0x1p-23);
    EXPECT_EQ(ulp_of(std::nextafter(1.0, 0.0)), 0x1p-24);
    EXPECT_EQ(ulp_of(std::nextafter(2.0, 0.0)), 0x1p-23);
    EXPECT_EQ(ulp_of(double(kMax)), 0x1p104);
    EXPECT_EQ(ulp_of(1e300), 0x1p104);
}

// cases.csv N30: measured with the subnormal spacing, a right subnormal result is not refused.
TEST(Ulp, TheSpacingNeverFallsBelowTheSubnormals) {
    EXPECT_EQ(ulp_of(0.0), 0x1p-149);
    EXPECT_EQ(ulp_of(1e-300), 0x1p-149);
    EXPECT_EQ(ulp_of(0x1p-126), 0x1p-149);
    EXPECT_EQ(ulp_of(0x1p-130), 0x1p-149);
    EXPECT_EQ(ulp_error(0.0F, 0x1p-150), 0.5);
    EXPECT_EQ(ulp_error(0x1p-149F, 0.0), 1.0);
}

TEST(Ulp, AcrossZeroTheDistanceAddsUp) {
    EXPECT_EQ(ulp_error(-0x1p-149F, 0x1p-149), 2.0);
    EXPECT_EQ(ulp_error(-0.0F, 0.0), 0.0);
    EXPECT_EQ(ulp_error(1.0F, -1.0), 0x1p24);
}

TEST(Ulp, InfinityIsRightExactlyWhereTheExactResultRoundsToIt) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(ulp_error(kInfinity, 1e39), 0.0);
    EXPECT_EQ(ulp_error(kInfinity, 0x1p128 - 0x1p103), 0.0);
    EXPECT_EQ(ulp_error(kInfinity, double(kMax)), HUGE_VAL);
    EXPECT_EQ(ulp_error(-kInfinity, 1e39), HUGE_VAL);
    EXPECT_EQ(ulp_error(kMax, HUGE_VAL), HUGE_VAL);
    EXPECT_EQ(ulp_error(kInfinity, HUGE_VAL), 0.0);
    EXPECT_EQ(ulp_error(kMax, 0x1p128), 1.0);
}

TEST(Ulp, NaNIsRightOnlyForNaN) {
    EXPECT_EQ(ulp_error(kNaN, 1.0), HUGE_VAL);
    EXPECT_EQ(ulp_error(1.0F, std::nan("")), HUGE_VAL);
    EXPECT_EQ(ulp_error(kNaN, std::nan("")), 0.0);
    EXPECT_EQ(ulp_error(kNaN, Real(1)), HUGE_VAL);
}

TEST(Ulp, ARealJustBelowABinadeKeepsItsFinerSpacing) {
    const Real below = Real(1) - ldexp(Real(1), -200);
    EXPECT_EQ(ulp_error(1.0F + 0x1p-23F, below), 2.0);
    EXPECT_EQ(ulp_error(1.0F + 0x1p-23F, Real(1)), 1.0);
}

RC_GTEST_PROP(Ulp, ANeighbourIsOneAwayAndBothFormsAgree, ()) {
    const float exact = gradguard::testing::spread_float(gradguard::testing::any_word());
    const double wide = exact;
    RC_ASSERT(ulp_error(exact, wide) == 0.0);
    const float away = exact < 0.0F ? step_ulps(exact, -1) : step_ulps(exact, 1);
    if (std::isfinite(away)) {
        RC_ASSERT(ulp_error(away, wide) == 1.0);
        RC_ASSERT(ulp_error(away, Real(wide)) == 1.0);
    }
}

}  // namespace
}  // namespace gradguard::harness
