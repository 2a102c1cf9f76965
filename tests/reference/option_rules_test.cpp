// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/option_rules.h"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

namespace gradguard::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kLeast = std::numeric_limits<float>::denorm_min();

template <class Change>
std::optional<Violation> with_options(Change change) {
    AdamWOptions options;
    change(options);
    return check_options(options);
}

void expect_refused(const std::optional<Violation>& violation, const char* operand) {
    ASSERT_TRUE(violation.has_value()) << operand;
    EXPECT_EQ(violation->kind, ErrorKind::kInvalidOption);
    EXPECT_EQ(violation->site.operand, operand);
    EXPECT_FALSE(violation->site.entry.has_value());
    EXPECT_FALSE(violation->message.empty());
}

TEST(OptionRules, TheDefaultsAreTheContracts) {
    const AdamWOptions options;
    EXPECT_EQ(options.learning_rate, 1e-3F);
    EXPECT_EQ(options.beta1, 0.9F);
    EXPECT_EQ(options.beta2, 0.999F);
    EXPECT_EQ(options.epsilon, 1e-5F);
    EXPECT_EQ(options.weight_decay, 1e-4F);
    EXPECT_FALSE(options.amsgrad);
    EXPECT_FALSE(options.maximize);
    EXPECT_EQ(StepControl{}.gradient_scale, 1.0F);
    EXPECT_FALSE(StepControl{}.skip_update);
    EXPECT_EQ(GradientGuardOptions{}.max_norm, 1.0F);
    EXPECT_EQ(GradientGuardOptions{}.epsilon, 1e-6F);
    EXPECT_EQ(GradientGuardOptions{}.nonfinite, NonFinitePolicy::kSkip);
    EXPECT_FALSE(check_options({}) || check_control({}) || check_guard({}));
}

TEST(OptionRules, LearningRateAndWeightDecayAreFiniteAndNotNegative) {
    for (const float good : {0.0F, -0.0F, kLeast, 0.1F, 1e30F}) {
        EXPECT_FALSE(with_options([&](auto& o) { o.learning_rate = good; })) << good;
        EXPECT_FALSE(with_options([&](auto& o) { o.weight_decay = good; })) << good;
    }
    for (const float bad : {-kLeast, -1.0F, kInfinity, -kInfinity, kNaN}) {
        expect_refused(with_options([&](auto& o) { o.learning_rate = bad; }), "learning_rate");
        expect_refused(with_options([&](auto& o) { o.weight_decay = bad; }), "weight_decay");
    }
}

TEST(OptionRules, TheProductOfLearningRateAndWeightDecayIsFinite) {
    const auto product = [](float rate, float decay) {
        return with_options([&](auto& o) {
            o.learning_rate = rate;
            o.weight_decay = decay;
        });
    };
    EXPECT_FALSE(product(kMax, 1.0F));
    EXPECT_FALSE(product(0x1p64F, 0x1.fffffep63F));
    expect_refused(product(0x1p64F, 0x1p64F), "weight_decay");
    expect_refused(product(kMax, std::nextafter(1.0F, 2.0F)), "weight_decay");
}

TEST(OptionRules, TheProductRuleAgreesWithFp32Multiplication) {
    for (float a = 0x1p63F; a < 0x1p65F; a *= 1.0003F) {
        const float around = kMax / a;
        for (const float b : {std::nextafter(around, 0.0F), around, std::nextafter(around, kInfinity)}) {
            volatile float product = a * b;
            EXPECT_EQ(has_finite_product(a, b), std::isfinite(product)) << a << " " << b;
        }
    }
}

TEST(OptionRules, BetasLieInZeroToOne) {
    for (const float good : {0.0F, -0.0F, kLeast, 0.9F, 0x1.fffffep-1F}) {
        EXPECT_FALSE(with_options([&](auto& o) { o.beta1 = good; })) << good;
        EXPECT_FALSE(with_options([&](auto& o) { o.beta2 = good; })) << good;
    }
    for (const float bad : {1.0F, -0.1F, 2.0F, kInfinity, -kInfinity, kNaN}) {
        expect_refused(with_options([&](auto& o) { o.beta1 = bad; }), "beta1");
        expect_refused(with_options([&](auto& o) { o.beta2 = bad; }), "beta2");
    }
}

TEST(OptionRules, EpsilonsArePositive) {
    for (const float good : {kLeast, 1e-8F, 1.0F, kMax}) {
        EXPECT_FALSE(with_options([&](auto& o) { o.epsilon = good; })) << good;
        EXPECT_FALSE(check_guard({.epsilon = good})) << good;
    }
    for (const float bad : {0.0F, -0.0F, -1.0F, kInfinity, kNaN}) {
        expect_refused(with_options([&](auto& o) { o.epsilon = bad; }), "epsilon");
        expect_refused(check_guard({.epsilon = bad}), "guard_epsilon");
    }
}

// cases.csv G02, G03
TEST(OptionRules, TheLossScaleHasAFiniteReciprocal) {
    for (const float good : {0x1p-127F, 1.0F, 3.0F, 0x1p126F, 0x1p127F, kMax}) {
        EXPECT_FALSE(check_control({.gradient_scale = good})) << good;
    }
    for (const bool skip : {false, true}) {
        for (const float bad : {0.0F, -0.0F, -1.0F, kNaN, kInfinity, -kInfinity, kLeast, 0x1p-128F}) {
            expect_refused(check_control({.gradient_scale = bad, .skip_update = skip}), "gradient_scale");
        }
    }
}

TEST(OptionRules, TheReciprocalRuleAgreesWithFp32Division) {
    for (std::uint32_t mantissa = 0x00200000U - 40; mantissa < 0x00200000U + 40; ++mantissa) {
        const float scale = std::bit_cast<float>(mantissa);  // around 2^-128
        volatile float reciprocal = 1.0F / scale;
        EXPECT_EQ(has_finite_reciprocal(scale), std::isfinite(reciprocal)) << scale;
    }
}

// cases.csv C03
TEST(OptionRules, MaxNormIsAbsentOrFiniteAndNotNegative) {
    EXPECT_FALSE(check_guard({.max_norm = std::nullopt}));
    for (const float good : {0.0F, -0.0F, kLeast, 1.0F, kMax}) EXPECT_FALSE(check_guard({.max_norm = good})) << good;
    for (const float bad : {-1.0F, -kLeast, kNaN, kInfinity, -kInfinity}) {
        expect_refused(check_guard({.max_norm = bad}), "max_norm");
    }
}

}  // namespace
}  // namespace gradguard::reference
