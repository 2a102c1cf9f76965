// SPDX-License-Identifier: Apache-2.0
#include "tests/compare/oracle_outcome.h"

#include <cstring>

#include "reference/model/guarded_step.h"
#include "reference/model/statistics.h"

namespace gradguard::testing {
namespace {

using harness::Case;
using harness::CaseEntry;
using harness::CaseTensor;
using harness::Outcome;
using harness::StepOutcome;
using reference::HostEntry;
using reference::HostUpdate;

CaseTensor tensor_of(DType dtype, std::uint64_t elements, const void* data) {
    CaseTensor tensor;
    tensor.layout = {dtype, {elements}, {1}, 0};
    tensor.storage_bytes = elements * element_bytes(dtype);
    tensor.values.resize(tensor.storage_bytes);
    if (elements != 0) std::memcpy(tensor.values.data(), data, tensor.values.size());
    return tensor;
}

std::vector<float> floats(const CaseTensor& tensor) {
    std::vector<float> values(tensor.values.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), tensor.values.data(), tensor.values.size());
    return values;
}

HostEntry host_entry(const CaseEntry& entry) {
    HostEntry host{floats(entry.parameters), entry.gradients.layout.dtype, entry.gradients.values, std::nullopt};
    if (!entry.state) return host;
    host.state = reference::HostState{entry.state->step, floats(entry.state->first_moment),
                                      floats(entry.state->second_moment), std::nullopt};
    if (entry.state->max_second_moment) host.state->max_second_moment = floats(*entry.state->max_second_moment);
    return host;
}

/// Fills a step from the entries' updates, which become the next step's input.
void take_updates(StepOutcome& step, const std::vector<HostUpdate>& updates, std::vector<HostEntry>& entries,
                  const Case& c, const StepControl& control) {
    step.update_launches = 0;
    for (std::size_t i = 0; i < updates.size(); ++i) {
        const HostUpdate& update = updates[i];
        harness::OutcomeEntry entry;
        entry.updated = update.updated;
        entry.parameters = update.parameters;
        if (update.state) {
            entry.state = harness::OutcomeState{update.state->step, update.state->first_moment,
                                                update.state->second_moment, update.state->max_second_moment};
        }
        if (update.updated) {
            ++*step.update_launches;
            entry.coefficients =
                reference::update_coefficients(c.options, control, step.clip_multiplier, update.state->step);
        }
        step.entries.push_back(std::move(entry));
        entries[i].parameters = update.parameters;
        entries[i].state = update.state;
    }
}

StepOutcome one_step(const Case& c, const StepControl& control, std::vector<HostEntry>& entries) {
    StepOutcome step;
    step.device_calls = 0;
    if (c.operation == harness::Operation::kStatistics) {
        std::vector<reference::GradientView> views;
        for (const auto& entry : entries) views.push_back(entry.gradient_view());
        step.report = reference::group_statistics(views, control.gradient_scale);
    } else if (c.operation == harness::Operation::kUnguardedStep) {
        take_updates(step, {reference::adamw_step(entries.front(), c.options, control)}, entries, c, control);
    } else {
        const auto result = reference::guarded_step(entries, c.options, control, c.guard);
        step.report = result.report;
        step.clip_multiplier = result.clip_multiplier;
        step.skip_reason = result.skip_reason;
        take_updates(step, result.entries, entries, c, control);
    }
    return step;
}

}  // namespace

CaseTensor case_tensor(const std::vector<float>& values) {
    return tensor_of(DType::kF32, values.size(), values.data());
}
CaseTensor case_tensor(DType dtype, const std::vector<std::uint16_t>& words) {
    return tensor_of(dtype, words.size(), words.data());
}

CaseEntry case_entry(const std::vector<float>& parameters, CaseTensor gradients, std::uint64_t step, bool amsgrad) {
    CaseEntry entry{case_tensor(parameters), std::move(gradients), std::nullopt};
    if (step == 0) return entry;
    harness::CaseState state;
    state.step = step;
    std::vector<float> m;
    std::vector<float> v;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        m.push_back(0.01F * static_cast<float>(i + 1));
        v.push_back(0.002F * static_cast<float>(i + 1));
    }
    state.first_moment = case_tensor(m);
    state.second_moment = case_tensor(v);
    if (amsgrad) state.max_second_moment = case_tensor(v);
    entry.state = std::move(state);
    return entry;
}

Outcome oracle_outcome(const Case& c) {
    std::vector<HostEntry> entries;
    for (const auto& entry : c.entries) entries.push_back(host_entry(entry));
    Outcome outcome;
    for (std::size_t k = 0; k <= c.later.size(); ++k) {
        const StepControl& control = k == 0 ? c.control : c.later[k - 1].control;
        if (k != 0) {
            for (std::size_t i = 0; i < entries.size(); ++i) entries[i].gradients = c.later[k - 1].gradients[i];
        }
        try {
            outcome.steps.push_back(one_step(c, control, entries));
        } catch (const Error& error) {
            StepOutcome step;
            step.error = harness::OutcomeError{error.kind(), error.site().entry, error.site().operand, error.message()};
            step.device_calls = 0;
            outcome.steps.push_back(std::move(step));
            break;
        }
    }
    return outcome;
}

}  // namespace gradguard::testing
