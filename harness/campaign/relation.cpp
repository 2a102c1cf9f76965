// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/relation.h"

#include <algorithm>

#include "harness/generators/random.h"
#include "reference/exact/float_bits.h"

namespace gradguard::harness {
namespace {

constexpr std::size_t kMostFailures = 8;

std::string error_text(const StepOutcome& outcome) {
    return outcome.error ? std::string(gradguard::to_string(outcome.error->kind)) : std::string("a result");
}

std::string reason_text(const std::optional<SkipReason>& reason) {
    return reason ? std::string(gradguard::to_string(*reason)) : std::string("none");
}

std::span<const float> maximum_of(const OutcomeState& state) {
    return state.max_second_moment ? std::span<const float>(*state.max_second_moment) : std::span<const float>();
}

}  // namespace

std::uint64_t chosen(const Case& c, std::uint64_t salt, std::uint64_t n) {
    return mix(c.schedule_seed ^ mix(salt)) % n;
}

Outcome Relation::run(Subject& subject, const Case& c) {
    Outcome outcome = subject.step(c);
    for (std::size_t k = 0; k < outcome.steps.size(); ++k) {
        for (const std::string& finding : outcome.steps[k].findings) equal(finding, "none", {}, "findings", k);
        for (const std::string& input : outcome.steps[k].inputs_changed) {
            equal("other bytes", "the input's bytes", {}, input, k);
        }
    }
    return outcome;
}

void Relation::fail(Failure failure, std::size_t step) {
    if (verdict_.failures.size() >= kMostFailures) return;
    if (failure.fact.empty()) failure.fact = fact_;
    failure.step = step;
    if (!second_.empty()) failure.notes.push_back("second   " + second_);
    verdict_.failures.push_back(std::move(failure));
}

void Relation::equal(const std::string& got, const std::string& want, std::optional<std::size_t> entry,
                     std::string operand, std::size_t step) {
    if (got == want) return;
    Failure failure;
    failure.entry = entry;
    failure.operand = std::move(operand);
    failure.got = got;
    failure.want.push_back(want);
    fail(std::move(failure), step);
}

void Relation::same_values(std::span<const float> got, std::span<const float> want, std::size_t entry,
                           std::string_view operand, std::size_t step) {
    equal(std::to_string(got.size()), std::to_string(want.size()), entry, std::string(operand) + ", elements", step);
    if (got.size() != want.size()) return;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (reference::same_float(got[i], want[i])) continue;
        Failure failure;
        failure.entry = entry;
        failure.operand = operand;
        failure.index = i;
        failure.got = float_text(got[i]);
        failure.want.push_back(float_text(want[i]));
        fail(std::move(failure), step);
        return;  // the first of an operand tells enough
    }
}

void Relation::same_entry(const OutcomeEntry& got, const OutcomeEntry& want, std::size_t entry, std::size_t step) {
    equal(got.updated ? "updated" : "unchanged", want.updated ? "updated" : "unchanged", entry, "updated", step);
    same_values(got.parameters, want.parameters, entry, "parameters", step);
    equal(got.state ? "present" : "absent", want.state ? "present" : "absent", entry, "state", step);
    if (!got.state || !want.state) return;
    equal(std::to_string(got.state->step), std::to_string(want.state->step), entry, "step", step);
    same_values(got.state->first_moment, want.state->first_moment, entry, "first_moment", step);
    same_values(got.state->second_moment, want.state->second_moment, entry, "second_moment", step);
    same_values(maximum_of(*got.state), maximum_of(*want.state), entry, "max_second_moment", step);
}

void Relation::same_report(const StepOutcome& got, const StepOutcome& want, const CompareOptions& options,
                           std::size_t step) {
    equal(got.report ? "present" : "absent", want.report ? "present" : "absent", {}, "report", step);
    if (!got.report || !want.report) return;
    GradientStatsReport adjusted = *got.report;
    if (!options.gradient_scale) adjusted.stats.gradient_scale = want.report->stats.gradient_scale;
    if (!options.elements) adjusted.stats.elements = want.report->stats.elements;
    mismatch(compare_reports(adjusted, *want.report), step);
}

void Relation::mismatch(const std::optional<Mismatch>& found, std::size_t step) {
    if (!found) return;
    Failure failure = failure_of(*found);
    failure.fact = fact_;
    fail(std::move(failure), step);
}

void Relation::same_error(const StepOutcome& got, const StepOutcome& want, std::size_t step) {
    equal(error_text(got), error_text(want), {}, "error", step);
}

void Relation::same_bits(const Outcome& got, const Outcome& want, const CompareOptions& options) {
    equal(std::to_string(got.steps.size()), std::to_string(want.steps.size()), {}, "steps", 0);
    for (std::size_t k = 0; k < std::min(got.steps.size(), want.steps.size()); ++k) {
        const StepOutcome& one = got.steps[k];
        const StepOutcome& two = want.steps[k];
        same_error(one, two, k);
        if (one.error || two.error) return;
        same_report(one, two, options, k);
        equal(float_text(one.clip_multiplier), float_text(two.clip_multiplier), {}, "clip_multiplier", k);
        equal(reason_text(one.skip_reason), reason_text(two.skip_reason), {}, "skip_reason", k);
        equal(std::to_string(one.entries.size()), std::to_string(two.entries.size()), {}, "entries", k);
        if (one.entries.size() != two.entries.size()) return;
        for (std::size_t i = 0; i < one.entries.size(); ++i) same_entry(one.entries[i], two.entries[i], i, k);
    }
}

}  // namespace gradguard::harness
