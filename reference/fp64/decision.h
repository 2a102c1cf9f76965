// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/contract/options.h"
#include "reference/contract/report.h"

namespace gradguard::reference {

/// Contract section 5: min(max_norm / (total_norm + epsilon), 1) in FP64, rounded once to FP32; 1 when max_norm is
/// absent. `guard` must be valid, `total_norm` finite and >= 0. In [0, 1], never -0.
float clip_multiplier(double total_norm, const GradientGuardOptions& guard);

/// Contract section 1: good -> (clip, false); bad with Skip -> (1, true). Throws Error: InvalidOption for invalid guard
/// options, NonFiniteGradients for a bad group with policy Error. A norm that is not finite counts as bad.
GradientDecision decide(const GradientStats& stats, const GradientGuardOptions& guard);

}  // namespace gradguard::reference
