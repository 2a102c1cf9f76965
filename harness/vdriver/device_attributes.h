// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "harness/vdriver/configuration.h"

namespace gradguard::vdriver {

/// By the number of cuda.h's CUdevice_attribute; nothing for a number that CUDA 13.0 does not know. What a program can
/// use is what the virtual GPU grants; what it lacks (textures, surfaces, clusters, IPC, virtual memory management) is
/// 0.
std::optional<int> device_attribute(const Configuration& configuration, int attribute);

/// Multiprocessors, and what each holds: figures of an A100, by which programs plan. The virtual GPU has no such
/// limits.
inline constexpr int kMultiprocessors = 108;
inline constexpr int kThreadsPerMultiprocessor = 2048;
inline constexpr int kBlocksPerMultiprocessor = 32;
inline constexpr int kRegistersPerMultiprocessor = 65536;
/// Of a block that did not ask for more (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).
inline constexpr int kSharedBytesByDefault = 49152;
/// Of shared memory, for each block.
inline constexpr int kReservedShared = 1024;

/// Shared memory of a block without and with asking, and of a multiprocessor.
int shared_bytes_by_default(const Configuration& configuration);
int shared_bytes_at_most(const Configuration& configuration);
int shared_bytes_per_multiprocessor(const Configuration& configuration);

}  // namespace gradguard::vdriver
