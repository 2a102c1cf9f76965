// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/generators/recipes.h"

namespace gradguard::harness {
namespace {

class DrawInvalid : public ::testing::TestWithParam<Operation> {
  protected:
    static CaseShape shape() {
        CaseShape s;
        s.operation = GetParam();
        s.invalid = true;
        return s;
    }
};
INSTANTIATE_TEST_SUITE_P(Operations, DrawInvalid, ::testing::ValuesIn(kOperations));

/// What each rule's violation has to be.
ErrorKind kind_of(std::string_view rule) {
    if (rule.starts_with("shape of")) return ErrorKind::kShapeMismatch;
    if (rule == "queue") return ErrorKind::kDifferentExecutionQueue;
    if (rule == "step 0" || rule == "maximum") return ErrorKind::kInvalidState;
    if (rule == "step overflow") return ErrorKind::kStepOverflow;
    constexpr std::string_view kTensor[] = {"dtype",   "dimension",       "element count", "4 * element count",
                                            "strides", "rank of strides", "byte offset",   "storage"};
    for (const std::string_view name : kTensor) {
        if (rule == name) return ErrorKind::kInvalidTensor;
    }
    return ErrorKind::kInvalidOption;
}

TEST_P(DrawInvalid, EachCaseBreaksTheRuleThatItNames) {
    for (std::uint64_t index = 0; index < 20000; ++index) {
        const CaseRecipe recipe = draw_case(shape(), 1, "invalid", index);
        const auto violation = violation_of(recipe);
        ASSERT_TRUE(violation) << show(recipe);
        ASSERT_EQ(violation->kind, kind_of(recipe.broken)) << violation->message << '\n' << show(recipe);
    }
}

TEST_P(DrawInvalid, EveryRuleIsBrokenAboutAsOftenAsTheOthers) {
    std::map<std::string_view, int> hits;
    for (std::uint64_t index = 0; index < 20000; ++index) ++hits[draw_case(shape(), 1, "invalid", index).broken];
    const auto rules = invalid_rules(GetParam());
    EXPECT_EQ(hits.size(), rules.size());
    const int even = 20000 / static_cast<int>(rules.size());
    for (const std::string_view rule : rules) {
        EXPECT_GT(hits[rule], even / 2) << rule;
        EXPECT_LT(hits[rule], even * 2) << rule;
    }
}

TEST_P(DrawInvalid, NoStorageIsHugeAndNothingUnreadableHasValues) {
    for (std::uint64_t index = 0; index < 20000; ++index) {
        const CaseRecipe recipe = draw_case(shape(), 1, "invalid", index);
        const auto look = [&](const CaseTensor& tensor) {
            ASSERT_LE(tensor.storage_bytes, 1U << 20U) << show(recipe);
            ASSERT_TRUE(is_readable(tensor) || tensor.values.empty());
        };
        for (const CaseEntry& entry : realise(recipe).entries) {
            look(entry.parameters);
            look(entry.gradients);
            if (!entry.state) continue;
            look(entry.state->first_moment);
            look(entry.state->second_moment);
            if (entry.state->max_second_moment) look(*entry.state->max_second_moment);
        }
    }
}

TEST(InvalidRules, AScanKnowsNoOptionsAndAnUnguardedStepNoGuard) {
    EXPECT_EQ(invalid_rules(Operation::kGuardedStep).size(), 24U);
    EXPECT_EQ(invalid_rules(Operation::kUnguardedStep).size(), 22U);
    EXPECT_EQ(invalid_rules(Operation::kStatistics).size(), 10U);
}

TEST(InvalidRules, ALaterControlIsLookedAtToo) {
    CaseRecipe recipe;
    recipe.later.push_back({});
    EXPECT_FALSE(violation_of(recipe));
    recipe.later[0].control.gradient_scale = 0.0F;
    ASSERT_TRUE(violation_of(recipe));
    EXPECT_EQ(violation_of(recipe)->site.operand, "gradient_scale");
}

}  // namespace
}  // namespace gradguard::harness
