// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "harness/case/case_file.h"
#include "harness/generators/shrinking.h"
#include "reference/exact/float_bits.h"
#include "tests/generators/recipes.h"

namespace gradguard::harness {
namespace {

using Predicate = std::function<bool(const Case&)>;

struct Minimal {
    CaseRecipe recipe;
    int tries = 0;
};

/// Takes the first simpler recipe that still fails, until there is none.
Minimal minimise(CaseRecipe recipe, const Predicate& fails) {
    Minimal minimal{std::move(recipe)};
    for (bool moved = true; moved;) {
        moved = false;
        for (CaseRecipe& simpler : shrink(minimal.recipe)) {
            ++minimal.tries;
            if (!fails(realise(simpler))) continue;
            minimal.recipe = std::move(simpler);
            moved = true;
            break;
        }
    }
    return minimal;
}

CaseShape wide(bool invalid = false) {
    CaseShape shape;
    shape.max_elements = 4097;
    shape.max_later_steps = 3;
    shape.invalid = invalid;
    return shape;
}

/// The minimal recipes of the first `count` drawn cases that fail.
std::vector<Minimal> minimal_ones(const CaseShape& shape, int count, const Predicate& fails) {
    std::vector<Minimal> all;
    for (std::uint64_t index = 0; static_cast<int>(all.size()) < count && index < 20000; ++index) {
        CaseRecipe recipe = draw_case(shape, 1, "shrink", index);
        if (fails(realise(recipe))) all.push_back(minimise(std::move(recipe), fails));
    }
    EXPECT_EQ(static_cast<int>(all.size()), count);
    return all;
}

std::uint64_t nonzero_of(const Case& c) {
    std::uint64_t sum = 0;
    const auto add = [&](const CaseTensor& tensor) {
        for (const std::uint32_t bits : words_of(tensor.values, tensor.layout.dtype)) sum += bits != 0 ? 1 : 0;
    };
    for (const CaseEntry& entry : c.entries) {
        add(entry.parameters);
        add(entry.gradients);
        if (!entry.state) continue;
        add(entry.state->first_moment);
        add(entry.state->second_moment);
        if (entry.state->max_second_moment) add(*entry.state->max_second_moment);
    }
    return sum;
}

bool is_nan(std::uint32_t bits, DType dtype) {
    const std::uint32_t magnitude = bits & (dtype == DType::kF32 ? 0x7FFFFFFFU : 0x7FFFU);
    return magnitude > (dtype == DType::kF32 ? 0x7F800000U : dtype == DType::kF16 ? 0x7C00U : 0x7F80U);
}

bool has_nan_gradient(const Case& c) {
    return std::ranges::any_of(c.entries, [](const CaseEntry& entry) {
        const DType dtype = entry.gradients.layout.dtype;
        return std::ranges::any_of(words_of(entry.gradients.values, dtype),
                                   [&](std::uint32_t w) { return is_nan(w, dtype); });
    });
}

TEST(Shrink, ANaNGradientShrinksToOneElement) {
    for (const Minimal& minimal : minimal_ones(wide(), 10, has_nan_gradient)) {
        const Case c = realise(minimal.recipe);
        EXPECT_EQ(elements_of(c), 1U) << show(c);
        EXPECT_EQ(nonzero_of(c), 1U) << show(c);
        EXPECT_EQ(c.entries.size(), 1U);
        EXPECT_FALSE(c.entries[0].state);
        EXPECT_TRUE(c.later.empty());
        EXPECT_EQ(words_of(c.entries[0].gradients.values, DType::kF32)[0], 0x7FC00000U) << show(c);
        EXPECT_LT(minimal.tries, 1000);
    }
}

TEST(Shrink, AGroupOfMoreThan1024ElementsShrinksToZerosOf1025) {
    const auto fails = [](const Case& c) { return elements_of(c) >= 1025; };
    for (const Minimal& minimal : minimal_ones(wide(), 10, fails)) {
        const Case c = realise(minimal.recipe);
        EXPECT_EQ(elements_of(c), 1025U) << show(c);
        EXPECT_EQ(nonzero_of(c), 0U) << show(c);
        EXPECT_EQ(c.options.weight_decay, 0.0F);
        EXPECT_FALSE(c.guard.max_norm);
        EXPECT_LT(minimal.tries, 3000);
    }
}

TEST(Shrink, AnElementThatFailsWithItsNeighboursInOtherArraysIsFound) {
    // One element where gradient, parameter and first moment have the same sign, whatever the other elements are.
    const auto fails = [](const Case& c) {
        return std::ranges::any_of(c.entries, [](const CaseEntry& entry) {
            if (!entry.state) return false;
            const DType dtype = entry.gradients.layout.dtype;
            const auto g = words_of(entry.gradients.values, dtype);
            const auto p = words_of(entry.parameters.values, DType::kF32);
            const auto m = words_of(entry.state->first_moment.values, DType::kF32);
            for (std::size_t i = 0; i < g.size(); ++i) {
                const bool negative = dtype == DType::kF32 ? g[i] > 0x80000000U : g[i] > 0x8000U;
                if (negative && p[i] > 0x80000000U && m[i] > 0x80000000U) return true;
            }
            return false;
        });
    };
    CaseShape shape = wide();
    shape.max_elements = 300;
    for (const Minimal& minimal : minimal_ones(shape, 10, fails)) {
        const Case c = realise(minimal.recipe);
        EXPECT_EQ(elements_of(c), 1U) << show(c);
        EXPECT_EQ(nonzero_of(c), 3U) << show(c);
        EXPECT_EQ(words_of(c.entries[0].parameters.values, DType::kF32)[0], 0xBF800000U) << show(c);
    }
}

TEST(Shrink, ALaterStepThatFailsAloneComesFirst) {
    const auto fails = [](const Case& c) { return !c.later.empty() && c.later.back().control.gradient_scale == 3.0F; };
    for (const Minimal& minimal : minimal_ones(wide(), 5, fails)) {
        EXPECT_EQ(minimal.recipe.later.size(), 1U);
        EXPECT_TRUE(minimal.recipe.entries.empty());
    }
}

TEST(Shrink, AStepBeyond2To24ShrinksToItsLeastCount) {
    const auto fails = [](const Case& c) {
        return std::ranges::any_of(c.entries, [](const CaseEntry& e) { return e.state && e.state->step >= 1U << 24U; });
    };
    for (const Minimal& minimal : minimal_ones(wide(), 10, fails)) {
        EXPECT_EQ(minimal.recipe.entries[0].state->step, 1U << 24U);
    }
}

TEST(Shrink, EveryProposalIsStrictlySimplerAndAsValid) {
    for (const Operation operation : kOperations) {
        CaseShape shape = wide();
        shape.operation = operation;
        for (std::uint64_t index = 0; index < 60; ++index) {
            const CaseRecipe recipe = draw_case(shape, 1, "simpler", index);
            for (const CaseRecipe& simpler : shrink(recipe)) {
                ASSERT_LT(measure_of(simpler), measure_of(recipe));
                ASSERT_FALSE(violation_of(simpler)) << show(simpler);
                ASSERT_TRUE(operation != Operation::kUnguardedStep || simpler.entries.size() == 1);
            }
        }
    }
}

TEST(Shrink, AnInvalidCaseKeepsItsRuleAndLosesTheRest) {
    for (const Operation operation : kOperations) {
        CaseShape shape = wide(true);
        shape.operation = operation;
        for (std::uint64_t index = 0; index < 150; ++index) {
            const CaseRecipe recipe = draw_case(shape, 1, "broken", index);
            const auto before = violation_of(recipe);
            ASSERT_TRUE(before);
            const auto fails = [&](const Case& c) { return violation_of(c).has_value(); };
            const Minimal minimal = minimise(recipe, fails);
            const auto after = violation_of(minimal.recipe);
            ASSERT_TRUE(after);
            EXPECT_EQ(after->kind, before->kind) << show(minimal.recipe);
            EXPECT_EQ(after->site.operand, before->site.operand) << show(minimal.recipe);
            EXPECT_LE(minimal.recipe.entries.size(), 2U) << show(minimal.recipe);
            EXPECT_EQ(nonzero_of(realise(minimal.recipe)), 0U) << show(minimal.recipe);
        }
    }
}

TEST(Shrink, ProposalsAreTheSameEveryTime) {
    const CaseRecipe recipe = draw_case(wide(), 1, "again", 4);
    const auto first = shrink(recipe);
    const auto second = shrink(recipe);
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
        ASSERT_EQ(case_to_json(realise(first[i])), case_to_json(realise(second[i])));
    }
}

TEST(Shrink, TheSimplestRecipeHasNothingSimpler) {
    EXPECT_TRUE(shrink(minimise(draw_case(wide(), 1, "end", 0), [](const Case&) { return true; }).recipe).empty());
}

TEST(Complexity, OrdersNumbersAsAReaderDoes) {
    const auto of = [](float x) { return complexity(reference::bits_of(x), DType::kF32); };
    EXPECT_EQ(of(0.0F), 0U);
    EXPECT_LT(of(1.0F), of(-1.0F));
    EXPECT_LT(of(1.0F), of(2.0F));
    EXPECT_LT(of(2.0F), of(3.0F));
    EXPECT_LT(of(3.0F), of(0.1F));
    EXPECT_LT(of(0.1F), complexity(0x7F800000U, DType::kF32));
    EXPECT_LT(complexity(0x7F800000U, DType::kF32), complexity(0x7FC00000U, DType::kF32));
    EXPECT_LT(complexity(0x7FC00000U, DType::kF32), complexity(0x7FC00001U, DType::kF32));
}

}  // namespace
}  // namespace gradguard::harness
