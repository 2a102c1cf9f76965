// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "kernels/cuda/nvrtc.h"
#include "kernels/host/device.h"

namespace gradguard::bench {

/// Names of the modules of the benchmark's own kernels: the staged baseline's pass and the copy.
inline constexpr const char* kUnscaleClipModule = "unscale_clip";
inline constexpr const char* kCopyModule = "copy";

/// `source`, and beside its modules those two, compiled ahead of time with or without contraction.
KernelSource with_bench_kernels(KernelSource source, bool contracted);

/// The source of those two for NVRTC, with its headers, as it was when this binary was built; of another module
/// cuda::device_source().
cuda::ProgramSource device_source(std::string_view module);

}  // namespace gradguard::bench
