// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "bench/step_options.h"
#include "kernels/host/adamw.h"

namespace gradguard::bench {

using Entries = std::vector<AdamWEntry>;

/// The group that is stepped, in device memory, as one guarded step has left it: `tensors` entries of `elements`. Every
/// unscaled gradient has a magnitude in [1, 4), so that every step clips; the seed is fixed. Waits. Throws Error,
/// BenchFailure.
Entries make_group(const std::shared_ptr<Queue>& queue, const StepBenchOptions& options);

/// The same values on another device. Waits for both. Throws Error.
Entries copied_to(const std::shared_ptr<Queue>& queue, const Entries& entries);

/// The tensor's bytes on the host. Waits.
std::vector<std::byte> downloaded(const Tensor& tensor);
/// An F32 tensor's.
std::vector<float> downloaded_floats(const Tensor& tensor);

}  // namespace gradguard::bench
