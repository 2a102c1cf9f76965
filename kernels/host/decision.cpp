// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/decision.h"

#include <algorithm>
#include <cmath>

#include "kernels/host/option_rules.h"
#include "reference/contract/error.h"

namespace gradguard {

GradientDecision decide(const GradientStats& stats, const GradientGuardOptions& guard) {
    kernels::validate(guard);
    // Statistics may have been agreed elsewhere: a sentinel must not flow into the coefficient.
    if (stats.total_norm < 0.0) {
        throw Error(ErrorKind::kInvalidSummary, {.operand = "total_norm"},
                    "want a norm >= 0, got " + kernels::number_to_string(stats.total_norm));
    }
    if (!stats.all_finite || !std::isfinite(stats.total_norm)) {
        if (guard.nonfinite == NonFinitePolicy::kError) {
            throw Error(ErrorKind::kNonFiniteGradients, {.operand = "gradients"},
                        "want finite gradients, got a NaN or an infinity in the group");
        }
        return {.clip_multiplier = 1.0F, .skip_update = true};
    }
    if (!guard.max_norm) return {};
    // -0 counts as 0: adding +0 makes the quotient +0.
    const double max_norm = static_cast<double>(*guard.max_norm) + 0.0;
    const double quotient = max_norm / (stats.total_norm + static_cast<double>(guard.epsilon));
    return {.clip_multiplier = static_cast<float>(std::min(quotient, 1.0)), .skip_update = false};
}

}  // namespace gradguard
