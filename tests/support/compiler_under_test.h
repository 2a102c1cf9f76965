// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "kernels/cuda/nvrtc_source.h"
#include "kernels/host/device.h"

namespace gradguard::testing {

/// Whether this run of the tests is one on kernels that NVRTC compiles: tests/nvrtc starts test programs a second time
/// with GRADGUARD_TEST_COMPILER=nvrtc. Where there is no NVRTC, opening the kernels throws cuda::NvrtcUnavailable, and
/// the run counts as blocked.
inline bool compiled_by_nvrtc() {
    const char* compiler = std::getenv("GRADGUARD_TEST_COMPILER");
    return compiler != nullptr && std::string_view(compiler) == "nvrtc";
}

/// The library's kernels that are under test.
inline KernelSource kernels_under_test(bool contracted) {
    if (!compiled_by_nvrtc()) return KernelSource::embedded(contracted);
    cuda::NvrtcOptions options;
    options.contracted = contracted;
    return cuda::nvrtc_source(options);
}

}  // namespace gradguard::testing
