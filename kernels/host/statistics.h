// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/host/tensor.h"
#include "reference/contract/options.h"
#include "reference/contract/report.h"

namespace gradguard {

/// Scans a group of gradients (contract section 4): queues every tensor's reduction, reads all summaries back in one
/// batched call and combines them on the host in FP64. Blocks; writes to no gradient.
/// Throws InvalidOption (gradient_scale), InvalidTensor, DifferentExecutionQueue, UnsupportedDevice before any device
/// call; DeviceFailure, Readback, InvalidSummary after.
GradientStatsReport gradient_stats_sync(std::span<const Tensor> gradients, float gradient_scale = 1.0F);

}  // namespace gradguard
