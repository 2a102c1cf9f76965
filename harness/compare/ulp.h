// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/exact/real.h"

namespace gradguard::harness {

/// The spacing of FP32 numbers at |exact|: 2^(e - 23) where 2^e <= |exact| < 2^(e + 1), never less than the subnormal
/// spacing 2^-149 (also at 0) and never more than 2^104. `exact` must not be NaN.
double ulp_of(double exact);

/// |got - exact| in units of ulp_of(exact). An infinite `got` counts 0 when `exact` rounds to it, else +inf; equal
/// infinities count 0; NaN against NaN counts 0, NaN against anything else +inf. Never NaN.
double ulp_error(float got, double exact);
double ulp_error(float got, const reference::Real& exact);

}  // namespace gradguard::harness
