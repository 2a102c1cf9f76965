// SPDX-License-Identifier: Apache-2.0
#include "harness/subjects/library_subject.h"

#include <utility>

#include "harness/devices/registry.h"
#include "harness/devices/virtual_device.h"
#include "harness/subjects/device_group.h"
#include "harness/subjects/launch_watch.h"
#include "kernels/device/params.h"
#include "reference/contract/error.h"

namespace gradguard::harness {
namespace {

/// What a step returned, whichever operation it was.
struct Result {
    std::vector<AdamWUpdate> updates;
    std::optional<GradientStatsReport> report;
    float clip_multiplier = 1.0F;
    std::optional<SkipReason> skip_reason;
};

class LibrarySubject : public Subject {
  public:
    LibrarySubject(LibraryRecipe recipe, const SubjectOptions& options)
        : recipe_(std::move(recipe)), watch_(std::make_shared<LaunchWatch>()) {
        DeviceRequest request;
        request.name = options.device;
        request.observers = options.observers;
        device_ = open_device(request);
        virtual_ = std::dynamic_pointer_cast<VirtualDevice>(device_);
        device_->set_kernel_source(recipe_.kernels);
        // The watch comes last: it sees what the device is given, whatever the other hooks did to it.
        std::vector<std::shared_ptr<DeviceHook>> hooks = recipe_.hooks;
        hooks.push_back(watch_);
        outer_ = hook_device(device_, std::move(hooks));
        // Both modules now, so that the first case is like the others.
        outer_->kernel("statistics", kernels::kMergeEntry);
        outer_->kernel("update", "adamw_f32");
        findings_told_ = device_findings(*device_).size();  // the virtual driver's are those of the whole process
    }

    const std::string& name() const override { return recipe_.name; }
    const Abilities& abilities() const override { return recipe_.abilities; }

    Outcome step(const Case& c) override {
        if (virtual_) {
            virtual_->renew(c.schedule_seed);
            findings_told_ = 0;
        }
        Outcome outcome;
        {
            DeviceGroup group(device_, outer_);
            group.place(c);
            take_steps(c, group, outcome);
        }
        // Now every owner is gone: what is left, has leaked. Only the virtual device can tell.
        if (virtual_) add_findings(messages(virtual_->final_findings()), outcome.steps.back());
        return outcome;
    }

  private:
    void take_steps(const Case& c, DeviceGroup& group, Outcome& outcome) {
        outcome.steps.reserve(1 + c.later.size());
        outcome.steps.push_back(take_step(c, c.control, group));
        for (const LaterStep& later : c.later) {
            if (outcome.steps.back().error) return;
            group.place_gradients(c, later.gradients);
            outcome.steps.push_back(take_step(c, later.control, group));
        }
    }

    StepOutcome take_step(const Case& c, const StepControl& control, DeviceGroup& group) {
        StepOutcome outcome;
        group.guard_inputs();
        watch_->clear();
        try {
            Result result = run(c, control, group);
            outcome.device_calls = watch_->calls();
            outcome.update_launches = watch_->update_launches();
            group.synchronize();
            outcome.report = std::move(result.report);
            outcome.clip_multiplier = result.clip_multiplier;
            outcome.skip_reason = result.skip_reason;
            outcome.inputs_changed = group.changed_inputs();
            if (c.operation != Operation::kStatistics) fill_entries(result.updates, group, outcome);
            group.advance(std::move(result.updates));
        } catch (const Error& error) {
            outcome.error = OutcomeError{error.kind(), error.site().entry, error.site().operand, error.message()};
            if (!outcome.device_calls) outcome.device_calls = watch_->calls();
            outcome.update_launches = watch_->update_launches();
            outcome.entries.clear();
            settle(group);
            outcome.inputs_changed = group.changed_inputs();
        }
        add_findings(device_findings(*device_), outcome);
        return outcome;
    }

    Result run(const Case& c, const StepControl& control, const DeviceGroup& group) const {
        Result result;
        const Operations& call = recipe_.operations;
        switch (c.operation) {
            case Operation::kStatistics: {
                const std::vector<Tensor> gradients = group.gradients();
                result.report = call.statistics(gradients, control.gradient_scale);
                break;
            }
            case Operation::kUnguardedStep: {
                result.updates.push_back(call.unguarded(group.entries().at(0), c.options, control));
                break;
            }
            case Operation::kGuardedStep: {
                GuardedAdamWUpdate update = call.guarded(group.entries(), c.options, control, c.guard);
                result = {std::move(update.entries), std::move(update.report), update.clip_multiplier,
                          update.skip_reason};
                break;
            }
        }
        return result;
    }

    void fill_entries(const std::vector<AdamWUpdate>& updates, const DeviceGroup& group, StepOutcome& outcome) const {
        outcome.entries.reserve(updates.size());
        for (const AdamWUpdate& update : updates) {
            OutcomeEntry entry;
            entry.updated = update.updated;
            entry.parameters = group.read(update.parameters);
            if (update.state) {
                OutcomeState& state = entry.state.emplace();
                state.step = update.state->step;
                state.first_moment = group.read(update.state->first_moment);
                state.second_moment = group.read(update.state->second_moment);
                if (update.state->max_second_moment) {
                    state.max_second_moment = group.read(*update.state->max_second_moment);
                }
            }
            if (update.updated) entry.coefficients = watch_->coefficients(update.parameters.data());
            outcome.entries.push_back(std::move(entry));
        }
    }

    /// After an error: what is still queued runs or is dropped.
    static void settle(DeviceGroup& group) {
        try {
            group.synchronize();
        } catch (const Error&) {  // the first error is the one that counts
        }
    }

    static std::vector<std::string> messages(const std::vector<vgpu::Finding>& findings) {
        std::vector<std::string> lines;
        for (const vgpu::Finding& finding : findings) lines.push_back(finding.message());
        return lines;
    }

    /// Those that came since the last time. A finding that is seen again only counts up.
    void add_findings(const std::vector<std::string>& all, StepOutcome& outcome) {
        for (; findings_told_ < all.size(); ++findings_told_) outcome.findings.push_back(all[findings_told_]);
    }

    LibraryRecipe recipe_;
    std::shared_ptr<LaunchWatch> watch_;
    std::shared_ptr<Device> device_;
    std::shared_ptr<VirtualDevice> virtual_;  ///< The same; null for any other device.
    std::shared_ptr<Device> outer_;
    std::size_t findings_told_ = 0;
};

}  // namespace

std::unique_ptr<Subject> make_library_subject(LibraryRecipe recipe, const SubjectOptions& options) {
    return std::make_unique<LibrarySubject>(std::move(recipe), options);
}

}  // namespace gradguard::harness
