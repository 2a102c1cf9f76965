// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/host/adamw.h"
#include "kernels/host/decision.h"
#include "kernels/host/statistics.h"
#include "reference/contract/options.h"
#include "reference/contract/report.h"

namespace gradguard {

/// Result of a guarded step (contract section 1).
struct GuardedAdamWUpdate {
    std::vector<AdamWUpdate> entries;           ///< One for each entry in input order.
    std::optional<GradientStatsReport> report;  ///< Absent for Requested and Empty.
    float clip_multiplier = 1.0F;               ///< In [0, 1]; 1 on any skip.
    std::optional<SkipReason> skip_reason;

    /// Waits until every update has completed. Throws Error{DeviceFailure} when the device failed.
    void wait() const;
};

/// The whole guarded step, in the order of contract section 2: validates everything, scans the group, decides once,
/// submits one update for each non-empty entry. The statistics are complete when it returns, the updates only
/// submitted. Throws Error; before any update is submitted unless the kind is DeviceFailure.
GuardedAdamWUpdate guarded_adamw_step(std::span<const AdamWEntry> entries, const AdamWOptions& options = {},
                                      const StepControl& control = {}, const GradientGuardOptions& guard = {});

/// The last of the three public halves: validates as the guarded step does, leaves everything unchanged when the
/// decision skips, and submits the updates with the decision's clip multiplier, which must be in [0, 1] (else
/// InvalidOption).
std::vector<AdamWUpdate> clipped_adamw_step(const GradientDecision& decision, std::span<const AdamWEntry> entries,
                                            const AdamWOptions& options = {}, const StepControl& control = {});

}  // namespace gradguard
