// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/guarded_adamw.h"

#include <algorithm>
#include <string>

#include "kernels/host/option_rules.h"
#include "kernels/host/update.h"
#include "kernels/host/validation.h"
#include "reference/contract/error.h"

namespace gradguard {
namespace {

std::vector<AdamWUpdate> all_unchanged(std::span<const AdamWEntry> entries) {
    std::vector<AdamWUpdate> updates;
    for (const AdamWEntry& entry : entries) updates.push_back(kernels::unchanged(entry));
    return updates;
}

const AdamWEntry* first_live(std::span<const AdamWEntry> entries) {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [](const AdamWEntry& entry) { return !entry.parameters.empty(); });
    return found == entries.end() ? nullptr : &*found;
}

}  // namespace

void GuardedAdamWUpdate::wait() const {
    // One queue for the whole group: whoever waits for one update has waited for all.
    const auto updated = std::find_if(entries.begin(), entries.end(), [](const AdamWUpdate& u) { return u.updated; });
    if (updated != entries.end()) updated->wait();
}

GuardedAdamWUpdate guarded_adamw_step(std::span<const AdamWEntry> entries, const AdamWOptions& options,
                                      const StepControl& control, const GradientGuardOptions& guard) {
    kernels::validate(options);
    kernels::validate(control);
    kernels::validate(guard);
    kernels::validate_entries(entries, options, control);
    GuardedAdamWUpdate result;
    const auto skip = [&](SkipReason reason) {
        result.entries = all_unchanged(entries);
        result.skip_reason = reason;
        return result;
    };
    if (control.skip_update) return skip(SkipReason::kRequested);
    if (first_live(entries) == nullptr) return skip(SkipReason::kEmpty);

    std::vector<Tensor> gradients;
    for (const AdamWEntry& entry : entries) gradients.push_back(entry.gradients);
    result.report = gradient_stats_sync(gradients, control.gradient_scale);
    const GradientDecision decision = decide(result.report->stats, guard);
    if (decision.skip_update) return skip(SkipReason::kNonFinite);
    result.clip_multiplier = decision.clip_multiplier;
    result.entries = kernels::submit_updates(entries, options, control.gradient_scale, decision.clip_multiplier);
    return result;
}

std::vector<AdamWUpdate> clipped_adamw_step(const GradientDecision& decision, std::span<const AdamWEntry> entries,
                                            const AdamWOptions& options, const StepControl& control) {
    kernels::validate(options);
    kernels::validate(control);
    if (!(decision.clip_multiplier >= 0.0F && decision.clip_multiplier <= 1.0F)) {
        throw Error(ErrorKind::kInvalidOption, {.operand = "clip_multiplier"},
                    "want a value in [0, 1], got " + kernels::number_to_string(decision.clip_multiplier));
    }
    kernels::validate_entries(entries, options, control);
    const AdamWEntry* live = first_live(entries);
    if (decision.skip_update || control.skip_update || live == nullptr) return all_unchanged(entries);
    kernels::validate_device(live->parameters.queue->device().properties(), false);
    return kernels::submit_updates(entries, options, control.gradient_scale, decision.clip_multiplier);
}

}  // namespace gradguard
