// SPDX-License-Identifier: Apache-2.0
// Faults of the host's decisions, planted around the library's public halves and between it and the device.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>

#include "harness/subjects/planted.h"
#include "kernels/device/params.h"
#include "kernels/host/decision.h"
#include "reference/contract/error.h"

namespace gradguard::harness {
namespace {

using Entries = std::span<const AdamWEntry>;

std::vector<Tensor> gradients_of(Entries entries) {
    std::vector<Tensor> gradients;
    for (const AdamWEntry& entry : entries) gradients.push_back(entry.gradients);
    return gradients;
}

std::vector<AdamWUpdate> unchanged(Entries entries) {
    std::vector<AdamWUpdate> updates;
    for (const AdamWEntry& entry : entries) updates.push_back({entry.parameters, entry.state, false});
    return updates;
}

/// Whether a step scans and decides. Validates in the contract's order; a decision to skip makes no device call.
bool decides(Entries entries, const AdamWOptions& options, const StepControl& control,
             const GradientGuardOptions& guard) {
    clipped_adamw_step({1.0F, true}, {}, options, control);
    decide({}, guard);
    clipped_adamw_step({1.0F, true}, entries, options, control);
    return !control.skip_update &&
           std::any_of(entries.begin(), entries.end(), [](const AdamWEntry& e) { return !e.parameters.empty(); });
}

using Decide = GradientDecision (*)(const GradientStatsReport& report, const GradientGuardOptions& guard);

/// The guarded step from its halves with a decision of one's own.
Operations::Guarded deciding(Decide own_decision) {
    return [own_decision](Entries entries, const AdamWOptions& options, const StepControl& control,
                          const GradientGuardOptions& guard) -> GuardedAdamWUpdate {
        if (!decides(entries, options, control, guard)) return guarded_adamw_step(entries, options, control, guard);
        GuardedAdamWUpdate result;
        result.report = gradient_stats_sync(gradients_of(entries), control.gradient_scale);
        const GradientDecision decision = own_decision(*result.report, guard);
        result.entries = clipped_adamw_step(decision, entries, options, control);
        result.clip_multiplier = decision.clip_multiplier;
        if (decision.skip_update) result.skip_reason = SkipReason::kNonFinite;
        return result;
    };
}

/// Takes the library's step and changes its result.
using Change = void (*)(GuardedAdamWUpdate& result, Entries entries);
Operations::Guarded changing(Change change) {
    return [change](Entries entries, const AdamWOptions& options, const StepControl& control,
                    const GradientGuardOptions& guard) {
        GuardedAdamWUpdate result = guarded_adamw_step(entries, options, control, guard);
        change(result, entries);
        return result;
    };
}

bool is_bad(const GradientStatsReport& report) { return !report.stats.all_finite; }

// ---- decisions -----------------------------------------------------------------------------------------------------

GradientDecision right(const GradientStatsReport& report, const GradientGuardOptions& guard) {
    return decide(report.stats, guard);
}

GradientDecision squared_norm(const GradientStatsReport& report, const GradientGuardOptions& guard) {
    GradientStats stats = report.stats;
    stats.total_norm *= stats.total_norm;
    if (!is_bad(report)) stats.total_norm = std::min(stats.total_norm, std::numeric_limits<double>::max());
    return decide(stats, guard);
}

GradientDecision first_tensor_only(const GradientStatsReport& report, const GradientGuardOptions& guard) {
    GradientStats stats = report.stats;
    stats.all_finite = report.summaries.empty() || report.summaries.front().bad == 0.0F;
    if (stats.all_finite) {
        double sum = 0.0;
        for (const GradientSummary& s : report.summaries) sum += double{s.scale} * double{s.scale} * double{s.sumsq};
        stats.total_norm = std::sqrt(sum);
    }
    return decide(stats, guard);
}

GradientDecision nan_passes_guard(const GradientStatsReport& report, const GradientGuardOptions& guard) {
    GradientStats stats = report.stats;
    if (is_bad(report)) stats.total_norm = std::numeric_limits<double>::quiet_NaN();
    if (stats.total_norm > std::numeric_limits<double>::max()) return decide(stats, guard);
    if (is_bad(report)) return {};  // no comparison with NaN holds: neither skipped nor clipped
    return decide(stats, guard);
}

GradientDecision clip_without_epsilon(const GradientStatsReport& report, const GradientGuardOptions& guard) {
    GradientDecision decision = decide(report.stats, guard);
    if (decision.skip_update || !guard.max_norm || report.stats.total_norm == 0.0) return decision;
    const double quotient = (double{*guard.max_norm} + 0.0) / report.stats.total_norm;
    decision.clip_multiplier = static_cast<float>(std::min(quotient, 1.0));
    return decision;
}

GradientDecision norm_as_fp32(const GradientStatsReport& report, const GradientGuardOptions& guard) {
    GradientStats stats = report.stats;
    const auto rounded = static_cast<float>(stats.total_norm);
    if (std::isfinite(rounded)) stats.total_norm = rounded;
    return decide(stats, guard);
}

// ---- whole steps ---------------------------------------------------------------------------------------------------

GuardedAdamWUpdate clip_per_tensor(Entries entries, const AdamWOptions& options, const StepControl& control,
                                   const GradientGuardOptions& guard) {
    if (!decides(entries, options, control, guard)) return guarded_adamw_step(entries, options, control, guard);
    GuardedAdamWUpdate result;
    result.report = gradient_stats_sync(gradients_of(entries), control.gradient_scale);
    const GradientDecision group = decide(result.report->stats, guard);
    result.clip_multiplier = group.clip_multiplier;
    if (group.skip_update) {
        result.entries = unchanged(entries);
        result.skip_reason = SkipReason::kNonFinite;
        return result;
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const GradientSummary& s = result.report->summaries[i];
        GradientStats own = result.report->stats;
        own.total_norm = std::sqrt(double{s.scale} * double{s.scale} * double{s.sumsq});
        std::vector<AdamWUpdate> one = clipped_adamw_step(decide(own, guard), {&entries[i], 1}, options, control);
        result.entries.push_back(std::move(one.front()));
    }
    return result;
}

void empty_shifts(GuardedAdamWUpdate& result, Entries entries) {
    std::vector<AdamWUpdate> live;
    std::vector<AdamWUpdate> empty;
    for (std::size_t i = 0; i < result.entries.size(); ++i) {
        (entries[i].parameters.empty() ? empty : live).push_back(result.entries[i]);
    }
    live.insert(live.end(), empty.begin(), empty.end());
    result.entries = std::move(live);
}

void empty_shifts_summaries(GuardedAdamWUpdate& result, Entries entries) {
    if (!result.report) return;
    std::vector<GradientSummary> live;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!entries[i].parameters.empty()) live.push_back(result.report->summaries[i]);
    }
    live.resize(entries.size());
    result.report->summaries = std::move(live);
}

void step_as_fp32(GuardedAdamWUpdate& result, Entries entries) {
    constexpr float kMost = 9.0e18F;  // what still fits in 64 bits as an FP32 number
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!result.entries[i].updated || !result.entries[i].state) continue;
        const auto before = static_cast<float>(entries[i].state ? entries[i].state->step : 0);
        if (before < kMost) result.entries[i].state->step = static_cast<std::uint64_t>(before + 1.0F);
    }
}

void step_advances_on_skip(GuardedAdamWUpdate& result, Entries) {
    if (result.skip_reason != SkipReason::kNonFinite) return;
    for (AdamWUpdate& update : result.entries) {
        if (update.state) ++update.state->step;
    }
}

void clip_reported_on_skip(GuardedAdamWUpdate& result, Entries) {
    if (result.skip_reason == SkipReason::kNonFinite) result.clip_multiplier = 0.0F;
}

// ---- between the library and the device ----------------------------------------------------------------------------

/// Changes the arguments of each update kernel.
class ChangeUpdates : public DeviceHook {
  public:
    using Change = std::function<void(kernels::UpdateArguments&)>;
    explicit ChangeUpdates(Change change) : change_(std::move(change)) {}
    void change_arguments(const std::string& kernel, std::span<std::byte> arguments) override {
        kernels::UpdateArguments update;
        if (!kernel.starts_with("adamw_") || arguments.size() != sizeof update) return;
        std::memcpy(&update, arguments.data(), sizeof update);
        change_(update);
        std::memcpy(arguments.data(), &update, sizeof update);
    }

  private:
    Change change_;
};

/// What the entries of the step under way advance to, and its options, for whoever changes its launches.
struct StepUnderWay {
    std::deque<std::uint64_t> steps;
    AdamWOptions options;

    void begin(Entries entries, const AdamWOptions& now) {
        steps.clear();
        options = now;
        for (const AdamWEntry& entry : entries) {
            if (!entry.parameters.empty()) steps.push_back((entry.state ? entry.state->step : 0) + 1);
        }
    }
};

/// Tells a hook of each step before the library takes it.
void change_updates(LibraryRecipe& recipe, std::function<void(kernels::UpdateArguments&, StepUnderWay&)> change) {
    const auto step = std::make_shared<StepUnderWay>();
    recipe.hooks.push_back(
        std::make_shared<ChangeUpdates>([step, change = std::move(change)](kernels::UpdateArguments& update) {
            change(update, *step);
            if (!step->steps.empty()) step->steps.pop_front();
        }));
    recipe.operations.guarded = [step](Entries entries, const AdamWOptions& options, const StepControl& control,
                                       const GradientGuardOptions& guard) {
        step->begin(entries, options);
        return guarded_adamw_step(entries, options, control, guard);
    };
    recipe.operations.unguarded = [step](const AdamWEntry& entry, const AdamWOptions& options,
                                         const StepControl& control) {
        step->begin({&entry, 1}, options);
        return adamw_step(entry.parameters, entry.gradients, entry.state, options, control);
    };
}

float fp32_inverse_bias(float beta, std::uint64_t t) {
    float value = 1.0F;
    for (float base = beta; t != 0; t >>= 1U, base *= base) {
        if ((t & 1U) != 0) value *= base;
    }
    return 1.0F / (1.0F - value);
}

void bias_power_fp32(LibraryRecipe& recipe) {
    change_updates(recipe, [](kernels::UpdateArguments& update, StepUnderWay& step) {
        if (step.steps.empty()) return;
        update.inverse_bias1 = fp32_inverse_bias(update.beta1, step.steps.front());
        update.inverse_bias2 = fp32_inverse_bias(update.beta2, step.steps.front());
    });
}

void decay_contracted(LibraryRecipe& recipe) {
    change_updates(recipe, [](kernels::UpdateArguments& update, StepUnderWay& step) {
        update.decay = std::fma(-step.options.learning_rate, step.options.weight_decay, 1.0F);
    });
}

void moment_in_place(LibraryRecipe& recipe) {
    change_updates(recipe, [](kernels::UpdateArguments& update, StepUnderWay&) {
        if (update.first_moment != 0) update.new_first_moment = update.first_moment;
    });
}

template <Decide kOwn>
void plant_decision(LibraryRecipe& recipe) {
    recipe.operations.guarded = deciding(kOwn);
}

template <Change kOwn>
void plant_change(LibraryRecipe& recipe) {
    recipe.operations.guarded = changing(kOwn);
}

constexpr HostFault kHostFaults[] = {
    {"clean-host", plant_decision<right>},
    {"clip-per-tensor", [](LibraryRecipe& recipe) { recipe.operations.guarded = clip_per_tensor; }},
    {"squared-norm", plant_decision<squared_norm>},
    {"step-as-fp32", plant_change<step_as_fp32>},
    {"bias-power-fp32", bias_power_fp32},
    {"first-tensor-only", plant_decision<first_tensor_only>},
    {"nan-passes-guard", plant_decision<nan_passes_guard>},
    {"empty-shifts", plant_change<empty_shifts>},
    {"empty-shifts-summaries", plant_change<empty_shifts_summaries>},
    {"step-advances-on-skip", plant_change<step_advances_on_skip>},
    {"clip-reported-on-skip", plant_change<clip_reported_on_skip>},
    {"clip-without-epsilon", plant_decision<clip_without_epsilon>},
    {"norm-as-fp32", plant_decision<norm_as_fp32>},
    {"decay-contracted", decay_contracted},
    {"moment-in-place", moment_in_place},
};

}  // namespace

std::span<const HostFault> host_faults() { return kHostFaults; }

}  // namespace gradguard::harness
