// SPDX-License-Identifier: Apache-2.0
#include "harness/devices/kernel_counts.h"

namespace gradguard::harness {

void KernelCounts::launch_begin(vgpu::Observed& launch) { current_ = &by_kernel_[launch.kernel()]; }

}  // namespace gradguard::harness
