// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/case_judge.h"

#include <cstring>

#include "harness/compare/case_step.h"
#include "reference/fp64/self_check.h"

namespace gradguard::harness {
namespace {

using reference::EntryDescription;
using reference::StateDescription;
using reference::TensorDescription;
using reference::Violation;

TensorDescription description_of(const CaseTensor& tensor) {
    return {tensor.layout, tensor.storage_bytes, 0, tensor.queue};
}

std::vector<EntryDescription> descriptions_of(const Case& c) {
    std::vector<EntryDescription> descriptions;
    descriptions.reserve(c.entries.size());
    for (const CaseEntry& entry : c.entries) {
        EntryDescription description{description_of(entry.parameters), description_of(entry.gradients), std::nullopt};
        if (entry.state) {
            StateDescription state{entry.state->step, description_of(entry.state->first_moment),
                                   description_of(entry.state->second_moment), std::nullopt};
            if (entry.state->max_second_moment)
                state.max_second_moment = description_of(*entry.state->max_second_moment);
            description.state = std::move(state);
        }
        descriptions.push_back(std::move(description));
    }
    return descriptions;
}

/// Everything that is wrong at the first place that is; the step counts are those of `group` once there is one.
std::vector<Violation> violations_of(const Case& c, std::vector<EntryDescription>& descriptions,
                                     const StepControl& control) {
    if (c.operation == Operation::kStatistics) {
        std::vector<TensorDescription> gradients;
        for (const EntryDescription& entry : descriptions) gradients.push_back(entry.gradients);
        auto violation = reference::validate_statistics(gradients, control.gradient_scale);
        if (violation) return {*violation};
        return {};
    }
    const GradientGuardOptions* guard = c.operation == Operation::kGuardedStep ? &c.guard : nullptr;
    return reference::violations_at_first_place(descriptions, c.options, control, guard);
}

/// UnsupportedDevice where a reduction is asked for.
std::vector<Violation> limits_of(const GroupBefore& group, const Abilities& abilities) {
    bool empty = true;
    for (const auto& view : group.gradients) empty = empty && view.elements == 0;
    const bool scans = group.operation == Operation::kStatistics ||
                       (group.operation == Operation::kGuardedStep && !group.control.skip_update);
    if (empty || !scans || abilities.norm != NormKind::kContractTree) return {};
    const auto violation = reference::check_limits({1024, 1024, abilities.block_limit, 49152});
    if (violation) return {*violation};
    return {};
}

std::vector<float> floats_of(const CaseTensor& tensor) {
    std::vector<float> values(tensor.values.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), tensor.values.data(), values.size() * sizeof(float));
    return values;
}

/// The values of a case's entries, aligned; spans into it stay good while it lives.
struct EntryValues {
    std::vector<float> parameters, first_moment, second_moment, max_second_moment;
};

class CaseRun {
  public:
    CaseRun(const Case& c, const Outcome& outcome, const Abilities& abilities, const JudgeOptions& options)
        : case_(c), outcome_(outcome), abilities_(abilities), judge_(abilities, options, verdict_) {}

    CaseVerdict run() {
        std::vector<EntryDescription> descriptions = descriptions_of(case_);
        const std::size_t steps = 1 + case_.later.size();
        for (std::size_t k = 0; k < steps; ++k) {
            if (k >= outcome_.steps.size()) {
                miscounted(steps);
                break;
            }
            if (!one_step(k, descriptions)) {
                if (outcome_.steps.size() > k + 1 && outcome_.steps[k].error) miscounted(k + 1);
                break;
            }
        }
        if (verdict_.ok() && outcome_.steps.size() > steps) miscounted(steps);
        return std::move(verdict_);
    }

  private:
    /// False when no further step follows.
    bool one_step(std::size_t k, std::vector<EntryDescription>& descriptions) {
        const StepControl& control = k == 0 ? case_.control : case_.later[k - 1].control;
        if (k != 0) advance(descriptions);
        auto violations = violations_of(case_, descriptions, control);
        if (violations.empty()) {
            if (k == 0) start();
            group_.control = control;
            group_.index = k;
            take_gradients(k);
            violations = limits_of(group_, abilities_);
        }
        if (!violations.empty()) {
            if (abilities_.validates) judge_.judge_refusal(outcome_.steps[k], violations, k);
            return false;
        }
        return judge_.judge_step(group_, outcome_.steps[k]);
    }

    void start() {
        group_.operation = case_.operation;
        group_.options = case_.options;
        group_.guard = case_.guard;
        values_.resize(case_.entries.size());
        for (std::size_t i = 0; i < case_.entries.size(); ++i) {
            const CaseEntry& entry = case_.entries[i];
            EntryBefore before;
            if (case_.operation != Operation::kStatistics) {
                values_[i].parameters = floats_of(entry.parameters);
                before.parameters = values_[i].parameters;
                before.elements = before.parameters.size();
            }
            if (entry.state && case_.operation != Operation::kStatistics) {
                before.step = entry.state->step;
                before.first_moment = values_[i].first_moment = floats_of(entry.state->first_moment);
                before.second_moment = values_[i].second_moment = floats_of(entry.state->second_moment);
                if (entry.state->max_second_moment) {
                    before.max_second_moment = values_[i].max_second_moment =
                        floats_of(*entry.state->max_second_moment);
                }
            }
            group_.entries.push_back(before);
        }
    }

    void take_gradients(std::size_t k) {
        group_.gradients.clear();
        for (std::size_t i = 0; i < case_.entries.size(); ++i) {
            const CaseTensor& first = case_.entries[i].gradients;
            const std::vector<std::byte>& bytes = k == 0 ? first.values : case_.later[k - 1].gradients.at(i);
            group_.gradients.push_back(
                {first.layout.dtype, bytes.data(), bytes.size() / element_bytes(first.layout.dtype)});
        }
    }

    /// The states that the steps so far have made; what a subject allocates itself is dense.
    void advance(std::vector<EntryDescription>& descriptions) const {
        for (std::size_t i = 0; i < descriptions.size(); ++i) {
            const std::uint64_t step = group_.entries[i].step;
            if (step == 0) continue;
            if (!descriptions[i].state) {
                const TensorDescription& like = descriptions[i].parameters;
                StateDescription state{step, like, like, std::nullopt};
                if (case_.options.amsgrad) state.max_second_moment = like;
                descriptions[i].state = std::move(state);
            }
            descriptions[i].state->step = step;
        }
    }

    void miscounted(std::size_t want) {
        Failure failure;
        failure.fact = "a case is taken step by step up to its end or an error";
        failure.operand = "steps";
        failure.got = std::to_string(outcome_.steps.size());
        failure.want = {std::to_string(want)};
        verdict_.failures.push_back(std::move(failure));
    }

    const Case& case_;
    const Outcome& outcome_;
    const Abilities& abilities_;
    CaseVerdict verdict_;
    StepJudge judge_;
    GroupBefore group_;
    std::vector<EntryValues> values_;
};

}  // namespace

std::string_view to_string(Quantity quantity) {
    switch (quantity) {
        case Quantity::kNorm:
            return "norm";
        case Quantity::kFirstMoment:
            return "m";
        case Quantity::kSecondMoment:
            return "v";
        case Quantity::kMaxSecondMoment:
            return "x";
        case Quantity::kParameters:
            return "p";
    }
    return "?";
}

CaseVerdict judge_case(const Case& c, const Outcome& outcome, const Abilities& abilities, const JudgeOptions& options) {
    reference::require_sound_arithmetic();
    return CaseRun(c, outcome, abilities, options).run();
}

}  // namespace gradguard::harness
