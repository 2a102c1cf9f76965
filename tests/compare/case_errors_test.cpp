// SPDX-License-Identifier: Apache-2.0
// Refusals: the contract's kind at the contract's place, before any device call, and nothing else.
#include <gtest/gtest.h>
#include <limits>

#include "harness/compare/case_judge.h"
#include "tests/compare/oracle_outcome.h"

namespace gradguard::harness {
namespace {

using gradguard::testing::case_entry;
using gradguard::testing::case_tensor;
using gradguard::testing::oracle_outcome;

Case two_entries() {
    Case c;
    c.entries = {case_entry({1.0F, 2.0F}, case_tensor({0.5F, 0.25F}), 4), case_entry({3.0F}, case_tensor({1.0F}))};
    return c;
}

Outcome refusal(ErrorKind kind, std::optional<std::size_t> entry, const char* operand,
                std::optional<std::uint64_t> calls = 0) {
    Outcome outcome;
    StepOutcome step;
    step.error = OutcomeError{kind, entry, operand, "as it came"};
    step.device_calls = calls;
    outcome.steps.push_back(std::move(step));
    return outcome;
}

bool passes(const Case& c, const Outcome& outcome, const Abilities& abilities = {}) {
    return judge_case(c, outcome, abilities).ok();
}

TEST(CaseErrors, TheRightRefusalPassesAndEveryOtherFails) {
    Case c = two_entries();
    c.entries[1].gradients.layout.byte_offset = 2;
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kInvalidTensor, 1, "gradients")));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kInvalidTensor, 0, "gradients")));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kInvalidTensor, 1, "parameters")));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kShapeMismatch, 1, "gradients")));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kInvalidTensor, {}, "gradients")));
    EXPECT_FALSE(passes(c, oracle_outcome(two_entries())));
}

TEST(CaseErrors, ARefusalAfterADeviceCallFails) {
    Case c = two_entries();
    c.control.gradient_scale = 0.0F;
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kInvalidOption, {}, "gradient_scale")));
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kInvalidOption, {}, "gradient_scale", std::nullopt)));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kInvalidOption, {}, "gradient_scale", 1)));
}

TEST(CaseErrors, OfTwoRulesThatOneEntryBreaksEitherMayBeReported) {
    Case c = two_entries();
    c.entries[0].gradients.queue = 1;
    c.entries[0].state->step = std::numeric_limits<std::uint64_t>::max();
    c.entries[1].gradients.layout.byte_offset = 2;
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kDifferentExecutionQueue, 0, "gradients")));
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kStepOverflow, 0, "step")));
    // The first entry that offends is the one named.
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kInvalidTensor, 1, "gradients")));
    // A rule that it does not break.
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kInvalidState, 0, "step")));
}

TEST(CaseErrors, OptionsComeBeforeControlGuardAndEntries) {
    Case c = two_entries();
    c.entries[0].gradients.queue = 1;
    c.guard.epsilon = 0.0F;
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kInvalidOption, {}, "guard_epsilon")));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kDifferentExecutionQueue, 0, "gradients")));
    c.options.beta1 = 1.0F;
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kInvalidOption, {}, "beta1")));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kInvalidOption, {}, "guard_epsilon")));
    c.operation = Operation::kUnguardedStep;
    c.entries.pop_back();
    c.options.beta1 = 0.5F;
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kDifferentExecutionQueue, 0, "gradients")));
}

TEST(CaseErrors, AValidGroupThatIsRefusedFails) {
    EXPECT_FALSE(passes(two_entries(), refusal(ErrorKind::kInvalidTensor, 0, "gradients")));
    EXPECT_FALSE(passes(two_entries(), refusal(ErrorKind::kNonFiniteGradients, {}, "gradients")));
    EXPECT_FALSE(passes(two_entries(), refusal(ErrorKind::kDeviceFailure, {}, "")));
}

TEST(CaseErrors, ABadGroupUnderPolicyErrorIsNonFiniteGradients) {
    Case c = two_entries();
    c.guard.nonfinite = NonFinitePolicy::kError;
    c.entries[1].gradients = case_tensor({std::numeric_limits<float>::infinity()});
    EXPECT_TRUE(passes(c, oracle_outcome(c)));
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kNonFiniteGradients, {}, "gradients", 5)));
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kNonFiniteGradients, 1, "gradients", 5)));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kNonFiniteGradients, 0, "gradients", 5)));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kReadback, {}, "gradients", 5)));
    Case skipping = c;
    skipping.guard.nonfinite = NonFinitePolicy::kSkip;
    EXPECT_FALSE(passes(c, oracle_outcome(skipping)));
    Outcome late = refusal(ErrorKind::kNonFiniteGradients, {}, "gradients", 5);
    late.steps[0].update_launches = 1;
    EXPECT_FALSE(passes(c, late));
}

TEST(CaseErrors, TheStepCountOverflowsOnlyAfterTheStepBefore) {
    Case c = two_entries();
    c.entries[0].state->step = std::numeric_limits<std::uint64_t>::max() - 1;
    c.later.push_back({{}, {c.entries[0].gradients.values, c.entries[1].gradients.values}});
    const Outcome outcome = oracle_outcome(c);
    ASSERT_EQ(outcome.steps.size(), 2U);
    ASSERT_TRUE(outcome.steps[1].error);
    EXPECT_TRUE(passes(c, outcome));
    Outcome early = outcome;
    early.steps.erase(early.steps.begin());
    EXPECT_FALSE(passes(c, early));
}

TEST(CaseErrors, StatisticsValidateTheirGradientsOnly) {
    Case c = two_entries();
    c.operation = Operation::kStatistics;
    c.options.beta1 = 7.0F;
    c.entries[0].parameters.queue = 9;
    EXPECT_TRUE(passes(c, oracle_outcome(c)));
    c.entries[1].gradients.queue = 1;
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kDifferentExecutionQueue, 1, "gradients")));
    EXPECT_FALSE(passes(c, refusal(ErrorKind::kDifferentExecutionQueue, 0, "gradients")));
}

TEST(CaseErrors, WhoDoesNotValidateIsNotAskedTo) {
    Case c = two_entries();
    c.control.gradient_scale = 0.0F;
    Abilities abilities;
    abilities.validates = false;
    EXPECT_TRUE(passes(c, oracle_outcome(two_entries()), abilities));
}

TEST(CaseErrors, ADeviceWithoutABlockIsUnsupportedWhereSomethingIsScanned) {
    Case c = two_entries();
    Abilities abilities;
    abilities.block_limit = 0;
    EXPECT_TRUE(passes(c, refusal(ErrorKind::kUnsupportedDevice, {}, ""), abilities));
    EXPECT_FALSE(passes(c, oracle_outcome(c), abilities));
    c.control.skip_update = true;
    EXPECT_TRUE(passes(c, oracle_outcome(c), abilities));
}

}  // namespace
}  // namespace gradguard::harness
