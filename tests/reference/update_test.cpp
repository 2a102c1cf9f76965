// SPDX-License-Identifier: Apache-2.0
// Golden values of contract section 6 and rows A* of cases.csv, with each operation rounded on its own.
#include "reference/model/update.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "tests/support/property.h"
#include "tests/support/values.h"

namespace gradguard::reference {
namespace {

const gradguard::testing::FixedRapidCheckSeed kSeed;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

ElementState<float> first_step(float p, float g, const AdamWOptions& options, float clip = 1.0F) {
    return update_element(g, {p, 0.0F, 0.0F, 0.0F}, update_coefficients(options, {}, clip, 1));
}

AdamWOptions options_of(float learning_rate, float weight_decay, float epsilon) {
    AdamWOptions options;
    options.learning_rate = learning_rate;
    options.weight_decay = weight_decay;
    options.epsilon = epsilon;
    return options;
}

/// The form in which cases.csv gives some results: 8 digits, which name no single FP32 value.
std::string eight_digits(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.8g", x);
    return text;
}

void expect_bits(const ElementState<float>& state, std::uint32_t p, std::uint32_t m, std::uint32_t v) {
    EXPECT_EQ(bits_of(state.p), p);
    EXPECT_EQ(bits_of(state.m), m);
    EXPECT_EQ(bits_of(state.v), v);
}

TEST(Update, A21_GoldenValues) {
    expect_bits(first_step(1.0F, 0.5F, {}), 0x3F7FBE75U, 0x3D4CCCD0U, 0x39831200U);
    AdamWOptions maximize;
    maximize.maximize = true;
    expect_bits(first_step(1.0F, 0.5F, maximize), 0x3F8020C3U, 0xBD4CCCD0U, 0x39831200U);
}

TEST(Update, A01_LearningRateZeroKeepsTheParameter) {
    expect_bits(first_step(0.75F, 3.0F, options_of(0.0F, 1e-4F, 1e-5F)), 0x3F400000U, 0x3E99999CU, 0x3C137440U);
    expect_bits(first_step(0.75F, 0.0F, options_of(0.0F, 1e-4F, 1e-5F)), 0x3F400000U, 0U, 0U);
    expect_bits(first_step(0.75F, 3.0F, options_of(0x1p-149F, 1e-4F, 1e-5F)), 0x3F400000U, 0x3E99999CU, 0x3C137440U);
}

TEST(Update, A02_ZeroMomentsGiveNoNaN) {
    for (const float epsilon : {1e-8F, 1e-30F}) {
        expect_bits(first_step(0.75F, 0.0F, options_of(1e-3F, 0.0F, epsilon)), 0x3F400000U, 0U, 0U);
    }
}

TEST(Update, A04_DecayComesBeforeTheUpdate) {
    EXPECT_EQ(bits_of(first_step(1.0F, 1.0F, options_of(0.1F, 0.1F, 1e-8F)).p), 0x3F63D70AU);
}

TEST(Update, A05_A06_DecayIsDecoupledAndCarriesTheLearningRate) {
    expect_bits(first_step(1.0F, 0.0F, options_of(0.1F, 0.1F, 1e-5F)), 0x3F7D70A4U, 0U, 0U);
}

TEST(Update, A07_ADecayOfExactlyOneNeverMovesAParameter) {
    ElementState<float> state{1.0F, 0.0F, 0.0F, 0.0F};
    for (std::uint64_t t = 1; t <= 1000; ++t) {
        state = update_element(0.0F, state, update_coefficients(options_of(1e-4F, 1e-4F, 1e-5F), {}, 1.0F, t));
    }
    EXPECT_EQ(state.p, 1.0F);
}

TEST(Update, A09_TheMaximumIsOfTheUncorrectedMoment) {
    AdamWOptions options;
    options.amsgrad = true;
    const auto first = update_element(1.0F, {1.0F}, update_coefficients(options, {}, 1.0F, 1));
    EXPECT_EQ(bits_of(first.x), bits_of(first.v));
    const auto second = update_element(0.0F, first, update_coefficients(options, {}, 1.0F, 2));
    EXPECT_LT(second.v, first.v);
    EXPECT_EQ(bits_of(second.x), bits_of(first.v));  // the corrected first moment would be 1
}

TEST(Update, A15_SecondMomentsOfTwoBetasDiffer) {
    AdamWOptions options;
    EXPECT_EQ(eight_digits(first_step(1.0F, 1.0F, options).v), "0.00099998713");
    options.beta2 = 0.9999F;
    EXPECT_EQ(eight_digits(first_step(1.0F, 1.0F, options).v), "0.00010001659");
}

TEST(Update, A18_AnOverflownSecondMomentFreezesTheElement) {
    const auto state = first_step(1.0F, 1e20F, {});
    expect_bits(state, 0x3F7FFFFEU, 0x5F0AC725U, 0x7F800000U);
    const auto later = update_element(1.0F, state, update_coefficients({}, {}, 1.0F, 2));
    EXPECT_EQ(later.v, kInfinity);
    EXPECT_EQ(later.p, state.p * 0x1.fffffcp-1F);
    const auto clipped = first_step(1.0F, 1e20F, {}, float_of(0x1E3CE508U));
    EXPECT_EQ(bits_of(clipped.p), 0x3F7FBE75U);
    EXPECT_EQ(bits_of(clipped.v), 0x3A831200U);
}

TEST(Update, A19_ABetaOfZeroKeepsNoMemory) {
    AdamWOptions options;
    options.beta1 = 0.0F;
    options.beta2 = 0.0F;
    const auto state = update_element(3.0F, {1.0F, 7.0F, 8.0F, 0.0F}, update_coefficients(options, {}, 1.0F, 5));
    EXPECT_EQ(state.m, 3.0F);
    EXPECT_EQ(state.v, 9.0F);
}

TEST(Update, C09_OneClipForBothTensors) {
    AdamWOptions options;
    options.beta1 = 0.0F;  // m is the effective gradient
    const float clip = float_of(0x3E4CCCCAU);
    EXPECT_EQ(eight_digits(3.0 * double(clip)), "0.59999987");
    EXPECT_EQ(first_step(1.0F, 3.0F, options, clip).m, static_cast<float>(3.0 * double(clip)));
    EXPECT_EQ(eight_digits(first_step(1.0F, 4.0F, options, clip).m), "0.79999983");
}

TEST(Update, TheClipIsNotFoldedIntoTheReciprocal) {
    AdamWOptions options;
    options.beta1 = 0.0F;
    const auto c = update_coefficients(options, {.gradient_scale = 3.0F}, 0.7F, 1);
    bool differs = false;
    for (float raw = 1.0F; raw < 2.0F; raw += 0x1p-8F) {
        EXPECT_EQ(update_element(raw, {1.0F}, c).m, (raw * c.r) * 0.7F);
        differs = differs || (raw * c.r) * 0.7F != raw * (c.r * 0.7F);
    }
    EXPECT_TRUE(differs);
}

TEST(Update, AMaximumKeepsNaNFromEitherSide) {
    AdamWOptions options;
    options.amsgrad = true;
    const auto c = update_coefficients(options, {}, 1.0F, 2);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(is_nan(update_element(1.0F, {1.0F, 0.0F, 0.0F, nan}, c).x));
    EXPECT_TRUE(is_nan(update_element(nan, {1.0F, 0.0F, 0.0F, 1.0F}, c).x));
}

TEST(Update, OfTwoZerosTheMaximumIsPlusZero) {
    const auto c = line_coefficients<float>([] {
        AdamWOptions options;
        options.amsgrad = true;
        return update_coefficients(options, {}, 1.0F, 1);
    }());
    for (const float a : {0.0F, -0.0F}) {
        for (const float b : {0.0F, -0.0F}) EXPECT_EQ(bits_of(Lines<>::running_maximum(a, b, c)), 0U);
    }
}

TEST(Update, WithoutAmsgradNoMaximumIsStored) { EXPECT_EQ(bits_of(first_step(1.0F, 0.5F, {}).x), 0U); }

RC_GTEST_PROP(Update, TheExactReadingRoundsToFp32WhereOneRoundingIsAllThereIs, ()) {
    // beta1 = 0 and r = clip = 1: m is g itself and v is g * g with one rounding.
    AdamWOptions options;
    options.beta1 = 0.0F;
    options.beta2 = 0.0F;
    const auto c = update_coefficients(options, {}, 1.0F, 1);
    const float g = gradguard::testing::spread_float(gradguard::testing::any_word());
    const auto got = update_element(g, {1.0F}, c);
    const auto exact = exact_update(g, {1.0F}, c);
    RC_ASSERT(to_float(exact.m) == got.m);
    RC_ASSERT(to_float(exact.v) == got.v);
}

TEST(Update, TheTwoReadingsAgreeWhereTheCoefficientsAreExact) {
    // Powers of two everywhere: FP32 coefficients lose nothing, t = 1.
    AdamWOptions options = options_of(0x1p-10F, 0x1p-3F, 0x1p-17F);
    options.beta1 = 0.5F;
    options.beta2 = 0.75F;
    const StepControl control{.gradient_scale = 256.0F};
    const auto c = update_coefficients(options, control, 1.0F, 1);
    const auto mathematical = mathematical_coefficients(options, control, {.max_norm = std::nullopt}, Real(3), 1);
    const ElementState<float> old{1.5F, 0.25F, 0.125F, 0.0F};
    const auto a = exact_update(77.0F, old, c);
    const auto b = mathematical_update(77.0F, old, mathematical);
    EXPECT_EQ(a.m, b.m);
    EXPECT_EQ(a.v, b.v);
    EXPECT_EQ(a.p, b.p);
}

TEST(Update, TheMathematicalReadingIsAdamWOnPaper) {
    // First step, no decay: p = p_old - lr * g / (|g| + eps), whatever the betas.
    const AdamWOptions options = options_of(0.125F, 0.0F, 0.5F);
    const auto c = mathematical_coefficients(options, {}, {.max_norm = std::nullopt}, Real(2), 1);
    const auto state = mathematical_update(2.0F, {1.0F}, c);
    const Real error = abs(Real(state.p - (Real(1) - Real(0.125) * Real(2) / Real(2.5))));
    // At most 24 roundings of 2^-256 of numbers up to 1; 1 - beta^t loses up to 10 bits to cancellation.
    EXPECT_LE(error, Real(24) * ldexp(Real(1), -246));
    // A norm of 4 with the limit 1: the gradient is divided by 4 + 1e-6, over the reals.
    const auto clipped = mathematical_coefficients(options, {}, {}, Real(4), 1);
    EXPECT_EQ(clipped.clip, Real(1) / (Real(4) + Real(1e-6F)));
    EXPECT_TRUE(clipped.clips);
}

TEST(Update, InfinitiesAndNaNsGoThroughTheExactReadingAsIeeeSays) {
    const auto c = update_coefficients({}, {}, 1.0F, 2);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const float bad : {kInfinity, -kInfinity, nan}) {
        for (int place = 0; place < 4; ++place) {
            ElementState<float> old{1.0F, 0.5F, 0.25F, 0.0F};
            float raw = 1.0F;
            (place == 0 ? raw : place == 1 ? old.p : place == 2 ? old.m : old.v) = bad;
            const auto got = update_element(raw, old, c);
            const auto exact = exact_update(raw, old, c);
            for (const auto& [f, e] : {std::pair{got.p, exact.p}, {got.m, exact.m}, {got.v, exact.v}}) {
                EXPECT_EQ(is_nan(f), static_cast<bool>(isnan(e))) << bad << " " << place;
                if (std::isinf(f)) {
                    EXPECT_EQ(f, to_float(e)) << bad << " " << place;
                }
            }
        }
    }
}

}  // namespace
}  // namespace gradguard::reference
