// SPDX-License-Identifier: Apache-2.0
#include "harness/generators/generators.h"
#include "reference/fp64/option_rules.h"
#include "reference/model/validation.h"

namespace gradguard::harness {
namespace {

using reference::EntryDescription;
using reference::TensorDescription;
using reference::Violation;

TensorDescription describe(const CaseTensor& tensor) { return {tensor.layout, tensor.storage_bytes, 0, tensor.queue}; }

EntryDescription describe(const CaseEntry& entry) {
    EntryDescription description{describe(entry.parameters), describe(entry.gradients), std::nullopt};
    if (!entry.state) return description;
    reference::StateDescription& state = description.state.emplace();
    state.step = entry.state->step;
    state.first_moment = describe(entry.state->first_moment);
    state.second_moment = describe(entry.state->second_moment);
    if (entry.state->max_second_moment) state.max_second_moment = describe(*entry.state->max_second_moment);
    return description;
}

std::optional<Violation> violation_of_first(const Case& c) {
    if (c.operation == Operation::kStatistics) {
        std::vector<TensorDescription> gradients;
        for (const CaseEntry& entry : c.entries) gradients.push_back(describe(entry.gradients));
        return reference::validate_statistics(gradients, c.control.gradient_scale);
    }
    std::vector<EntryDescription> entries;
    for (const CaseEntry& entry : c.entries) entries.push_back(describe(entry));
    return reference::validate_step(entries, c.options, c.control,
                                    c.operation == Operation::kGuardedStep ? &c.guard : nullptr);
}

}  // namespace

std::optional<Violation> violation_of(const Case& c) {
    if (auto violation = violation_of_first(c)) return violation;
    for (const LaterStep& later : c.later) {
        if (auto violation = reference::check_control(later.control)) return violation;
    }
    return std::nullopt;
}

std::optional<Violation> violation_of(const CaseRecipe& recipe) { return violation_of(realise_layout(recipe)); }

}  // namespace gradguard::harness
