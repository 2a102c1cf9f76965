// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernels/host/device.h"

namespace gradguard::harness {

/// Somebody else's kernels: statistics.ptx and update.ptx of a folder, with the entry points and arguments of
/// kernels/device/params.h. What is not there is the library's own, with or without contraction. Throws
/// std::invalid_argument when the folder has neither, vgpu::PtxError for what the virtual GPU does not take.
KernelSource kernels_from_folder(const std::string& folder, bool contracted = true);

}  // namespace gradguard::harness
