// SPDX-License-Identifier: Apache-2.0
// Relations of the guard that need no oracle: clipping and skipping.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "harness/campaign/case_edit.h"
#include "harness/campaign/property_groups.h"
#include "harness/campaign/relation.h"

namespace gradguard::harness {
namespace {

CaseShape good_shape(const Abilities& abilities, std::uint64_t index) {
    CaseShape shape = steps_shape(abilities, index);
    shape.bad_values = false;
    return shape;
}

PropertyVerdict clip_from_norm(const Property& property, const Bench& bench, const Case& c) {
    Relation relation(property, {});
    const Outcome outcome = relation.run(bench.subject(), c);
    bool any = false;
    for (std::size_t k = 0; k < outcome.steps.size(); ++k) {
        const StepOutcome& step = outcome.steps[k];
        if (step.error || !step.report) continue;
        any = true;
        const GradientDecision got{step.clip_multiplier, step.skip_reason == SkipReason::kNonFinite};
        std::optional<Mismatch> mismatch;
        if (step.report->stats.all_finite || c.guard.nonfinite == NonFinitePolicy::kSkip) {
            mismatch = judge_decision(got, step.report->stats, c.guard);
        }
        for (std::size_t e = 0; e < step.entries.size(); ++e) {
            const auto& coefficients = step.entries[e].coefficients;
            if (coefficients && !got.skip_update) {
                relation.equal(float_text(coefficients->clip), float_text(got.clip_multiplier), e, "clip of the kernel",
                               k);
            }
        }
        relation.mismatch(mismatch, k);
    }
    return any ? relation.result() : Relation::not_applicable();
}

PropertyVerdict unclipped_is_unguarded(const Property& property, const Bench& bench, const Case& c) {
    Case base = c;
    const bool absent = chosen(c, 1, 2) == 0;
    base.guard.max_norm = absent ? std::nullopt : std::optional(std::numeric_limits<float>::max());
    Relation relation(property, std::string(absent ? "max_norm absent" : "the greatest max_norm") +
                                    ", and each entry through the unguarded operator");
    const Outcome guarded = relation.run(bench.subject(), base);
    for (const StepOutcome& step : guarded.steps) {
        const bool skips = step.skip_reason && *step.skip_reason == SkipReason::kNonFinite;
        if (step.error || skips || step.clip_multiplier != 1.0F) return Relation::not_applicable();
    }
    for (std::size_t e = 0; e < base.entries.size(); ++e) {
        Case alone = base;
        alone.operation = Operation::kUnguardedStep;
        alone.entries = {base.entries[e]};
        for (LaterStep& later : alone.later) later.gradients = {later.gradients[e]};
        const Outcome unguarded = relation.run(bench.subject(), alone);
        relation.equal(std::to_string(guarded.steps.size()), std::to_string(unguarded.steps.size()), e, "steps", 0);
        if (guarded.steps.size() != unguarded.steps.size()) break;
        for (std::size_t k = 0; k < guarded.steps.size(); ++k) {
            relation.same_error(guarded.steps[k], unguarded.steps[k], k);
            if (guarded.steps[k].entries.size() <= e || unguarded.steps[k].entries.size() != 1) {
                relation.equal("a missing entry", "one for each entry", e, "entries", k);
                break;
            }
            relation.same_entry(guarded.steps[k].entries[e], unguarded.steps[k].entries[0], e, k);
        }
    }
    return relation.result();
}

/// Makes one gradient of a step NaN or infinite; false when no entry has an element. `salt`: which and where.
bool plant_bad(const Case& c, std::vector<std::vector<std::byte>*> gradients, std::uint64_t salt) {
    std::vector<std::size_t> live;
    for (std::size_t e = 0; e < gradients.size(); ++e) {
        if (!gradients[e]->empty()) live.push_back(e);
    }
    if (live.empty()) return false;
    const std::size_t entry = live[chosen(c, salt, live.size())];
    ArrayBits array(c.entries[entry].gradients.layout.dtype, *gradients[entry]);
    const FloatFormat& format = format_of(array.dtype());
    const std::uint32_t sign = chosen(c, salt + 1, 2) == 0 ? 0 : format.sign();
    const std::uint32_t payload = chosen(c, salt + 2, 2) == 0 ? 0 : 1 + static_cast<std::uint32_t>(chosen(c, salt, 60));
    array.set(chosen(c, salt + 3, array.size()), sign | format.infinity() | payload);
    return true;
}

bool same_bytes(std::span<const float> got, const CaseTensor& want) {
    return got.size_bytes() == want.values.size() &&
           (got.empty() || std::memcmp(got.data(), want.values.data(), got.size_bytes()) == 0);
}

/// An entry after a skip, byte for byte: NaN payloads count.
void unchanged(Relation& relation, const CaseEntry& before, const OutcomeEntry& after, std::size_t e) {
    relation.equal(after.updated ? "updated" : "unchanged", "unchanged", e, "updated", 0);
    const auto same = [&](std::span<const float> got, const CaseTensor& want, const char* operand) {
        relation.equal(same_bytes(got, want) ? "the input's bytes" : "other bytes", "the input's bytes", e, operand, 0);
    };
    same(after.parameters, before.parameters, "parameters");
    relation.equal(after.state ? "present" : "absent", before.state ? "present" : "absent", e, "state", 0);
    if (!after.state || !before.state) return;
    relation.equal(std::to_string(after.state->step), std::to_string(before.state->step), e, "step", 0);
    same(after.state->first_moment, before.state->first_moment, "first_moment");
    same(after.state->second_moment, before.state->second_moment, "second_moment");
    const bool maximum = after.state->max_second_moment.has_value();
    relation.equal(maximum ? "present" : "absent", before.state->max_second_moment ? "present" : "absent", e,
                   "max_second_moment", 0);
    if (maximum && before.state->max_second_moment) {
        same(*after.state->max_second_moment, *before.state->max_second_moment, "max_second_moment");
    }
}

/// Makes the case one that must be skipped, and says why.
SkipReason make_skip(Case& skipped, const Case& c) {
    skipped.guard.nonfinite = NonFinitePolicy::kSkip;
    skipped.control.skip_update = false;
    const std::uint64_t kind = chosen(c, 1, 8);
    if (kind == 0) {
        for (CaseEntry& entry : skipped.entries) {
            const CaseTensor empty = dense_tensor(DType::kF32, {});
            entry.parameters = empty;
            entry.gradients = dense_tensor(entry.gradients.layout.dtype, {});
            if (!entry.state) continue;
            entry.state->first_moment = entry.state->second_moment = empty;
            if (entry.state->max_second_moment) entry.state->max_second_moment = empty;
        }
        return SkipReason::kEmpty;
    }
    std::vector<std::vector<std::byte>*> gradients;
    for (CaseEntry& entry : skipped.entries) gradients.push_back(&entry.gradients.values);
    const bool planted = plant_bad(c, gradients, 2);
    if (kind > 2 && planted) return SkipReason::kNonFinite;
    skipped.control.skip_update = true;
    return SkipReason::kRequested;
}

PropertyVerdict skip_changes_nothing(const Property& property, const Bench& bench, const Case& c) {
    Case skipped = c;
    skipped.later.clear();
    const SkipReason reason = make_skip(skipped, c);
    const std::string name(gradguard::to_string(reason));
    Relation relation(property, "made to be skipped: " + name);
    const Outcome outcome = relation.run(bench.subject(), skipped);
    relation.equal(std::to_string(outcome.steps.size()), "1", {}, "steps", 0);
    if (!relation.verdict().ok()) return relation.result();
    const StepOutcome& step = outcome.steps[0];
    // StepOverflow comes before the scan.
    if (step.error && step.error->kind == ErrorKind::kStepOverflow) return Relation::not_applicable();
    relation.equal(step.error ? step.error->message : "a result", "a result", {}, "error", 0);
    if (step.error) return relation.result();
    relation.equal(step.skip_reason ? std::string(gradguard::to_string(*step.skip_reason)) : "none", name, {},
                   "skip_reason", 0);
    relation.equal(float_text(step.clip_multiplier), float_text(1.0F), {}, "clip_multiplier", 0);
    relation.equal(std::to_string(step.update_launches.value_or(0)), "0", {}, "update_launches", 0);
    if (reason != SkipReason::kNonFinite) {
        relation.equal(std::to_string(step.device_calls.value_or(0)), "0", {}, "device_calls", 0);
    }
    relation.equal(std::to_string(step.entries.size()), std::to_string(skipped.entries.size()), {}, "entries", 0);
    for (std::size_t e = 0; e < std::min(step.entries.size(), skipped.entries.size()); ++e) {
        unchanged(relation, skipped.entries[e], step.entries[e], e);
    }
    return relation.result();
}

/// Good, good: two steps that are not asked to be skipped.
Case two_good_steps(const Case& c) {
    Case base = c;
    base.guard.nonfinite = NonFinitePolicy::kSkip;
    base.control.skip_update = false;
    if (base.later.empty()) {
        LaterStep& later = base.later.emplace_back();
        later.control = base.control;
        for (const CaseEntry& entry : base.entries) later.gradients.push_back(entry.gradients.values);
    }
    base.later.resize(1);
    base.later[0].control.skip_update = false;
    return base;
}

PropertyVerdict good_skip_good(const Property& property, const Bench& bench, const Case& c) {
    const Case base = two_good_steps(c);
    Case with_skip = base;
    LaterStep skip = base.later[0];
    std::vector<std::vector<std::byte>*> gradients;
    for (std::vector<std::byte>& values : skip.gradients) gradients.push_back(&values);
    const bool planted = plant_bad(c, gradients, 2);
    skip.control.skip_update = !planted || chosen(c, 1, 4) == 0;
    const bool requested = skip.control.skip_update;
    with_skip.later.insert(with_skip.later.begin(), std::move(skip));
    Relation relation(property, requested ? "a step between that is asked to be skipped"
                                          : "a step between with a gradient that is not finite");
    Outcome want = relation.run(bench.subject(), base);
    for (const StepOutcome& step : want.steps) {
        if (step.error) return Relation::not_applicable();
    }
    Outcome got = relation.run(bench.subject(), with_skip);
    relation.equal(std::to_string(got.steps.size()), "3", {}, "steps", 0);
    if (got.steps.size() != 3) return relation.result();
    relation.equal(got.steps[1].skip_reason ? "a skip" : "no skip", "a skip", {}, "skip_reason", 1);
    got.steps.erase(got.steps.begin() + 1);
    relation.same_bits(got, want);
    return relation.result();
}

bool has_both(const Abilities& abilities) { return abilities.unguarded; }

}  // namespace

std::vector<Property> guarded_properties() {
    return {
        {"clip_from_norm", "the clip multiplier is the one that follows from the reported norm", 2, has_contract_tree,
         steps_shape, clip_from_norm},
        {"unclipped_is_unguarded", "where nothing is clipped, a guarded step has the bits of the unguarded operator", 2,
         has_both, good_shape, unclipped_is_unguarded},
        {"skip_changes_nothing", "a skipped step leaves every buffer byte for byte, and every step count", 2, can_skip,
         steps_shape, skip_changes_nothing},
        {"good_skip_good", "good, skip, good ends where good, good ends, step counts included", 2, can_skip, good_shape,
         good_skip_good},
    };
}

}  // namespace gradguard::harness
