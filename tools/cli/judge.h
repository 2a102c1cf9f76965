// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/case/abilities.h"
#include "harness/case/outcome.h"
#include "harness/io/results.h"
#include "reference/contract/options.h"
#include "reference/model/gradient_view.h"

namespace gradguard::tools {

/// The gradients of one step, on the host.
struct JudgedGroup {
    std::vector<std::string> names;
    std::vector<reference::GradientView> gradients;
    float gradient_scale = 1.0F;
    std::uint32_t block_limit = 1024;  ///< What the device grants.
    std::string replay;                ///< The command that shows a failure again.
};

/// What a step was asked to do and what came of it.
struct JudgedStep {
    const AdamWOptions& options;
    const StepControl& control;
    const GradientGuardOptions& guard;
    harness::Contraction contraction = harness::Contraction::kAllowed;
    std::span<const harness::OutcomeEntry> before;
    const harness::StepOutcome& outcome;
};

/// Compares a scan with the contract's tree on the host, bit for bit, and with the exact sum.
harness::StepResult judge_scan(const JudgedGroup& group, const GradientStatsReport& report);

/// Compares a guarded step with the oracle: statistics, decision, every element of the update, and that what should be
/// unchanged is.
harness::StepResult judge_step(const JudgedGroup& group, const JudgedStep& step);

/// Which tensors are bad and where first, "NAME at INDEX" each; empty when the oracle finds the group good.
std::vector<std::string> bad_places(const JudgedGroup& group);

}  // namespace gradguard::tools
