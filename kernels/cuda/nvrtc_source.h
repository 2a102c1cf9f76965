// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/compile_cache.h"
#include "kernels/cuda/nvrtc.h"
#include "kernels/host/device.h"

namespace gradguard::cuda {

struct NvrtcOptions {
    bool contracted = true;                   ///< -fmad (contract section 6).
    std::string architecture = "compute_80";  ///< What the kernels compiled ahead of time are compiled for.
    std::string library;                      ///< See find_nvrtc(); empty: the usual places.
    std::optional<CudaRelease> newest;        ///< Of CUDA whose PTX the driver takes; absent: any.
    /// Where compiled kernels are kept; empty: nowhere; absent: CompileCache::usual_folder().
    std::optional<std::string> cache_folder;
    /// The source of each module; empty: device_source().
    std::function<ProgramSource(std::string_view module)> sources;
    /// Gets one line where something does not work that is no failure: compiled kernels are not kept.
    std::function<void(const std::string&)> note;
};

/// NVRTC's options for them: what they mean is what tools/regenerate_ptx.py asks of nvcc.
std::vector<std::string> nvrtc_flags(bool contracted, const std::string& architecture);

/// The kernels of this binary, compiled by NVRTC: the library is looked for now, a module is compiled when it is first
/// asked for, or taken from the cache, whose key is made of sources, flags, and the release and identity of the
/// library. Throws NvrtcUnavailable; `ptx` of the result throws Error{DeviceFailure} with the compiler's log.
KernelSource nvrtc_source(const NvrtcOptions& options = {});

}  // namespace gradguard::cuda
