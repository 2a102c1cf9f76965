// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/ulp.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace gradguard::harness {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The error where it does not depend on a distance.
std::optional<double> special_error(float got, bool exact_is_nan, bool exact_is_infinite, float exact_rounded) {
    if (std::isnan(got) || exact_is_nan) return std::isnan(got) && exact_is_nan ? 0.0 : kInfinity;
    if (std::isinf(got) || exact_is_infinite) return got == exact_rounded ? 0.0 : kInfinity;
    return std::nullopt;
}

}  // namespace

double ulp_of(double exact) {
    const auto biased = static_cast<std::int64_t>((std::bit_cast<std::uint64_t>(exact) >> 52U) & 0x7FFU);
    const std::int64_t exponent = std::clamp<std::int64_t>(biased - 1023, -126, 127) - 23;
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52U);
}

double ulp_error(float got, double exact) {
    if (const auto error = special_error(got, std::isnan(exact), std::isinf(exact), static_cast<float>(exact))) {
        return *error;
    }
    return std::fabs(static_cast<double>(got) - exact) / ulp_of(exact);
}

double ulp_error(float got, const reference::Real& exact) {
    if (const auto error = special_error(got, isnan(exact), isinf(exact), reference::to_float(exact))) return *error;
    // An FP64 value of the exact result may round up into the next binade: take the exponent from the real.
    const int exponent = exact == 0 ? -126 : static_cast<int>(std::clamp<long long>(ilogb(exact), -126, 127));
    const reference::Real error = abs(reference::Real(reference::Real(got) - exact));
    return reference::to_double(ldexp(error, 23 - exponent));
}

}  // namespace gradguard::harness
