// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/case_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "reference/exact/float_bits.h"
#include "reference/fp64/decision.h"

namespace gradguard::harness {
namespace {

/// More than this many would not be read.
constexpr std::size_t kMostFailures = 8;

std::string place_text(ErrorKind kind, std::optional<std::size_t> entry, std::string_view operand) {
    std::string text(to_string(kind));
    if (entry) text += ", entry " + std::to_string(*entry);
    if (!operand.empty()) text.append(", ").append(operand);
    return text;
}
std::string place_text(const OutcomeError& error) {
    return place_text(error.kind, error.entry, error.operand) + ": " + error.message;
}

std::string reason_text(const std::optional<SkipReason>& reason) {
    return reason ? std::string(to_string(*reason)) : std::string("none");
}

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

bool same_bytes(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

std::span<const float> maximum_of(const OutcomeState& state) {
    return state.max_second_moment ? std::span<const float>(*state.max_second_moment) : std::span<const float>();
}

bool all_empty(std::span<const reference::GradientView> gradients) {
    return std::all_of(gradients.begin(), gradients.end(), [](const auto& view) { return view.elements == 0; });
}

}  // namespace

void StepJudge::add(Failure failure) {
    if (verdict_.failures.size() >= kMostFailures) return;
    failure.step = step_;
    verdict_.failures.push_back(std::move(failure));
}

void StepJudge::add(const char* fact, std::optional<std::uint64_t> entry, std::string operand, std::string got,
                    std::string want) {
    Failure failure;
    failure.fact = fact;
    failure.entry = entry;
    failure.operand = std::move(operand);
    failure.got = std::move(got);
    failure.want.push_back(std::move(want));
    add(std::move(failure));
}

void StepJudge::judge_refusal(const StepOutcome& got, std::span<const reference::Violation> violations,
                              std::uint64_t step) {
    step_ = step;
    Failure failure;
    failure.fact = "an invalid group is refused with the contract's error (section 3)";
    bool right = false;
    for (const auto& violation : violations) {
        failure.want.push_back(place_text(violation.kind, violation.site.entry, violation.site.operand));
        right = right || (got.error && got.error->kind == violation.kind && got.error->entry == violation.site.entry &&
                          got.error->operand == violation.site.operand);
    }
    if (!right) {
        failure.got = got.error ? place_text(*got.error) : "a result";
        add(std::move(failure));
    }
    if (got.error) judge_call_counts(got, false, 0);
    judge_surroundings(got);
}

void StepJudge::judge_surroundings(const StepOutcome& got) {
    for (const auto& input : got.inputs_changed) {
        add("nobody writes to an input (contract section 2)", {}, input, "other bytes", "the input's bytes");
    }
    for (const auto& finding : got.findings) add("the observers find nothing", {}, "findings", finding, "none");
}

void StepJudge::judge_call_counts(const StepOutcome& got, bool may_call, std::uint64_t updates) {
    if (!may_call && got.device_calls.value_or(0) != 0) {
        add("a refusal and a skip without a scan come before any device call (contract sections 2 and 3)", {},
            "device_calls", std::to_string(*got.device_calls), "0");
    }
    if (got.update_launches && *got.update_launches != updates) {
        add("one update kernel is submitted for each updated entry (contract section 2)", {}, "update_launches",
            std::to_string(*got.update_launches), std::to_string(updates));
    }
}

std::optional<SkipReason> StepJudge::wanted_skip(const GroupBefore& group, bool bad) const {
    if (group.operation != Operation::kGuardedStep) return std::nullopt;
    if (group.control.skip_update) return SkipReason::kRequested;
    if (all_empty(group.gradients)) return SkipReason::kEmpty;
    if (bad && abilities_.skips) return SkipReason::kNonFinite;
    return std::nullopt;
}

/// True when the step ends with an error, rightly or not.
bool StepJudge::judge_error(const GroupBefore& group, const StepOutcome& got, bool bad) {
    const bool wanted = group.operation == Operation::kGuardedStep && bad && !group.control.skip_update &&
                        abilities_.skips && group.guard.nonfinite == NonFinitePolicy::kError;
    if (!wanted && !got.error) return false;
    if (!wanted) {
        add("a valid group is stepped", {}, "", place_text(*got.error), "a result");
    } else if (!got.error || got.error->kind != ErrorKind::kNonFiniteGradients ||
               (got.error->entry && (*got.error->entry >= first_bad_.size() || !first_bad_[*got.error->entry]))) {
        add("a bad group under policy Error is an error before any update (contract section 2)", {}, "gradients",
            got.error ? place_text(*got.error) : "a result", "NonFiniteGradients");
    }
    if (wanted) judge_call_counts(got, true, 0);
    return true;
}

bool StepJudge::judge_step(GroupBefore& group, const StepOutcome& got) {
    step_ = group.index;
    errors_.assign(group.entries.size(), {});
    const bool bad = scan(group);
    if (judge_error(group, got, bad)) {
        judge_surroundings(got);
        return false;
    }
    const std::optional<SkipReason> skip = wanted_skip(group, bad);
    const bool scans = group.operation != Operation::kUnguardedStep && (!skip || skip == SkipReason::kNonFinite) &&
                       abilities_.norm != NormKind::kNone;
    if (got.report.has_value() != scans) {
        add("a report exists exactly when the group was scanned (contract section 2)", {}, "report",
            got.report ? "a report" : "none", scans ? "a report" : "none");
    }
    if (got.report && scans) judge_report(group, *got.report);
    if (group.operation == Operation::kStatistics) {
        judge_call_counts(got, !all_empty(group.gradients), 0);
        judge_surroundings(got);
        return true;
    }
    judge_decision(group, got, skip);
    if (got.entries.size() != group.entries.size()) {
        add("there is one result for each entry (contract section 1)", {}, "entries",
            std::to_string(got.entries.size()), std::to_string(group.entries.size()));
        return false;
    }
    bool goes_on = true;
    std::uint64_t updates = 0;
    for (std::size_t i = 0; i < group.entries.size(); ++i) {
        if (!skips_ && group.entries[i].elements != 0) ++updates;
        goes_on = judge_entry(group, i, got) && goes_on;
    }
    judge_call_counts(got, updates != 0 || skip == SkipReason::kNonFinite, updates);
    judge_surroundings(got);
    return goes_on;
}

void StepJudge::judge_decision(const GroupBefore& group, const StepOutcome& got, std::optional<SkipReason> want) {
    skips_ = want.has_value() || group.control.skip_update;
    clip_ = 1.0F;
    if (got.skip_reason != want) {
        add("the skip reason is the contract's (sections 2 and 5)", {}, "skip_reason", reason_text(got.skip_reason),
            reason_text(want));
    }
    const bool clips = group.operation == Operation::kGuardedStep && !skips_;
    if (clips && abilities_.norm == NormKind::kNone) {
        // It forms a norm that it does not report: the factor that it reports has to follow from one within the bound.
        const double bound = foreign_bound(group);
        const float least = reference::clip_multiplier(exact_norm_ + bound, group.guard);
        const float greatest = reference::clip_multiplier(std::max(exact_norm_ - bound, 0.0), group.guard);
        clip_ = got.clip_multiplier;
        if (!(least <= clip_ && clip_ <= greatest)) {
            add("the clip multiplier follows from a norm within the bound", {}, "clip_multiplier", float_text(clip_),
                "from " + float_text(least) + " to " + float_text(greatest));
        }
        return;
    }
    if (clips) {
        clip_ = got.clip_multiplier;
        if (got.report && std::isfinite(got.report->stats.total_norm) && got.report->stats.total_norm >= 0.0) {
            clip_ = reference::clip_multiplier(got.report->stats.total_norm, group.guard);
        }
    }
    if (!same_bits(got.clip_multiplier, clip_)) {
        add("the clip multiplier follows from the reported norm (contract section 5)", {}, "clip_multiplier",
            float_text(got.clip_multiplier), float_text(clip_));
    }
}

bool StepJudge::judge_entry(GroupBefore& group, std::size_t i, const StepOutcome& got) {
    EntryBefore& before = group.entries[i];
    const OutcomeEntry& after = got.entries[i];
    const bool wanted = !skips_ && before.elements != 0;
    if (after.updated != wanted) {
        add("exactly the non-empty entries of a step that is not skipped are updated", i, "updated",
            after.updated ? "updated" : "unchanged", wanted ? "updated" : "unchanged");
    }
    if (!judge_shape(before, i, after, wanted, group.options.amsgrad)) return false;
    const std::uint64_t wanted_step = before.step + (wanted ? 1 : 0);
    const std::uint64_t step = after.state ? after.state->step : 0;
    if (step != wanted_step) {
        add("the step count advances by one with each update", i, "step", std::to_string(step),
            std::to_string(wanted_step));
    }
    if (wanted) {
        judge_updated(group, i, after);
    } else {
        judge_unchanged(before, i, after);
    }
    before.step = wanted_step;
    before.parameters = after.parameters;
    if (!after.state) return true;
    before.first_moment = after.state->first_moment;
    before.second_moment = after.state->second_moment;
    before.max_second_moment = maximum_of(*after.state);
    return true;
}

/// Whether every buffer is there with the length that it should have.
bool StepJudge::judge_shape(const EntryBefore& before, std::size_t i, const OutcomeEntry& after, bool updated,
                            bool amsgrad) {
    const bool wants_state = updated || before.step != 0;
    if (after.state.has_value() != wants_state) {
        add("a state exists after the first update, and an absent one stays absent", i, "state",
            after.state ? "a state" : "none", wants_state ? "a state" : "none");
        return false;
    }
    bool fits = true;
    const auto check = [&](const char* operand, std::size_t got, std::size_t want) {
        if (got == want) return;
        add("every result has the parameters' elements", i, operand, std::to_string(got), std::to_string(want));
        fits = false;
    };
    check("parameters", after.parameters.size(), before.elements);
    if (!after.state) return fits;
    check("first_moment", after.state->first_moment.size(), before.elements);
    check("second_moment", after.state->second_moment.size(), before.elements);
    if (after.state->max_second_moment.has_value() != amsgrad) {
        add("a maximum is stored exactly with AMSGrad", i, "max_second_moment", amsgrad ? "none" : "one",
            amsgrad ? "one" : "none");
        return false;
    }
    if (amsgrad) check("max_second_moment", after.state->max_second_moment->size(), before.elements);
    return fits;
}

void StepJudge::judge_unchanged(const EntryBefore& before, std::size_t i, const OutcomeEntry& after) {
    const auto check = [&](const char* operand, std::span<const float> old, std::span<const float> now) {
        if (same_bytes(old, now)) return;
        add("an unchanged entry keeps the bytes of every buffer", i, operand, "other bytes", "the input's bytes");
    };
    check("parameters", before.parameters, after.parameters);
    if (!after.state) return;
    check("first_moment", before.first_moment, after.state->first_moment);
    check("second_moment", before.second_moment, after.state->second_moment);
    check("max_second_moment", before.max_second_moment, maximum_of(*after.state));
}

void StepJudge::judge_updated(const GroupBefore& group, std::size_t i, const OutcomeEntry& after) {
    const EntryBefore& before = group.entries[i];
    const auto coefficients = reference::update_coefficients(group.options, group.control, clip_, before.step + 1);
    if (after.coefficients) {
        if (auto mismatch = compare_coefficients(*after.coefficients, coefficients)) {
            mismatch->entry = i;
            add(failure_of(*mismatch));
        }
    }
    UpdateOperands operands{group.gradients[i],        before.parameters,          before.first_moment,
                            before.second_moment,      before.max_second_moment,   after.parameters,
                            after.state->first_moment, after.state->second_moment, maximum_of(*after.state)};
    const UpdateVerdict verdict = harness::judge_update(operands, coefficients, abilities_, options_.measure);
    errors_[i] = verdict.worst;
    if (options_.measure) {
        const auto take = [&](Quantity quantity, Operand operand) {
            const WorstError& worst = verdict.worst_of(operand);
            take_worst(quantity, worst.ulp, worst.fraction, i,
                       worst.fraction > 0.0 ? worst.fraction_index : worst.index);
        };
        take(Quantity::kFirstMoment, Operand::kFirstMoment);
        take(Quantity::kSecondMoment, Operand::kSecondMoment);
        take(Quantity::kMaxSecondMoment, Operand::kMaxSecondMoment);
        take(Quantity::kParameters, Operand::kParameters);
    }
    if (verdict.ok || !verdict.first) return;
    Failure failure = failure_of(*verdict.first, operands, coefficients);
    failure.entry = i;
    failure.notes.push_back(std::to_string(verdict.outside) + " of " + std::to_string(before.elements) +
                            " elements are outside; step " + std::to_string(before.step + 1) + " of this entry");
    add(std::move(failure));
}

void StepJudge::take_worst(Quantity quantity, double ulp, double fraction, std::uint64_t entry, std::uint64_t index) {
    Worst& worst = verdict_.worst[static_cast<std::size_t>(quantity)];
    if (fraction > worst.fraction || (worst.fraction == 0.0 && ulp > worst.ulp)) {
        worst.step = step_;
        worst.entry = entry;
        worst.index = index;
    }
    worst.ulp = std::max(worst.ulp, ulp);
    worst.fraction = std::max(worst.fraction, fraction);
}

}  // namespace gradguard::harness
