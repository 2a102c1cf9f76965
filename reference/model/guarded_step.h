// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/contract/options.h"
#include "reference/contract/report.h"
#include "reference/model/gradient_view.h"
#include "reference/model/validation.h"

namespace gradguard::reference {

/// A state's values on the host: [n] each.
struct HostState {
    std::uint64_t step = 1;  ///< Completed steps.
    std::vector<float> first_moment;
    std::vector<float> second_moment;
    std::optional<std::vector<float>> max_second_moment;  ///< Present exactly when AMSGrad is on.
};

/// One entry's values on the host.
struct HostEntry {
    std::vector<float> parameters;  ///< [n]
    DType gradient_dtype = DType::kF32;
    std::vector<std::byte> gradients;  ///< [n] of gradient_dtype, still multiplied by the loss scale.
    std::optional<HostState> state;    ///< Absent before the first update.

    GradientView gradient_view() const {
        return {gradient_dtype, gradients.data(), gradients.size() / element_bytes(gradient_dtype)};
    }
};

/// The new values of one entry; the old ones where nothing was updated.
struct HostUpdate {
    std::vector<float> parameters;
    std::optional<HostState> state;
    bool updated = false;  ///< A kernel would have been submitted.
};

struct HostGuardedUpdate {
    std::vector<HostUpdate> entries;            ///< In input order.
    std::optional<GradientStatsReport> report;  ///< Absent for Requested and Empty.
    float clip_multiplier = 1.0F;
    std::optional<SkipReason> skip_reason;
    std::uint64_t update_launches = 0;
};

/// How validation sees host values: dense tensors of rank 1, one device and queue.
EntryDescription describe(const HostEntry& entry);

/// One entry's update with the lines in FP32, uncontracted (contract section 6). A non-empty entry advances by one
/// step, an empty one is returned unchanged. Operands must be valid.
HostUpdate update_entry(const HostEntry& entry, const AdamWOptions& options, const StepControl& control, float clip);

/// The unguarded operator (contract section 2): validates like one entry, does not look for non-finite gradients.
/// Throws Error.
HostUpdate adamw_step(const HostEntry& entry, const AdamWOptions& options, const StepControl& control);

/// The update half of the guarded step, for a decision got elsewhere. Throws Error.
std::vector<HostUpdate> clipped_adamw_step(const GradientDecision& decision, std::span<const HostEntry> entries,
                                           const AdamWOptions& options, const StepControl& control);

/// The guarded step (contract section 2) as a pure function, in that section's order; the update lines uncontracted.
/// `limits`: of the device whose results are wanted; the default grants what every CUDA device does. Throws Error.
HostGuardedUpdate guarded_step(std::span<const HostEntry> entries, const AdamWOptions& options,
                               const StepControl& control, const GradientGuardOptions& guard,
                               const DeviceLimits& limits = {1024, 1024, 2147483647, 49152});

}  // namespace gradguard::reference
