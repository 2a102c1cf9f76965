// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/decision.h"

#include <cmath>
#include <cstdio>
#include <string>

#include "reference/fp64/option_rules.h"

namespace gradguard::reference {

float clip_multiplier(double total_norm, const GradientGuardOptions& guard) {
    if (!guard.max_norm) return 1.0F;
    const double max_norm = *guard.max_norm == 0.0F ? 0.0 : static_cast<double>(*guard.max_norm);
    const double quotient = max_norm / (total_norm + static_cast<double>(guard.epsilon));
    return static_cast<float>(quotient < 1.0 ? quotient : 1.0);
}

GradientDecision decide(const GradientStats& stats, const GradientGuardOptions& guard) {
    if (const auto violation = reference::check_guard(guard)) raise(*violation);
    if (stats.total_norm < 0.0) {
        raise(make_violation(ErrorKind::kInvalidSummary, std::nullopt, "total_norm",
                             "want a norm >= 0, got " + std::to_string(stats.total_norm)));
    }
    if (stats.all_finite && std::isfinite(stats.total_norm)) {
        return {reference::clip_multiplier(stats.total_norm, guard), false};
    }
    if (guard.nonfinite == NonFinitePolicy::kSkip) return {1.0F, true};
    char max[32];
    std::snprintf(max, sizeof max, "%.9g", static_cast<double>(stats.max_finite_abs));
    raise(make_violation(ErrorKind::kNonFiniteGradients, std::nullopt, "gradients",
                         "want finite gradients, got NaN or infinity among " + std::to_string(stats.elements) +
                             " elements of " + std::to_string(stats.tensors) + " tensors (greatest finite magnitude " +
                             max + ")"));
}

}  // namespace gradguard::reference
