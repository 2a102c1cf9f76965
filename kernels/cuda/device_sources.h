// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "kernels/cuda/nvrtc.h"

namespace gradguard::cuda {

/// The source of a kernel module ("statistics" or "update") with its headers: the files of kernels/device and
/// reference/contract/constants.h as they were when this binary was built. Throws std::out_of_range for another name.
ProgramSource device_source(std::string_view module);

}  // namespace gradguard::cuda
