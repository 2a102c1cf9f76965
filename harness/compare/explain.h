// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/case/abilities.h"
#include "reference/contract/report.h"
#include "reference/fp64/coefficients.h"
#include "reference/model/gradient_view.h"
#include "reference/model/update.h"

namespace gradguard::harness {

/// One element's update told line by line, without line ends: each intermediate of contract section 6 at 256 bits
/// (reading (a), from the old state) and as FP32 computes it uncontracted; for m, v, x and p what the subject stored,
/// its error in ulp, whether it is admitted, and the bound with where it comes from (the legal set and its hull, or the
/// interval for a subject that declares reassociation or flushing). `raw`: the stored gradient widened to FP32; moments
/// of a first update are +0, x is 0 without AMSGrad.
std::vector<std::string> explain_element(float raw, const reference::ElementState<float>& old,
                                         const reference::ElementState<float>& stored,
                                         const reference::UpdateCoefficients& c, const Abilities& abilities);

/// The norm of a group told the same way: for each tensor the exact norm, the reported summary, the contract's tree and
/// its bound; for the group the exact and the reported norm, the error in ulp, and which share of the bound it is.
/// `gradient_scale` must be valid.
std::vector<std::string> explain_norm(const GradientStatsReport& reported,
                                      std::span<const reference::GradientView> gradients, float gradient_scale,
                                      const Abilities& abilities);

}  // namespace gradguard::harness
