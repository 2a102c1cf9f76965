// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/coefficients.h"

#include <gtest/gtest.h>
#include <bit>
#include <cmath>
#include <limits>

namespace gradguard::reference {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

float decay(float learning_rate, float weight_decay) {
    AdamWOptions options;
    options.learning_rate = learning_rate;
    options.weight_decay = weight_decay;
    return update_coefficients(options, {}, 1.0F, 1).decay;
}

// Contract section 4: fused it would be 0x3F7851EB.
TEST(Coefficients, TheDecaysProductIsRoundedFirst) { EXPECT_EQ(bits(decay(0.1F, 0.3F)), 0x3F7851ECU); }

// cases.csv A07
TEST(Coefficients, SmallProductsVanishInTheDecay) {
    EXPECT_EQ(bits(decay(1e-3F, 1e-4F)), 0x3F7FFFFEU);
    EXPECT_EQ(decay(1e-4F, 1e-4F), 1.0F);
    EXPECT_EQ(decay(0x1p-13F, 0x1p-12F), 1.0F);
    EXPECT_EQ(decay(0x1.000002p-13F, 0x1p-12F), 0x1.fffffep-1F);
}

// cases.csv G02
TEST(Coefficients, ReciprocalsOfExtremeScales) {
    EXPECT_EQ(bits(reciprocal_scale(0x1p-127F)), 0x7F000000U);
    EXPECT_EQ(bits(reciprocal_scale(0x1p126F)), 0x00800000U);
    EXPECT_EQ(bits(reciprocal_scale(0x1p127F)), 0x00400000U);
    EXPECT_EQ(bits(reciprocal_scale(std::numeric_limits<float>::max())), 0x00200000U);
}

// cases.csv A11: a step kept in FP32 or less would stick.
TEST(Coefficients, TheStepKeepsCounting) {
    const float beta2 = std::bit_cast<float>(0x3F7FFFFFU);
    EXPECT_EQ(bits(inverse_bias(beta2, 1ULL << 24U)), 0x3FCA7E36U);
    EXPECT_EQ(bits(inverse_bias(beta2, 3ULL << 23U)), 0x3FA4C386U);
    EXPECT_EQ(bits(inverse_bias(beta2, 1ULL << 25U)), 0x3F9408C5U);
    EXPECT_EQ(bits(inverse_bias(beta2, 1ULL << 26U)), 0x3F82635DU);
    EXPECT_EQ(bits(inverse_bias(0.999F, 256)), 0x408D9F11U);
    EXPECT_EQ(bits(inverse_bias(0.999F, 257)), 0x408D234BU);
}

// cases.csv A12
TEST(Coefficients, TheLastStepHasNoBiasLeft) {
    EXPECT_EQ(inverse_bias(0.9F, std::numeric_limits<std::uint64_t>::max()), 1.0F);
    EXPECT_EQ(inverse_bias(0.999F, std::numeric_limits<std::uint64_t>::max()), 1.0F);
}

TEST(Coefficients, AZeroBetaHasNoBias) { EXPECT_EQ(inverse_bias(0.0F, 1), 1.0F); }

TEST(Coefficients, TheFirstStepsBiasIsTheWidenedBetasComplement) {
    for (const float beta : {0.9F, 0.999F, 0.5F, 0x1.fffffep-1F}) {
        EXPECT_EQ(inverse_bias(beta, 1), static_cast<float>(1.0 / (1.0 - static_cast<double>(beta))));
    }
}

TEST(Coefficients, ThePowerMultipliesInTheContractsOrder) {
    const double beta = static_cast<double>(0.9F);
    EXPECT_EQ(power_by_bits(0.9F, 1), beta);
    EXPECT_EQ(power_by_bits(0.9F, 2), beta * beta);
    EXPECT_EQ(power_by_bits(0.9F, 3), beta * (beta * beta));
    const double fourth = (beta * beta) * (beta * beta);
    EXPECT_EQ(power_by_bits(0.9F, 5), beta * fourth);
    EXPECT_EQ(power_by_bits(0.9F, 7), (beta * (beta * beta)) * fourth);
}

TEST(Coefficients, OneMinusBetaIsRoundedToFp32) {
    const auto c = update_coefficients({}, {.gradient_scale = 128.0F}, 0.25F, 1);
    EXPECT_EQ(c.one_minus_beta1, 1.0F - 0.9F);
    EXPECT_EQ(c.one_minus_beta2, 1.0F - 0.999F);
    EXPECT_EQ(c.r, 0x1p-7F);
    EXPECT_EQ(c.clip, 0.25F);
}

}  // namespace
}  // namespace gradguard::reference
