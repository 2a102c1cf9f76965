// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "harness/case/case_file.h"
#include "harness/generators/random.h"
#include "harness/generators/rapidcheck_gen.h"
#include "reference/exact/float_bits.h"
#include "reference/exact/widen.h"
#include "reference/model/gradient_view.h"
#include "reference/model/update.h"
#include "tests/generators/recipes.h"

namespace gradguard::harness {
namespace {

std::string text_of(const CaseShape& shape, std::uint64_t seed, std::string_view property, std::uint64_t index) {
    return case_to_json(realise(draw_case(shape, seed, property, index)));
}

TEST(DrawCase, TheSameArgumentsGiveTheSameCaseWhateverWasDrawnBefore) {
    const CaseShape shape;
    const std::string third = text_of(shape, 1, "a", 3);
    for (std::uint64_t index = 10; index > 3; --index) text_of(shape, 1, "a", index);
    EXPECT_EQ(text_of(shape, 1, "a", 3), third);
}

TEST(DrawCase, SeedPropertyAndIndexEachMakeAnotherCase) {
    const CaseShape shape;
    const std::string text = text_of(shape, 1, "a", 3);
    EXPECT_NE(text_of(shape, 2, "a", 3), text);
    EXPECT_NE(text_of(shape, 1, "b", 3), text);
    EXPECT_NE(text_of(shape, 1, "a", 4), text);
}

/// The same on every machine: a change of what is drawn has to change these numbers on purpose.
TEST(DrawCase, TheCasesOfASeedAreTheseOnes) {
    const auto hash = [](CaseShape shape) {
        std::string all;
        for (std::uint64_t index = 0; index < 50; ++index) all += text_of(shape, 7, "golden", index);
        return hash_of(all);
    };
    CaseShape plain;
    plain.max_later_steps = 2;
    EXPECT_EQ(hash(plain), 14084105822605152211ULL);
    CaseShape invalid;
    invalid.invalid = true;
    EXPECT_EQ(hash(invalid), 6390698379778210842ULL);
    CaseShape balanced;
    balanced.balanced = true;
    EXPECT_EQ(hash(balanced), 12810741132078687338ULL);
}

class DrawValid : public ::testing::TestWithParam<Operation> {};
INSTANTIATE_TEST_SUITE_P(Operations, DrawValid, ::testing::ValuesIn(kOperations));

TEST_P(DrawValid, NoRuleIsBroken) {
    for (const bool balanced : {false, true}) {
        CaseShape shape;
        shape.operation = GetParam();
        shape.balanced = balanced;
        shape.max_later_steps = 2;
        for (std::uint64_t index = 0; index < 20000; ++index) {
            const CaseRecipe recipe = draw_case(shape, 1, "valid", index);
            const auto violation = violation_of(recipe);
            ASSERT_FALSE(violation) << violation->message << '\n' << show(recipe);
        }
    }
}

TEST_P(DrawValid, TheGroupHasNoMoreAndNoFewerElementsThanAsked) {
    CaseShape shape;
    shape.operation = GetParam();
    shape.min_elements = 10;
    shape.max_elements = 1100;
    for (std::uint64_t index = 0; index < 3000; ++index) {
        const Case c = realise(draw_case(shape, 1, "elements", index));
        ASSERT_GE(elements_of(c), 10U);
        ASSERT_LE(elements_of(c), 1100U);
        ASSERT_LE(c.entries.size(), GetParam() == Operation::kUnguardedStep ? 1U : shape.max_entries);
    }
}

TEST_P(DrawValid, AnExactGroupIsExact) {
    CaseShape shape;
    shape.operation = GetParam();
    shape.max_elements = 64;
    shape.exact_group_elements = true;
    for (std::uint64_t index = 0; index < 1000; ++index) {
        ASSERT_EQ(elements_of(realise(draw_case(shape, 1, "exact", index))), 64U);
    }
}

TEST(DrawCase, NothingIsDrawnThatASubjectDoesNotTake) {
    CaseShape shape;
    shape.max_later_steps = 2;
    shape.abilities.f16 = false;
    shape.abilities.bf16 = false;
    shape.abilities.amsgrad = false;
    shape.abilities.maximize = false;
    shape.abilities.skips = false;
    for (std::uint64_t index = 0; index < 5000; ++index) {
        const Case c = realise(draw_case(shape, 1, "abilities", index));
        ASSERT_FALSE(c.options.amsgrad || c.options.maximize || c.control.skip_update);
        const auto good = [](const std::vector<std::byte>& values, float scale) {
            const auto words = words_of(values, DType::kF32);
            return std::ranges::all_of(words, [&](std::uint32_t bits) {
                return reference::is_finite_bits(reference::float_of(bits) * reference::reciprocal_scale(scale));
            });
        };
        for (std::size_t i = 0; i < c.entries.size(); ++i) {
            ASSERT_EQ(c.entries[i].gradients.layout.dtype, DType::kF32);
            ASSERT_TRUE(good(c.entries[i].gradients.values, c.control.gradient_scale));
            for (const LaterStep& later : c.later) ASSERT_TRUE(good(later.gradients[i], later.control.gradient_scale));
        }
    }
}

TEST(DrawCase, AHalfPrecisionSubjectGetsHalfPrecision) {
    CaseShape shape;
    shape.abilities.f32 = false;
    shape.abilities.f16 = false;
    for (std::uint64_t index = 0; index < 500; ++index) {
        for (const EntryRecipe& entry : draw_case(shape, 1, "half", index).entries) {
            ASSERT_EQ(entry.gradients.dtype, DType::kBF16);
        }
    }
}

TEST(DrawCase, OldValuesAreTameWhereAsked) {
    CaseShape shape;
    shape.any_bits_in_state = false;
    for (std::uint64_t index = 0; index < 3000; ++index) {
        for (const CaseEntry& entry : realise(draw_case(shape, 1, "tame", index)).entries) {
            for (const std::uint32_t bits : words_of(entry.parameters.values, DType::kF32)) {
                ASSERT_TRUE(reference::is_finite_bits(reference::float_of(bits)));
            }
            if (!entry.state) continue;
            for (const std::uint32_t bits : words_of(entry.state->second_moment.values, DType::kF32)) {
                ASSERT_LT(bits, reference::kExponentBits);
            }
        }
    }
}

TEST(DrawCase, ARapidCheckGeneratorShrinksToSimplerRecipes) {
    const auto drawn = case_recipes(CaseShape{})(rc::Random(5), rc::kNominalSize);
    auto shrinks = drawn.shrinks();
    const auto first = shrinks.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(case_to_json(realise(first->value())), case_to_json(realise(shrink(drawn.value()).front())));
}

/// The two summands of m and of v, each with the operands that the device sees.
struct Summands {
    float old, added;
    bool balanced() const {
        const float a = old < 0 ? -old : old;
        const float b = added < 0 ? -added : added;
        return a >= 0x1p-126F && b >= 0x1p-126F && a <= 4 * b && b <= 4 * a;
    }
};

/// Total norm in FP64, near enough to see which side of a factor of 4 a summand is on.
double norm_of(const Case& c, float r) {
    double sum = 0;
    for (const CaseEntry& entry : c.entries) {
        const reference::GradientView view{entry.gradients.layout.dtype, entry.gradients.values.data(),
                                           count(entry.gradients)};
        for (std::uint64_t i = 0; i < view.elements; ++i) {
            const double g = reference::raw_value(view, i) * r;
            sum += g * g;
        }
    }
    return std::sqrt(sum);
}

TEST(DrawBalanced, TheSummandsOfBothMomentsAreWithinAFactorOfFour) {
    CaseShape shape;
    shape.balanced = true;
    shape.min_elements = 1;
    std::uint64_t judged = 0;
    std::uint64_t parameters_balanced = 0;
    for (std::uint64_t index = 0; index < 3000; ++index) {
        const CaseRecipe recipe = draw_case(shape, 1, "balanced", index);
        const Case c = realise(recipe);
        const float r = reference::reciprocal_scale(c.control.gradient_scale);
        const double norm = norm_of(c, r);
        const float clip =
            !c.guard.max_norm ? 1.0F : static_cast<float>(std::min(1.0, *c.guard.max_norm / (norm + c.guard.epsilon)));
        for (const CaseEntry& entry : c.entries) {
            const auto coefficients = reference::update_coefficients(c.options, c.control, clip, entry.state->step + 1);
            const reference::GradientView view{entry.gradients.layout.dtype, entry.gradients.values.data(),
                                               count(entry.gradients)};
            const auto p = words_of(entry.parameters.values, DType::kF32);
            const auto m = words_of(entry.state->first_moment.values, DType::kF32);
            const auto v = words_of(entry.state->second_moment.values, DType::kF32);
            const auto& maximum = entry.state->max_second_moment;
            const auto x = maximum ? words_of(maximum->values, DType::kF32) : std::vector<std::uint32_t>(p.size(), 0);
            for (std::size_t i = 0; i < p.size(); ++i) {
                const float g = reference::raw_value(view, i) * r * clip;
                const Summands first{coefficients.beta1 * reference::float_of(m[i]), coefficients.one_minus_beta1 * g};
                const Summands second{coefficients.beta2 * reference::float_of(v[i]),
                                      coefficients.one_minus_beta2 * (g * g)};
                ASSERT_TRUE(first.balanced() && second.balanced()) << show(recipe);
                const reference::ElementState<float> old{reference::float_of(p[i]), reference::float_of(m[i]),
                                                         reference::float_of(v[i]), reference::float_of(x[i])};
                const auto next = reference::update_element(reference::raw_value(view, i), old, coefficients);
                const float kept = old.p * coefficients.decay;
                parameters_balanced += Summands{kept, kept - next.p}.balanced() ? 1 : 0;
                ++judged;
            }
        }
    }
    EXPECT_GT(judged, 10000U);
    // The line of p depends on the step and epsilon too.
    EXPECT_GT(parameters_balanced * 10, judged * 9);
}

}  // namespace
}  // namespace gradguard::harness
