// SPDX-License-Identifier: Apache-2.0
#include "bench/step_paths.h"

#include <span>
#include <utility>

#include "bench/device/embedded.h"
#include "bench/device/params.h"
#include "kernels/host/guarded_adamw.h"
#include "kernels/host/launch_plan.h"

namespace gradguard::bench {
namespace {

std::string unscale_clip_entry(DType dtype) {
    return dtype == DType::kF32 ? "unscale_clip_f32" : dtype == DType::kF16 ? "unscale_clip_f16" : "unscale_clip_bf16";
}

Submitted guarded(const Entries& entries, const StepBenchOptions& options) {
    GuardedAdamWUpdate update = guarded_adamw_step(entries, options.adamw(), options.control(), options.guard());
    if (update.skip_reason) {
        throw BenchFailure("the guarded step was skipped: " + std::string(to_string(*update.skip_reason)));
    }
    return {std::move(update.entries), update.clip_multiplier};
}

Submitted staged(const Entries& entries, const StepBenchOptions& options) {
    std::vector<Tensor> gradients;
    for (const AdamWEntry& entry : entries) gradients.push_back(entry.gradients);
    const float scale = options.control().gradient_scale;
    const GradientStatsReport report = gradient_stats_sync(gradients, scale);
    const GradientDecision decision = decide(report.stats, options.guard());
    if (decision.skip_update) throw BenchFailure("the staged step was skipped: NonFinite");
    Submitted submitted;
    submitted.clip_multiplier = decision.clip_multiplier;
    for (const AdamWEntry& entry : entries) {
        const Tensor clipped = unscaled_and_clipped(entry.gradients, scale, decision.clip_multiplier);
        submitted.updates.push_back(adamw_step(entry.parameters, clipped, entry.state, options.adamw(), {}));
    }
    return submitted;
}

}  // namespace

Tensor unscaled_and_clipped(const Tensor& gradients, float gradient_scale, float clip) {
    Tensor clipped = Tensor::allocate(gradients.queue, DType::kF32, gradients.layout.shape);
    UnscaleClipArguments arguments{};
    arguments.gradients = gradients.data();
    arguments.clipped = clipped.data();
    arguments.elements = static_cast<unsigned int>(gradients.elements());
    arguments.reciprocal_scale = 1.0F / gradient_scale;
    arguments.clip = clip;
    Queue& queue = *gradients.queue;
    Device& device = queue.device();
    const LaunchShape shape{kernels::update_blocks(arguments.elements, device.properties().max_blocks_in_x),
                            kThreadsPerBlock};
    queue.launch(device.kernel(kUnscaleClipModule, unscale_clip_entry(gradients.layout.dtype)), shape,
                 std::as_bytes(std::span(&arguments, 1)), {gradients.storage, clipped.storage});
    return clipped;
}

std::uint64_t bytes_per_element(const StepBenchOptions& options, int gradient_reads) {
    const std::uint64_t moments = options.amsgrad ? 3 : 2;
    return 2 * sizeof(float) * (1 + moments) +
           static_cast<std::uint64_t>(gradient_reads) * element_bytes(options.dtype);
}

StepPath guarded_path(const StepBenchOptions& options) {
    return {"guarded", "statistics, decision, one update with the clip inside", bytes_per_element(options, 2),
            [options](const Entries& entries) { return guarded(entries, options); }};
}

StepPath staged_path(const StepBenchOptions& options) {
    return {"staged",
            "the same statistics and decision, a pass that writes the clipped gradient as FP32, an unguarded update",
            bytes_per_element(options, 2) + 2 * sizeof(float),
            [options](const Entries& entries) { return staged(entries, options); }};
}

std::vector<StepPath> step_paths(const StepBenchOptions& options) {
    return {guarded_path(options), staged_path(options)};
}

}  // namespace gradguard::bench
