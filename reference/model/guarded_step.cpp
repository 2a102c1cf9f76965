// SPDX-License-Identifier: Apache-2.0
#include "reference/model/guarded_step.h"

#include <algorithm>

#include "reference/fp64/coefficients.h"
#include "reference/fp64/decision.h"
#include "reference/model/statistics.h"
#include "reference/model/update.h"

namespace gradguard::reference {
namespace {

TensorDescription dense(DType dtype, std::uint64_t elements) {
    return {{dtype, {elements}, {1}, 0}, elements * element_bytes(dtype), 0, 0};
}

std::vector<EntryDescription> describe_all(std::span<const HostEntry> entries) {
    std::vector<EntryDescription> descriptions;
    descriptions.reserve(entries.size());
    for (const auto& entry : entries) descriptions.push_back(reference::describe(entry));
    return descriptions;
}

HostUpdate unchanged(const HostEntry& entry) { return {entry.parameters, entry.state, false}; }

std::vector<HostUpdate> all_unchanged(std::span<const HostEntry> entries) {
    std::vector<HostUpdate> updates;
    for (const auto& entry : entries) updates.push_back(unchanged(entry));
    return updates;
}

std::vector<HostUpdate> update_all(std::span<const HostEntry> entries, const AdamWOptions& options,
                                   const StepControl& control, float clip) {
    std::vector<HostUpdate> updates;
    for (const auto& entry : entries) updates.push_back(reference::update_entry(entry, options, control, clip));
    return updates;
}

}  // namespace

EntryDescription describe(const HostEntry& entry) {
    EntryDescription description{dense(DType::kF32, entry.parameters.size()),
                                 dense(entry.gradient_dtype, entry.gradient_view().elements), std::nullopt};
    if (entry.state) {
        StateDescription state{entry.state->step, dense(DType::kF32, entry.state->first_moment.size()),
                               dense(DType::kF32, entry.state->second_moment.size()), std::nullopt};
        if (entry.state->max_second_moment) {
            state.max_second_moment = dense(DType::kF32, entry.state->max_second_moment->size());
        }
        description.state = std::move(state);
    }
    return description;
}

HostUpdate update_entry(const HostEntry& entry, const AdamWOptions& options, const StepControl& control, float clip) {
    const std::size_t n = entry.parameters.size();
    if (n == 0) return unchanged(entry);
    const std::uint64_t t = (entry.state ? entry.state->step : 0) + 1;
    const auto coefficients = update_coefficients(options, control, clip, t);
    const auto lines = line_coefficients<float>(coefficients);
    const GradientView gradients = entry.gradient_view();
    HostState next{t, std::vector<float>(n), std::vector<float>(n), std::nullopt};
    if (options.amsgrad) next.max_second_moment.emplace(n);
    HostUpdate update{std::vector<float>(n), std::nullopt, true};
    for (std::size_t i = 0; i < n; ++i) {
        ElementState<float> old{entry.parameters[i]};
        if (entry.state) {
            old.m = entry.state->first_moment[i];
            old.v = entry.state->second_moment[i];
            if (options.amsgrad) old.x = (*entry.state->max_second_moment)[i];
        }
        const auto result = Lines<>::update(raw_value(gradients, i), old, lines);
        update.parameters[i] = result.p;
        next.first_moment[i] = result.m;
        next.second_moment[i] = result.v;
        if (options.amsgrad) (*next.max_second_moment)[i] = result.x;
    }
    update.state = std::move(next);
    return update;
}

HostUpdate adamw_step(const HostEntry& entry, const AdamWOptions& options, const StepControl& control) {
    const EntryDescription description = reference::describe(entry);
    if (const auto violation = validate_step({&description, 1}, options, control, nullptr)) raise(*violation);
    return control.skip_update ? unchanged(entry) : update_entry(entry, options, control, 1.0F);
}

std::vector<HostUpdate> clipped_adamw_step(const GradientDecision& decision, std::span<const HostEntry> entries,
                                           const AdamWOptions& options, const StepControl& control) {
    if (const auto violation = validate_step(describe_all(entries), options, control, nullptr)) raise(*violation);
    if (decision.skip_update || control.skip_update) return all_unchanged(entries);
    return update_all(entries, options, control, decision.clip_multiplier);
}

HostGuardedUpdate guarded_step(std::span<const HostEntry> entries, const AdamWOptions& options,
                               const StepControl& control, const GradientGuardOptions& guard,
                               const DeviceLimits& limits) {
    if (const auto violation = validate_step(describe_all(entries), options, control, guard)) raise(*violation);
    HostGuardedUpdate result;
    const auto live =
        std::count_if(entries.begin(), entries.end(), [](const auto& e) { return !e.parameters.empty(); });
    if (control.skip_update || live == 0) {
        result.entries = all_unchanged(entries);
        result.skip_reason = control.skip_update ? SkipReason::kRequested : SkipReason::kEmpty;
        return result;
    }
    if (const auto violation = check_limits(limits)) raise(*violation);
    std::vector<GradientView> gradients;
    for (const auto& entry : entries) gradients.push_back(entry.gradient_view());
    result.report = group_statistics(gradients, control.gradient_scale, limits.grid_x);
    const GradientDecision decision = reference::decide(result.report->stats, guard);
    result.clip_multiplier = decision.clip_multiplier;
    if (decision.skip_update) {
        result.entries = all_unchanged(entries);
        result.skip_reason = SkipReason::kNonFinite;
        return result;
    }
    result.entries = update_all(entries, options, control, decision.clip_multiplier);
    result.update_launches = static_cast<std::uint64_t>(live);
    return result;
}

}  // namespace gradguard::reference
