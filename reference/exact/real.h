// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "reference/exact/exact_sum.h"

namespace gradguard::reference {

/// Reals for the oracle: 256 bits of significand, an exponent range that nothing here reaches.
using Real =
    boost::multiprecision::number<boost::multiprecision::cpp_bin_float<256, boost::multiprecision::digit_base_2>,
                                  boost::multiprecision::et_off>;

/// Rounded once to FP32, to nearest even, subnormals kept; infinite from 2^128 - 2^103 up.
float to_float(const Real& x);

/// Rounded once to FP64, to nearest even, subnormals kept.
double to_double(const Real& x);

/// The exact sum as a real; exact while its bits lie within 256 of each other, otherwise rounded at 256 bits.
Real to_real(const ExactSumOfSquares& sum);

}  // namespace gradguard::reference
