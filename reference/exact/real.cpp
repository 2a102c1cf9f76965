// SPDX-License-Identifier: Apache-2.0
#include "reference/exact/real.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradguard::reference {
namespace {

/// |x| rounded to a multiple of 2^quantum, ties to even, returned as that multiple's integer (at most 2^53).
double rounded_multiple(const Real& magnitude, int quantum) {
    const Real scaled = ldexp(magnitude, -quantum);
    const Real whole = floor(scaled);
    const Real rest = scaled - whole;
    const double lower = whole.convert_to<double>();  // exact: below 2^53
    const Real half(0.5);
    if (rest > half || (rest == half && std::fmod(lower, 2.0) != 0.0)) return lower + 1.0;
    return lower;
}

/// Rounded to a format of `digits` bits with least exponent `least` (of its subnormals); the caller handles overflow.
double round_to_format(const Real& x, int digits, int least) {
    if (isnan(x)) return std::numeric_limits<double>::quiet_NaN();
    const double sign = x < 0 ? -1.0 : 1.0;
    if (isinf(x)) return sign * std::numeric_limits<double>::infinity();
    if (x == 0) return 0.0;
    const Real magnitude = abs(x);
    const auto exponent = static_cast<long long>(ilogb(magnitude));
    if (exponent > 2000) return sign * std::numeric_limits<double>::infinity();
    if (exponent < -2000) return sign * 0.0;
    const int quantum = std::max(static_cast<int>(exponent) - digits + 1, least);
    return sign * std::ldexp(rounded_multiple(magnitude, quantum), quantum);
}

}  // namespace

float to_float(const Real& x) {
    // At most 24 bits on a legal place: the cast is exact, or overflows exactly where FP32 does.
    return static_cast<float>(round_to_format(x, 24, -149));
}

double to_double(const Real& x) { return round_to_format(x, 53, -1074); }

Real to_real(const ExactSumOfSquares& sum) {
    Real result(0);
    for (int i = ExactSumOfSquares::kLimbs - 1; i >= 0; --i) {
        result += ldexp(Real(sum.limbs()[static_cast<std::size_t>(i)]), 64 * i + ExactSumOfSquares::kUnitExponent);
    }
    return result;
}

}  // namespace gradguard::reference
