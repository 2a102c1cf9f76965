// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/fp64_norm.h"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include <vector>

namespace gradguard::reference {
namespace {

TEST(Fp64Norm, ClosedFormsHold) {
    const std::vector<std::pair<std::vector<float>, double>> cases = {
        {{}, 0.0},
        {{0.0F, -0.0F}, 0.0},
        {{3.0F, -4.0F}, 5.0},
        {{0x1p-149F}, 0x1p-149},
        {{0x1p127F, 0x1p127F, 0x1p127F, 0x1p127F}, 0x1p128},
        {{0x1p-126F, 0.0F}, 0x1p-126},
        {std::vector<float>(1 << 10, 0.5F), 16.0}};
    for (const auto& [values, norm] : cases) {
        EXPECT_EQ(plain_norm(values), norm);
        EXPECT_EQ(scaled_norm(values), norm);
    }
}

TEST(Fp64Norm, PlainAndScaledAgreeWithinTheirRounding) {
    std::vector<float> values;
    float value = 1e-30F;
    for (int i = 0; i < 2000; ++i) {
        values.push_back((i % 3 == 0 ? -1.0F : 1.0F) * value);
        value *= 1.07F;
    }
    // Each does at most 4 roundings of 2^-53 for an element and a few at the end; the root halves them.
    const double bound = (4.0 * static_cast<double>(values.size()) + 8.0) * 0x1p-53;
    const double plain = plain_norm(values);
    EXPECT_LE(std::fabs(scaled_norm(values) - plain), bound * plain);
}

TEST(Fp64Norm, AScanSeparatesBadFromGood) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const std::vector<float> raw = {3.0F, kInfinity, -4.0F, std::numeric_limits<float>::quiet_NaN(), 0.0F};
    const Fp64Scan scan = scan_gradients(raw, 1.0F);
    EXPECT_TRUE(scan.bad);
    EXPECT_EQ(scan.first_bad, 1U);
    EXPECT_EQ(scan.norm, 5.0);
    EXPECT_EQ(scan.max_finite_abs, 4.0F);
    EXPECT_EQ(scan.elements, 5U);
}

TEST(Fp64Norm, AFiniteValueThatOverflowsOnUnscalingIsBad) {
    const std::vector<float> raw = {3e38F, 1.0F};
    EXPECT_TRUE(scan_gradients(raw, 2.0F).bad);
    EXPECT_FALSE(scan_gradients(raw, 1.0F).bad);
}

}  // namespace
}  // namespace gradguard::reference
