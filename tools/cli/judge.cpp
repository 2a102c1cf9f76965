// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/judge.h"

#include <cmath>
#include <limits>

#include "harness/compare/case_step.h"
#include "reference/fp64/coefficients.h"
#include "reference/fp64/summary_rules.h"
#include "reference/model/statistics.h"

namespace gradguard::tools {
namespace {

using harness::EntryResult;
using harness::Operand;
using harness::StepResult;
using harness::WorstUlp;

harness::GroupBefore group_before(const JudgedGroup& group, harness::Operation operation) {
    harness::GroupBefore before;
    before.operation = operation;
    before.control.gradient_scale = group.gradient_scale;
    before.gradients = group.gradients;
    before.entries.resize(group.gradients.size());
    return before;
}

harness::EntryBefore entry_before(const harness::OutcomeEntry& entry) {
    harness::EntryBefore before;
    before.elements = entry.parameters.size();
    before.parameters = entry.parameters;
    if (!entry.state) return before;
    before.step = entry.state->step;
    before.first_moment = entry.state->first_moment;
    before.second_moment = entry.state->second_moment;
    if (entry.state->max_second_moment) before.max_second_moment = *entry.state->max_second_moment;
    return before;
}

/// What the report says of each tensor, with the oracle's first bad element.
void describe_tensors(const GradientStatsReport& report, const harness::StepJudge& judge, StepResult& result) {
    const double total = report.stats.total_norm;
    for (std::size_t i = 0; i < result.entries.size() && i < report.summaries.size(); ++i) {
        const GradientSummary& summary = report.summaries[i];
        EntryResult& entry = result.entries[i];
        entry.bad = summary.bad != 0.0F;
        entry.first_bad = judge.first_bad()[i];
        if (*entry.bad) {
            entry.norm = std::numeric_limits<double>::infinity();
            continue;
        }
        entry.norm = reference::tensor_norm(summary);
        if (total > 0.0 && std::isfinite(total)) entry.share = reference::sum_of_squares(summary) / (total * total);
    }
}

void describe_entry(const harness::OutcomeEntry& after,
                    const std::array<harness::WorstError, harness::kOperands>& errors, EntryResult& entry) {
    const auto worst = [&](Operand operand) {
        const harness::WorstError& error = errors[static_cast<std::size_t>(operand)];
        return WorstUlp{error.ulp, error.index};
    };
    entry.updated = after.updated;
    entry.param = worst(Operand::kParameters);
    if (!after.state) return;
    entry.step = after.state->step;
    entry.exp_avg = worst(Operand::kFirstMoment);
    entry.exp_avg_sq = worst(Operand::kSecondMoment);
    if (after.state->max_second_moment) entry.max_exp_avg_sq = worst(Operand::kMaxSecondMoment);
}

/// Judges, and tells what a run of the program prints of the step.
StepResult judged(const JudgedGroup& group, harness::GroupBefore before, const harness::StepOutcome& outcome,
                  harness::Contraction contraction) {
    harness::Abilities abilities;
    abilities.contraction = contraction;
    abilities.block_limit = group.block_limit;
    const harness::JudgeOptions options;
    harness::CaseVerdict verdict;
    harness::StepJudge judge(abilities, options, verdict);
    judge.judge_step(before, outcome);

    StepResult result;
    result.gradient_scale = group.gradient_scale;
    result.report = outcome.report;
    result.clip_multiplier = outcome.clip_multiplier;
    result.skip_reason = outcome.skip_reason;
    for (std::size_t i = 0; i < group.names.size(); ++i) {
        EntryResult entry;
        entry.name = group.names[i];
        entry.elements = group.gradients[i].elements;
        if (i < outcome.entries.size()) describe_entry(outcome.entries[i], judge.errors()[i], entry);
        if (entry.updated) ++result.update_launches;
        result.entries.push_back(std::move(entry));
    }
    if (outcome.report) {
        describe_tensors(*outcome.report, judge, result);
        bool bad = false;
        for (const auto& first : judge.first_bad()) bad = bad || first;
        result.exact_norm = bad ? std::numeric_limits<double>::infinity() : judge.exact_norm();
    }
    for (harness::Failure& failure : verdict.failures) {
        if (failure.entry && *failure.entry < group.names.size()) failure.entry_name = group.names[*failure.entry];
        failure.notes.push_back("replay: " + group.replay);
        result.failures.push_back(harness::describe(failure));
    }
    return result;
}

}  // namespace

StepResult judge_scan(const JudgedGroup& group, const GradientStatsReport& report) {
    harness::StepOutcome outcome;
    outcome.report = report;
    return judged(group, group_before(group, harness::Operation::kStatistics), outcome,
                  harness::Contraction::kForbidden);
}

StepResult judge_step(const JudgedGroup& group, const JudgedStep& step) {
    harness::GroupBefore before = group_before(group, harness::Operation::kGuardedStep);
    before.options = step.options;
    before.control = step.control;
    before.guard = step.guard;
    for (std::size_t i = 0; i < step.before.size(); ++i) before.entries[i] = entry_before(step.before[i]);
    return judged(group, std::move(before), step.outcome, step.contraction);
}

std::vector<std::string> bad_places(const JudgedGroup& group) {
    const float r = reference::reciprocal_scale(group.gradient_scale);
    std::vector<std::string> places;
    for (std::size_t i = 0; i < group.gradients.size(); ++i) {
        const std::optional<std::uint64_t> first = reference::first_bad(group.gradients[i], r);
        if (first) places.push_back(group.names[i] + " at " + std::to_string(*first));
    }
    return places;
}

}  // namespace gradguard::tools
