// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/contract/options.h"
#include "reference/contract/report.h"

namespace gradguard {

/// The decision for the whole group (contract section 5); needs no device. A norm that is not finite is bad whatever
/// `all_finite` says. Throws InvalidOption for the guard's options, InvalidSummary for a negative norm and
/// NonFiniteGradients for a bad group under NonFinitePolicy::kError.
GradientDecision decide(const GradientStats& stats, const GradientGuardOptions& guard = {});

}  // namespace gradguard
