// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/case_story.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "harness/campaign/case_edit.h"
#include "harness/compare/explain.h"
#include "harness/compare/report.h"
#include "harness/subjects/oracle_subject.h"
#include "reference/fp64/coefficients.h"

namespace gradguard::harness {
namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

/// New values in a tensor like another.
CaseTensor like(const CaseTensor& model, const std::vector<float>& values) {
    CaseTensor tensor = dense_tensor(DType::kF32, bytes_of(values));
    tensor.layout.shape = model.layout.shape;
    tensor.layout.strides.assign(model.layout.shape.size(), 1);
    std::int64_t stride = 1;
    for (std::size_t d = model.layout.shape.size(); d-- > 0;) {
        tensor.layout.strides[d] = stride;
        stride *= static_cast<std::int64_t>(model.layout.shape[d]);
    }
    tensor.queue = model.queue;
    return tensor;
}

const StepControl& control_of(const Case& c, std::size_t step) {
    return step == 0 ? c.control : c.later[step - 1].control;
}

std::vector<std::string> lines_of(const StepOutcome& step) {
    if (step.error) {
        std::string place(gradguard::to_string(step.error->kind));
        if (step.error->entry) place += fmt::format(", entry {}", *step.error->entry);
        if (!step.error->operand.empty()) place += ", " + step.error->operand;
        return {"error     " + place + ": " + step.error->message};
    }
    std::vector<std::string> lines;
    if (step.report) {
        const GradientStats& stats = step.report->stats;
        lines.push_back("norm      " + double_text(stats.total_norm));
        lines.push_back("max       " + float_text(stats.max_finite_abs) +
                        (stats.all_finite ? ", all finite" : ", not all finite"));
        for (std::size_t i = 0; i < step.report->summaries.size(); ++i) {
            const GradientSummary& summary = step.report->summaries[i];
            lines.push_back(fmt::format("summary {} scale {}, sumsq {}, bad {}", i, float_text(summary.scale),
                                        float_text(summary.sumsq), summary.bad));
        }
    }
    if (step.entries.empty() && !step.skip_reason) return lines;
    lines.push_back("decision  " + (step.skip_reason
                                        ? "skip (" + std::string(gradguard::to_string(*step.skip_reason)) + ")"
                                        : "clip " + float_text(step.clip_multiplier)));
    for (std::size_t i = 0; i < step.entries.size(); ++i) {
        const OutcomeEntry& entry = step.entries[i];
        lines.push_back(fmt::format("entry {}   {}, {} elements, step {}", i, entry.updated ? "updated" : "unchanged",
                                    entry.parameters.size(), entry.state ? entry.state->step : 0));
    }
    return lines;
}

std::vector<std::string> subject_lines(const StepOutcome& step) {
    std::vector<std::string> lines = lines_of(step);
    for (const std::string& input : step.inputs_changed) lines.push_back("changed   " + input);
    for (const std::string& finding : step.findings) lines.push_back("finding   " + finding);
    return lines;
}

float at(const std::vector<float>& values, std::uint64_t i) { return i < values.size() ? values[i] : 0.0F; }

float f32_at(const CaseTensor& tensor, std::uint64_t i) { return reference::raw_value(view_of(tensor), i); }

/// The steps, each beside the oracle's.
class Story {
  public:
    Story(const Bench& bench, const Case& c) : case_(c), abilities_(bench.subject().abilities()) {
        outcome_ = bench.subject().step(c);
        const std::unique_ptr<Subject> oracle = make_oracle_subject();
        for (std::size_t k = 0; k < outcome_.steps.size() && k <= c.later.size(); ++k) {
            if (k != 0 && (outcome_.steps[k - 1].error || !entries_fit(k - 1))) break;
            cases_.push_back(step_case(c, outcome_, k));
            expected_.push_back(oracle->step(cases_.back()).steps.at(0));
        }
    }

    std::vector<StepStory> steps() const {
        std::vector<StepStory> stories;
        for (std::size_t k = 0; k < cases_.size(); ++k) {
            const StepControl& control = control_of(case_, k);
            StepStory story;
            story.control =
                "gradient_scale " + float_text(control.gradient_scale) + (control.skip_update ? ", skip_update" : "");
            story.expected = lines_of(expected_[k]);
            story.got = subject_lines(outcome_.steps[k]);
            const bool whole = outcome_.steps[k].report && expected_[k].report &&
                               outcome_.steps[k].report->summaries.size() == expected_[k].report->summaries.size();
            if (whole) {
                story.norm = explain_norm(*outcome_.steps[k].report, gradient_views(cases_[k]), control.gradient_scale,
                                          abilities_);
            }
            stories.push_back(std::move(story));
        }
        return stories;
    }

    bool updated(const ElementPlace& place) const {
        if (place.step >= cases_.size()) return false;
        const StepOutcome& step = outcome_.steps[place.step];
        return !step.error && place.entry < step.entries.size() && entries_fit(place.step) &&
               step.entries[place.entry].updated && step.entries[place.entry].state &&
               place.index < step.entries[place.entry].parameters.size();
    }

    std::optional<ElementPlace> first_updated() const {
        for (std::size_t k = 0; k < cases_.size(); ++k) {
            for (std::size_t e = 0; e < outcome_.steps[k].entries.size(); ++e) {
                if (updated({k, e, 0})) return ElementPlace{k, e, 0};
            }
        }
        return std::nullopt;
    }

    std::vector<std::string> explain(const ElementPlace& place) const {
        const CaseEntry& before = cases_[place.step].entries[place.entry];
        const OutcomeEntry& after = outcome_.steps[place.step].entries[place.entry];
        const std::uint64_t i = place.index;
        reference::ElementState<float> old{f32_at(before.parameters, i), 0.0F, 0.0F, 0.0F};
        if (before.state) {
            old.m = f32_at(before.state->first_moment, i);
            old.v = f32_at(before.state->second_moment, i);
            if (before.state->max_second_moment) old.x = f32_at(*before.state->max_second_moment, i);
        }
        const OutcomeState& state = *after.state;
        const reference::ElementState<float> stored{after.parameters[i], at(state.first_moment, i),
                                                    at(state.second_moment, i),
                                                    state.max_second_moment ? at(*state.max_second_moment, i) : 0.0F};
        return explain_element(f32_at(before.gradients, i), old, stored, coefficients(place), abilities_);
    }

  private:
    /// The subject's buffers have the sizes that the next step needs.
    bool entries_fit(std::size_t k) const {
        const StepOutcome& step = outcome_.steps[k];
        if (step.entries.size() != case_.entries.size()) return false;
        for (std::size_t e = 0; e < step.entries.size(); ++e) {
            const std::size_t n = step.entries[e].parameters.size();
            if (n != count(case_.entries[e].parameters)) return false;
            const auto& state = step.entries[e].state;
            if (state && (state->first_moment.size() != n || state->second_moment.size() != n ||
                          (state->max_second_moment && state->max_second_moment->size() != n))) {
                return false;
            }
        }
        return true;
    }

    /// The oracle's own; where the norm is the subject's affair, with the clip multiplier that it reports.
    reference::UpdateCoefficients coefficients(const ElementPlace& place) const {
        const StepOutcome& expected = expected_[place.step];
        if (abilities_.norm == NormKind::kContractTree && place.entry < expected.entries.size() &&
            expected.entries[place.entry].coefficients) {
            return *expected.entries[place.entry].coefficients;
        }
        const CaseEntry& before = cases_[place.step].entries[place.entry];
        return reference::update_coefficients(case_.options, control_of(case_, place.step),
                                              outcome_.steps[place.step].clip_multiplier,
                                              before.state ? before.state->step + 1 : 1);
    }

    const Case& case_;
    const Abilities& abilities_;
    Outcome outcome_;
    std::vector<Case> cases_;            ///< Each step by itself.
    std::vector<StepOutcome> expected_;  ///< What the oracle does with it.
};

/// Where the property failed, else where most of a bound was used, else the greatest error.
std::optional<ElementPlace> interesting(const CaseVerdict& verdict) {
    for (const Failure& failure : verdict.failures) {
        if (failure.index) return ElementPlace{failure.step, failure.entry.value_or(0), *failure.index};
    }
    const Worst* best = nullptr;
    for (std::size_t q = 0; q < verdict.worst.size(); ++q) {
        const Worst& worst = verdict.worst[q];
        if (static_cast<Quantity>(q) == Quantity::kNorm || (worst.ulp == 0.0 && worst.fraction == 0.0)) continue;
        if (best == nullptr || worst.fraction > best->fraction ||
            (worst.fraction == best->fraction && worst.ulp > best->ulp)) {
            best = &worst;
        }
    }
    if (best == nullptr) return std::nullopt;
    return ElementPlace{best->step, best->entry, best->index};
}

}  // namespace

Case step_case(const Case& c, const Outcome& outcome, std::size_t step) {
    Case one = c;
    one.later.clear();
    if (step == 0) return one;
    one.control = c.later.at(step - 1).control;
    const StepOutcome& left = outcome.steps.at(step - 1);
    for (std::size_t e = 0; e < one.entries.size(); ++e) {
        CaseEntry& entry = one.entries[e];
        entry.gradients.values = c.later[step - 1].gradients.at(e);
        if (c.operation == Operation::kStatistics) continue;
        const OutcomeEntry& after = left.entries.at(e);
        entry.parameters = like(entry.parameters, after.parameters);
        entry.state.reset();
        if (!after.state) continue;
        CaseState& state = entry.state.emplace();
        state.step = after.state->step;
        state.first_moment = like(entry.parameters, after.state->first_moment);
        state.second_moment = like(entry.parameters, after.state->second_moment);
        if (after.state->max_second_moment) {
            state.max_second_moment = like(entry.parameters, *after.state->max_second_moment);
        }
    }
    return one;
}

CaseStory tell_case(const Property& property, const Bench& bench, const Case& c, const ElementChoice& choice) {
    CaseStory result;
    result.verdict = property.check(property, bench, c);
    const Story story(bench, c);
    result.steps = story.steps();
    const bool asked = choice.step || choice.entry || choice.index;
    std::optional<ElementPlace> place = interesting(result.verdict.verdict);
    if (asked) place = ElementPlace{choice.step.value_or(0), choice.entry.value_or(0), choice.index.value_or(0)};
    if (place && !story.updated(*place)) {
        if (asked) {
            throw std::invalid_argument(fmt::format("step {}, entry {}, index {}: no such element was updated",
                                                    place->step, place->entry, place->index));
        }
        place.reset();
    }
    if (!place) place = story.first_updated();
    if (!place) return result;
    result.element = place;
    result.lines = story.explain(*place);
    return result;
}

}  // namespace gradguard::harness
