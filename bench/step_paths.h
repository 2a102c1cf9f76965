// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/step_group.h"

namespace gradguard::bench {

/// What a path has submitted.
struct Submitted {
    std::vector<AdamWUpdate> updates;  ///< One for each entry.
    float clip_multiplier = 1.0F;
};

/// One way to take the same step. `submit` does all of it but the final synchronisation; it throws Error, and
/// BenchFailure when it would skip.
struct StepPath {
    std::string name;
    std::string description;
    std::uint64_t bytes_per_element = 0;  ///< Of global memory that it reads and writes, counted from the source.
    std::function<Submitted(const Entries&)> submit;
};

/// Bytes of global memory for each element of a later step (performance.md's table): parameters and moments read and
/// written, and the gradient read so many times.
std::uint64_t bytes_per_element(const StepBenchOptions& options, int gradient_reads);

/// guarded_adamw_step(), which scans and then updates: the gradient is read twice.
StepPath guarded_path(const StepBenchOptions& options);

/// Submits the launch that the guarded step saves: the gradient, unscaled and clipped, as FP32 in a new tensor of its
/// shape. The device's kernel source must have the module "unscale_clip" (with_bench_kernels()). Throws Error.
Tensor unscaled_and_clipped(const Tensor& gradients, float gradient_scale, float clip);

/// The same statistics and decision; then for each tensor a launch that writes the unscaled and clipped gradient as
/// FP32, and the unguarded update of that: one launch, 4 bytes of temporary and 8 bytes of traffic for each element
/// more (contract section 6). The device's kernel source must have the module "unscale_clip" (with_bench_kernels()).
StepPath staged_path(const StepBenchOptions& options);

/// Both, the guarded one first.
std::vector<StepPath> step_paths(const StepBenchOptions& options);

}  // namespace gradguard::bench
