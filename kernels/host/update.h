// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/device/params.h"
#include "kernels/host/adamw.h"

namespace gradguard::kernels {

/// 1 / (1 - beta^t) in FP64 rounded once to FP32, t >= 1 (contract section 6).
float inverse_bias_correction(float beta, std::uint64_t t);

/// Coefficients of an update to step `t` (contract section 6): all of the argument struct but addresses and count.
UpdateArguments update_coefficients(const AdamWOptions& options, float gradient_scale, float clip, std::uint64_t t);

/// Where an update writes. Own buffers today; memory that the caller supplies fits in as well.
struct UpdateOutputs {
    Tensor parameters;
    AdamWState state;
};
UpdateOutputs allocate_outputs(const AdamWEntry& entry, bool amsgrad);

/// Submits one update kernel; `entry` is valid and not empty.
AdamWUpdate submit_update(const AdamWEntry& entry, UpdateOutputs outputs, const AdamWOptions& options,
                          float gradient_scale, float clip);

/// The entry as it came.
AdamWUpdate unchanged(const AdamWEntry& entry);

/// One result for each valid entry: empty ones unchanged, every other updated with the common clip multiplier. All
/// outputs are allocated before the first submission, so that running out of memory leaves nothing submitted.
std::vector<AdamWUpdate> submit_updates(std::span<const AdamWEntry> entries, const AdamWOptions& options,
                                        float gradient_scale, float clip);

}  // namespace gradguard::kernels
