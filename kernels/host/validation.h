// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/host/adamw.h"
#include "reference/contract/options.h"

/// The rules of contract section 3 for tensors and groups. All throw Error before any device call.
namespace gradguard::kernels {

/// Every entry: shape, dtype, layout, storage, device, queue, state, step overflow.
void validate_entries(std::span<const AdamWEntry> entries, const AdamWOptions& options, const StepControl& control);

/// The gradients of a scan, each an entry of its own.
void validate_gradients(std::span<const Tensor> gradients);

/// Whether the device can run the kernels: 256 threads in a block and in x, at least 1 block in x and, where the
/// reduction runs, 3072 bytes of shared memory. Throws Error{UnsupportedDevice}.
void validate_device(const DeviceProperties& properties, bool with_reduction);

}  // namespace gradguard::kernels
