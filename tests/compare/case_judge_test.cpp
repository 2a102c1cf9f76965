// SPDX-License-Identifier: Apache-2.0
// A right outcome passes; each thing that can be wrong with one is found, and told with its place.
#include "harness/compare/case_judge.h"

#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include <limits>

#include "reference/exact/float_bits.h"
#include "tests/compare/oracle_outcome.h"

namespace gradguard::harness {
namespace {

using gradguard::testing::case_entry;
using gradguard::testing::case_tensor;
using gradguard::testing::oracle_outcome;
using reference::step_ulps;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Three entries, the middle one empty; a first update and a state; three steps with changing gradients, the second
/// skipped by request.
Case three_steps(bool amsgrad = false) {
    Case c;
    c.options.amsgrad = amsgrad;
    c.options.weight_decay = 0.3F;
    c.options.learning_rate = 0.1F;
    c.control.gradient_scale = 3.0F;
    c.entries = {case_entry({0.5F, -1.5F, 2.0F}, case_tensor({1.0F, 2.5F, -3.5F}), 0, amsgrad),
                 case_entry({}, case_tensor(std::vector<float>{})),
                 case_entry({0.25F, 4.0F}, case_tensor(DType::kBF16, {0x3F80, 0xC040}), 7, amsgrad)};
    const auto gradients = [](const std::vector<float>& first, const std::vector<std::uint16_t>& last) {
        return std::vector<std::vector<std::byte>>{
            case_tensor(first).values, {}, case_tensor(DType::kBF16, last).values};
    };
    c.later.push_back({{.gradient_scale = 3.0F, .skip_update = true}, gradients({1.0F, 1.0F, 1.0F}, {0x4000, 0x3F80})});
    c.later.push_back({{.gradient_scale = 5.0F}, gradients({-2.0F, 0.0F, 0.125F}, {0x4040, 0x0001})});
    return c;
}

CaseVerdict judge(const Case& c, const Outcome& outcome, const Abilities& abilities = {}) {
    return judge_case(c, outcome, abilities);
}

/// The first failure's fact, operand and entry; empty when there is none.
std::string told(const CaseVerdict& verdict) {
    if (verdict.ok()) return "";
    const Failure& first = verdict.failures.front();
    return first.operand + (first.entry ? " of " + std::to_string(*first.entry) : "") + ": " + first.fact;
}
bool starts_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

TEST(CaseJudge, TheOraclePassesEveryOperation) {
    for (const bool amsgrad : {false, true}) {
        Case c = three_steps(amsgrad);
        EXPECT_EQ(told(judge(c, oracle_outcome(c))), "");
        c.operation = Operation::kStatistics;
        EXPECT_EQ(told(judge(c, oracle_outcome(c))), "");
        c.operation = Operation::kUnguardedStep;
        c.entries = {c.entries[2]};
        for (auto& later : c.later) later.gradients = {later.gradients[2]};
        EXPECT_EQ(told(judge(c, oracle_outcome(c))), "");
    }
}

TEST(CaseJudge, TheOraclePassesAsASubjectOfTheIntervalToo) {
    const Case c = three_steps(true);
    for (const bool reassociates : {false, true}) {
        for (const bool flushes : {false, true}) {
            Abilities abilities;
            abilities.reassociates = reassociates;
            abilities.flushes = flushes;
            EXPECT_EQ(told(judge(c, oracle_outcome(c), abilities)), "");
        }
    }
}

TEST(CaseJudge, EverythingWrongWithAStepIsFound) {
    using Change = void (*)(StepOutcome&);
    const std::pair<const char*, Change> rows[] = {
        {"parameters of 0",
         [](StepOutcome& s) { s.entries[0].parameters[1] = step_ulps(s.entries[0].parameters[1], 9); }},
        {"parameters of 2", [](StepOutcome& s) { s.entries[2].parameters[0] = kNaN; }},
        {"parameters of 2", [](StepOutcome& s) { s.entries[2].parameters.pop_back(); }},
        {"first_moment of 0", [](StepOutcome& s) { s.entries[0].state->first_moment[2] *= -1.0F; }},
        {"second_moment of 2", [](StepOutcome& s) { s.entries[2].state->second_moment[1] *= 2.0F; }},
        {"step of 0", [](StepOutcome& s) { ++s.entries[0].state->step; }},
        {"state of 0", [](StepOutcome& s) { s.entries[0].state.reset(); }},
        {"state of 1", [](StepOutcome& s) { s.entries[1].state.emplace(); }},
        {"updated of 1", [](StepOutcome& s) { s.entries[1].updated = true; }},
        {"updated of 2", [](StepOutcome& s) { s.entries[2].updated = false; }},
        {"r of 2", [](StepOutcome& s) { s.entries[2].coefficients->r = step_ulps(s.entries[2].coefficients->r, 1); }},
        {"clip_multiplier", [](StepOutcome& s) { s.clip_multiplier = step_ulps(s.clip_multiplier, -1); }},
        {"skip_reason", [](StepOutcome& s) { s.skip_reason = SkipReason::kEmpty; }},
        {"report", [](StepOutcome& s) { s.report.reset(); }},
        {"total_norm",
         [](StepOutcome& s) { s.report->stats.total_norm = std::nextafter(s.report->stats.total_norm, 0.0); }},
        {"summary.sumsq of 2", [](StepOutcome& s) { s.report->summaries[2].sumsq *= 2.0F; }},
        {"update_launches", [](StepOutcome& s) { s.update_launches = 3; }},
        {"entry 2 gradients", [](StepOutcome& s) { s.inputs_changed = {"entry 2 gradients"}; }},
        {"findings", [](StepOutcome& s) { s.findings = {"race: two lanes write one word"}; }},
        {"entries", [](StepOutcome& s) { s.entries.pop_back(); }},
        {"", [](StepOutcome& s) {
             s.error = OutcomeError{ErrorKind::kDeviceFailure, {}, "", "cuLaunchKernel"};
         }}};
    const Case c = three_steps();
    for (const auto& [where, change] : rows) {
        for (const std::size_t step : {0U, 2U}) {
            Outcome outcome = oracle_outcome(c);
            change(outcome.steps[step]);
            const CaseVerdict verdict = judge(c, outcome);
            ASSERT_FALSE(verdict.ok()) << where << " at step " << step;
            EXPECT_TRUE(starts_with(told(verdict), where)) << told(verdict) << ", want " << where;
        }
    }
}

TEST(CaseJudge, ASkippedStepLeavesEveryByteAlone) {
    const Case c = three_steps();
    Outcome outcome = oracle_outcome(c);
    float& m = outcome.steps[1].entries[2].state->first_moment[0];
    m = step_ulps(m, 1);
    EXPECT_TRUE(starts_with(told(judge(c, outcome)), "first_moment of 2"));
    outcome = oracle_outcome(c);
    ++outcome.steps[1].entries[2].state->step;
    EXPECT_TRUE(starts_with(told(judge(c, outcome)), "step of 2"));
    outcome = oracle_outcome(c);
    outcome.steps[1].device_calls = 1;
    EXPECT_TRUE(starts_with(told(judge(c, outcome)), "device_calls"));
}

TEST(CaseJudge, EachStepIsJudgedFromTheStateThatTheSubjectLeft) {
    // A legal contraction at step 0 changes what is right at step 2.
    Case c = three_steps();
    Outcome outcome = oracle_outcome(c);
    float& p = outcome.steps[0].entries[0].parameters[0];
    const float other = step_ulps(p, 1);
    p = other;
    const CaseVerdict verdict = judge(c, outcome);
    ASSERT_FALSE(verdict.ok());
    // The skipped step should have kept the other value.
    bool kept = false;
    for (const auto& failure : verdict.failures)
        kept = kept || failure.fact.find("unchanged entry") != std::string::npos;
    EXPECT_TRUE(kept);
}

TEST(CaseJudge, StepsAreCounted) {
    const Case c = three_steps();
    Outcome outcome = oracle_outcome(c);
    outcome.steps.pop_back();
    EXPECT_TRUE(starts_with(told(judge(c, outcome)), "steps"));
    outcome = oracle_outcome(c);
    outcome.steps.push_back(outcome.steps.back());
    EXPECT_TRUE(starts_with(told(judge(c, outcome)), "steps"));
}

TEST(CaseJudge, ABadGroupIsSkippedWholeAndItsReportKept) {
    Case c = three_steps();
    c.later.clear();
    c.entries[0].gradients = case_tensor({1.0F, kNaN, 2.0F});
    const Outcome right = oracle_outcome(c);
    EXPECT_EQ(right.steps[0].skip_reason, SkipReason::kNonFinite);
    EXPECT_EQ(told(judge(c, right)), "");
    Outcome outcome = right;
    outcome.steps[0].entries[2].parameters[0] = 0.5F;
    EXPECT_TRUE(starts_with(told(judge(c, outcome)), "parameters of 2"));
    outcome = right;
    outcome.steps[0].skip_reason.reset();
    EXPECT_TRUE(starts_with(told(judge(c, outcome)), "skip_reason"));
}

TEST(CaseJudge, AnUnguardedNaNGoesThroughAndNothingElseBecomesOne) {
    Case c;
    c.operation = Operation::kUnguardedStep;
    c.entries = {case_entry({1.0F, 2.0F}, case_tensor({kNaN, 1.0F}), 3)};
    Outcome outcome = oracle_outcome(c);
    EXPECT_TRUE(std::isnan(outcome.steps[0].entries[0].parameters[0]));
    EXPECT_EQ(told(judge(c, outcome)), "");
    outcome.steps[0].entries[0].parameters[1] = kNaN;
    EXPECT_TRUE(starts_with(told(judge(c, outcome)), "parameters of 0"));
    outcome.steps[0].entries[0].parameters = {1.0F, 2.0F};
    EXPECT_TRUE(starts_with(told(judge(c, outcome)), "parameters of 0"));
}

TEST(CaseJudge, AForeignNormIsHeldToTheBoundForAnyOrder) {
    Case c = three_steps();
    c.operation = Operation::kStatistics;
    c.later.clear();
    Abilities abilities;
    abilities.norm = NormKind::kWithinBound;
    Outcome outcome = oracle_outcome(c);
    double& norm = outcome.steps[0].report->stats.total_norm;
    const double right = norm;
    outcome.steps[0].report->reduction_launches = 77;  // how it launches is its own business
    norm = static_cast<double>(step_ulps(static_cast<float>(right), 1));
    EXPECT_EQ(told(judge(c, outcome, abilities)), "");
    EXPECT_FALSE(judge(c, outcome).ok());
    for (const double wrong : {right * 1.001, right * 0.999, 0.0, HUGE_VAL, std::nan("")}) {
        norm = wrong;
        EXPECT_TRUE(starts_with(told(judge(c, outcome, abilities)), "total_norm")) << wrong;
    }
    norm = right;
    outcome.steps[0].report->stats.max_finite_abs = step_ulps(outcome.steps[0].report->stats.max_finite_abs, 1);
    EXPECT_TRUE(starts_with(told(judge(c, outcome, abilities)), "max_finite_abs"));
}

TEST(CaseJudge, ASubjectWithoutAReportIsHeldByItsClipMultiplier) {
    Case c = three_steps();
    c.later.clear();
    Abilities abilities;
    abilities.norm = NormKind::kNone;
    Outcome outcome = oracle_outcome(c);
    outcome.steps[0].report.reset();
    EXPECT_LT(outcome.steps[0].clip_multiplier, 1.0F);
    EXPECT_EQ(told(judge(c, outcome, abilities)), "");
    outcome.steps[0].clip_multiplier *= 0.99F;
    EXPECT_TRUE(starts_with(told(judge(c, outcome, abilities)), "clip_multiplier"));
}

TEST(CaseJudge, TheGreatestErrorsAreMeasuredOnlyWhereAsked) {
    const Case c = three_steps(true);
    const Outcome outcome = oracle_outcome(c);
    const CaseVerdict measured = judge(c, outcome);
    const CaseVerdict fast = judge_case(c, outcome, {}, {.measure = false});
    for (int k = 0; k < kQuantities; ++k) {
        EXPECT_GT(measured.worst[static_cast<std::size_t>(k)].ulp, 0.0) << k;
        EXPECT_EQ(fast.worst[static_cast<std::size_t>(k)].ulp, 0.0) << k;
    }
}

TEST(CaseJudge, AtMostEightFailuresAreTold) {
    const Case c = three_steps();
    Outcome outcome = oracle_outcome(c);
    outcome.steps[0].findings.assign(100, "a finding");
    EXPECT_EQ(judge(c, outcome).failures.size(), 8U);
}

}  // namespace
}  // namespace gradguard::harness
