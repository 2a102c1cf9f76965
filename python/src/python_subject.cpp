// SPDX-License-Identifier: Apache-2.0
#include "python/src/python_subject.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <limits>
#include <utility>

#include "harness/case/case_names.h"
#include "reference/contract/error.h"

namespace gradguard::python {
namespace {

using harness::Case;
using harness::CaseEntry;
using harness::CaseTensor;
using harness::OutcomeEntry;
using harness::OutcomeError;
using harness::OutcomeState;
using harness::StepOutcome;

/// A dense array of its own: strides of dimensions of size 1 and the place in a storage mean nothing to NumPy.
nb::object array_of(const CaseTensor& tensor, std::span<const std::byte> values) {
    if (!harness::is_readable(tensor) || tensor.queue != 0) {
        throw NotTaken("no NumPy array is such a tensor");
    }
    return new_array_of(tensor.layout.dtype, tensor.layout.shape, values);
}
nb::object array_of(const CaseTensor& tensor) { return array_of(tensor, tensor.values); }

PyEntry entry_of(const CaseEntry& entry) {
    PyEntry made{array_of(entry.parameters), array_of(entry.gradients)};
    if (!entry.state) return made;
    PyState state{entry.state->step, array_of(entry.state->first_moment), array_of(entry.state->second_moment)};
    if (entry.state->max_second_moment) state.max_second_moment = array_of(*entry.state->max_second_moment);
    made.state = nb::cast(std::move(state));
    return made;
}

/// The next step's entry, from what the last one left.
PyEntry next_entry(const CaseEntry& entry, const OutcomeEntry& left, std::span<const std::byte> gradients) {
    const std::vector<std::uint64_t>& shape = entry.parameters.layout.shape;
    PyEntry made{new_array_of(shape, left.parameters), array_of(entry.gradients, gradients)};
    if (!left.state) return made;
    PyState state{left.state->step, new_array_of(shape, left.state->first_moment),
                  new_array_of(shape, left.state->second_moment)};
    if (left.state->max_second_moment) state.max_second_moment = new_array_of(shape, *left.state->max_second_moment);
    made.state = nb::cast(std::move(state));
    return made;
}

/// The bytes of every array of a group, by name, to see whether the subject writes to its inputs.
std::vector<std::pair<std::string, std::vector<std::byte>>> bytes_of(const nb::list& entries) {
    std::vector<std::pair<std::string, std::vector<std::byte>>> all;
    const auto add = [&](std::size_t entry, const char* name, const nb::object& array) {
        const ArrayView view = view_array(array, {entry, name});
        all.emplace_back("entry " + std::to_string(entry) + " " + name,
                         std::vector<std::byte>(view.data, view.data + view.bytes()));
    };
    const std::vector<const PyEntry*> group = entries_of(entries);
    for (std::size_t i = 0; i < group.size(); ++i) {
        add(i, "parameters", group[i]->parameters);
        add(i, "gradients", group[i]->gradients);
        const PyState* const state = state_of(group[i]->state);
        if (state == nullptr) continue;
        add(i, "first_moment", state->first_moment);
        add(i, "second_moment", state->second_moment);
        if (!state->max_second_moment.is_none()) add(i, "max_second_moment", state->max_second_moment);
    }
    return all;
}

OutcomeEntry outcome_entry(const PyUpdate& update, std::size_t i) {
    OutcomeEntry entry;
    entry.updated = update.updated;
    entry.parameters = copy_floats(update.parameters, {i, "parameters"});
    const PyState* const state = state_of(update.state);
    if (state == nullptr) return entry;
    entry.state = OutcomeState{state->step, copy_floats(state->first_moment, {i, "first_moment"}),
                               copy_floats(state->second_moment, {i, "second_moment"}), std::nullopt};
    if (!state->max_second_moment.is_none()) {
        entry.state->max_second_moment = copy_floats(state->max_second_moment, {i, "max_second_moment"});
    }
    return entry;
}

void read_result(const nb::object& result, StepOutcome& outcome) {
    if (result.is(nb::handle(Py_NotImplemented))) throw NotTaken("the subject does not take this case");
    if (!nb::isinstance<PyGuardedUpdate>(result)) throw nb::type_error("a subject: want a GuardedAdamWUpdate");
    const PyGuardedUpdate& update = *nb::inst_ptr<PyGuardedUpdate>(result);
    outcome.report = update.report;
    outcome.clip_multiplier = update.clip_multiplier;
    outcome.skip_reason = update.skip_reason;
    for (nb::handle item : update.entries) {
        if (!nb::isinstance<PyUpdate>(item)) throw nb::type_error("a subject's entries: want AdamWUpdate");
        outcome.entries.push_back(outcome_entry(*nb::inst_ptr<PyUpdate>(item), outcome.entries.size()));
    }
}

/// Properties rely on one summary for each tensor where the contract's tree is claimed: what is missing becomes one
/// that no reduction can give.
void complete_report(std::optional<GradientStatsReport>& report, const harness::Abilities& abilities,
                     std::size_t tensors) {
    constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
    if (report && abilities.norm == harness::NormKind::kContractTree) {
        report->summaries.resize(tensors, {kNone, kNone, kNone});
    }
}

/// The contract's error in a Python exception; rethrows any other.
OutcomeError error_of(const nb::python_error& raised) {
    if (!raised.matches(nb::module_::import_("gradguard._errors").attr("Error"))) throw raised;
    const nb::handle error = raised.value();
    const std::string kind = nb::cast<std::string>(error.attr("kind"));
    for (int k = 0; k <= static_cast<int>(ErrorKind::kNonFiniteGradients); ++k) {
        if (to_string(static_cast<ErrorKind>(k)) != kind) continue;
        return {static_cast<ErrorKind>(k), nb::cast<std::optional<std::size_t>>(error.attr("entry")),
                nb::cast<std::string>(error.attr("operand")), nb::cast<std::string>(error.attr("message"))};
    }
    throw raised;
}

}  // namespace

PythonSubject::~PythonSubject() {
    const nb::gil_scoped_acquire locked;
    step_.reset();
}

StepOutcome PythonSubject::take(const PyCase& c) const {
    StepOutcome outcome;
    const auto before = bytes_of(c.entries);
    try {
        read_result(step_(nb::cast(c)), outcome);
        complete_report(outcome.report, abilities_, c.entries.size());
        if (c.operation == "statistics") outcome.entries.clear();
    } catch (const nb::python_error& raised) {
        outcome.error = error_of(raised);
        outcome.entries.clear();
    }
    const auto after = bytes_of(c.entries);
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (before[i] != after[i]) outcome.inputs_changed.push_back(before[i].first);
    }
    return outcome;
}

harness::Outcome PythonSubject::step(const Case& c) {
    const nb::gil_scoped_acquire locked;
    PyCase step{
        std::string(harness::to_string(c.operation)), nb::list(), c.options, c.control, c.guard, 0, c.schedule_seed};
    for (const CaseEntry& entry : c.entries) step.entries.append(nb::cast(entry_of(entry)));
    harness::Outcome outcome;
    outcome.steps.push_back(take(step));
    for (const harness::LaterStep& later : c.later) {
        const StepOutcome& last = outcome.steps.back();
        if (last.error || last.entries.size() != c.entries.size()) break;
        nb::list entries;
        for (std::size_t i = 0; i < c.entries.size(); ++i) {
            entries.append(nb::cast(next_entry(c.entries[i], last.entries[i], later.gradients.at(i))));
        }
        step.entries = std::move(entries);
        step.control = later.control;
        ++step.step;
        outcome.steps.push_back(take(step));
    }
    return outcome;
}

}  // namespace gradguard::python
