// SPDX-License-Identifier: Apache-2.0
#include "harness/subjects/oracle_subject.h"

#include <cstring>
#include <utility>

#include "reference/contract/error.h"
#include "reference/fp64/coefficients.h"
#include "reference/fp64/self_check.h"
#include "reference/model/guarded_step.h"
#include "reference/model/statistics.h"
#include "reference/model/validation.h"

namespace gradguard::harness {
namespace {

using reference::HostEntry;
using reference::HostState;
using reference::HostUpdate;

reference::TensorDescription describe(const CaseTensor& tensor) {
    return {tensor.layout, tensor.storage_bytes, 0, tensor.queue};
}

reference::EntryDescription describe(const CaseEntry& entry) {
    reference::EntryDescription description{describe(entry.parameters), describe(entry.gradients), std::nullopt};
    if (entry.state) {
        description.state = reference::StateDescription{entry.state->step, describe(entry.state->first_moment),
                                                        describe(entry.state->second_moment), std::nullopt};
        if (entry.state->max_second_moment) {
            description.state->max_second_moment = describe(*entry.state->max_second_moment);
        }
    }
    return description;
}

/// Contract section 3 for the layouts as they are; the model sees dense host values only.
void validate(const Case& c) {
    std::optional<reference::Violation> violation;
    if (c.operation == Operation::kStatistics) {
        std::vector<reference::TensorDescription> gradients;
        for (const CaseEntry& entry : c.entries) gradients.push_back(describe(entry.gradients));
        violation = reference::validate_statistics(gradients, c.control.gradient_scale);
    } else {
        std::vector<reference::EntryDescription> entries;
        for (const CaseEntry& entry : c.entries) entries.push_back(describe(entry));
        const auto* const guard = c.operation == Operation::kGuardedStep ? &c.guard : nullptr;
        violation = reference::validate_step(entries, c.options, c.control, guard);
    }
    if (violation) reference::raise(*violation);
}

std::vector<float> floats(const CaseTensor& tensor) {
    std::vector<float> values(tensor.values.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), tensor.values.data(), values.size() * sizeof(float));
    return values;
}

HostEntry host_entry(const CaseEntry& entry) {
    HostEntry host{floats(entry.parameters), entry.gradients.layout.dtype, entry.gradients.values, std::nullopt};
    if (entry.state) {
        host.state = HostState{entry.state->step, floats(entry.state->first_moment), floats(entry.state->second_moment),
                               std::nullopt};
        if (entry.state->max_second_moment) host.state->max_second_moment = floats(*entry.state->max_second_moment);
    }
    return host;
}

class OracleSubject : public Subject {
  public:
    OracleSubject() {
        reference::require_sound_arithmetic();
        abilities_.contraction = Contraction::kForbidden;
    }

    const std::string& name() const override { return name_; }
    const Abilities& abilities() const override { return abilities_; }

    Outcome step(const Case& c) override {
        Outcome outcome;
        std::vector<HostEntry> entries;
        StepOutcome first;
        try {
            validate(c);
            for (const CaseEntry& entry : c.entries) entries.push_back(host_entry(entry));
        } catch (const Error& error) {
            first.error = OutcomeError{error.kind(), error.site().entry, error.site().operand, error.message()};
            first.device_calls = first.update_launches = 0;
            outcome.steps.push_back(std::move(first));
            return outcome;
        }
        outcome.steps.push_back(take_step(c, c.control, entries));
        for (const LaterStep& later : c.later) {
            if (outcome.steps.back().error) break;
            for (std::size_t i = 0; i < entries.size(); ++i) entries[i].gradients = later.gradients.at(i);
            outcome.steps.push_back(take_step(c, later.control, entries));
        }
        return outcome;
    }

  private:
    /// Leaves the new values in `entries`.
    static StepOutcome take_step(const Case& c, const StepControl& control, std::vector<HostEntry>& entries) {
        StepOutcome outcome;
        try {
            std::vector<HostUpdate> updates = run(c, control, entries, outcome);
            for (std::size_t i = 0; i < updates.size(); ++i) {
                const std::uint64_t step = entries[i].state ? entries[i].state->step : 0;
                outcome.entries.push_back(entry_of(updates[i]));
                if (updates[i].updated) {
                    outcome.entries.back().coefficients =
                        reference::update_coefficients(c.options, control, outcome.clip_multiplier, step + 1);
                }
                entries[i].parameters = std::move(updates[i].parameters);
                entries[i].state = std::move(updates[i].state);
            }
        } catch (const Error& error) {
            outcome.error = OutcomeError{error.kind(), error.site().entry, error.site().operand, error.message()};
        }
        return outcome;
    }

    static std::vector<HostUpdate> run(const Case& c, const StepControl& control, const std::vector<HostEntry>& entries,
                                       StepOutcome& outcome) {
        switch (c.operation) {
            case Operation::kStatistics: {
                reference::require_sound_arithmetic();
                std::vector<reference::GradientView> gradients;
                for (const HostEntry& entry : entries) gradients.push_back(entry.gradient_view());
                outcome.report = reference::group_statistics(gradients, control.gradient_scale);
                return {};
            }
            case Operation::kUnguardedStep:
                return {reference::adamw_step(entries.at(0), c.options, control)};
            case Operation::kGuardedStep:
                break;
        }
        reference::HostGuardedUpdate update = reference::guarded_step(entries, c.options, control, c.guard);
        outcome.report = std::move(update.report);
        outcome.clip_multiplier = update.clip_multiplier;
        outcome.skip_reason = update.skip_reason;
        outcome.update_launches = update.update_launches;
        return std::move(update.entries);
    }

    static OutcomeEntry entry_of(const HostUpdate& update) {
        OutcomeEntry entry;
        entry.updated = update.updated;
        entry.parameters = update.parameters;
        if (update.state) {
            entry.state = OutcomeState{update.state->step, update.state->first_moment, update.state->second_moment,
                                       update.state->max_second_moment};
        }
        return entry;
    }

    std::string name_ = "oracle";
    Abilities abilities_;
};

}  // namespace

std::unique_ptr<Subject> make_oracle_subject() { return std::make_unique<OracleSubject>(); }

}  // namespace gradguard::harness
