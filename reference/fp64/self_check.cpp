// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/self_check.h"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace gradguard::reference {
namespace {

#if defined(__GNUC__) || defined(__clang__)
#define GRADGUARD_NOINLINE __attribute__((noinline))
#else
#define GRADGUARD_NOINLINE
#endif

struct Pair {
    double low;
    double high;
};

/// Two adjacent double-float-double casts: g++ 12 with SLP vectorization returns its arguments unrounded.
GRADGUARD_NOINLINE Pair round_both(double low, double high) {
    return {static_cast<double>(static_cast<float>(low)), static_cast<double>(static_cast<float>(high))};
}

GRADGUARD_NOINLINE float multiply_add(float a, float b, float c) { return a * b + c; }
GRADGUARD_NOINLINE double multiply_add(double a, double b, double c) { return a * b + c; }

}  // namespace

std::optional<std::string> self_check() {
    // Everything passes through volatile objects: the question is what this process computes, not what the compiler
    // knows.
    volatile float least_normal = std::numeric_limits<float>::min();
    volatile float half = least_normal / 2.0F;
    if (!(half != 0.0F)) return "FP32 subnormal results are flushed to zero";
    volatile float restored = half * 2.0F;
    if (restored != least_normal) return "FP32 subnormal inputs are read as zero";
    volatile float zero = 0.0F;
    volatile float least = std::nextafter(static_cast<float>(zero), 1.0F);
    if (!(least > zero)) return "nextafter(0, 1) is not greater than 0";
    volatile double least_double = std::numeric_limits<double>::min();
    volatile double half_double = least_double / 2.0;
    if (!(half_double != 0.0)) return "FP64 subnormal results are flushed to zero";

    volatile float one = 1.0F;
    volatile float tie = 0x1p-24F;
    volatile float tie_to_even = one + tie;
    volatile float odd = 1.0F + 0x1p-23F;
    volatile float tie_up = odd + tie;
    volatile float minus_tie = -one - tie;
    if (tie_to_even != 1.0F || tie_up != 1.0F + 0x1p-22F || minus_tie != -1.0F) {
        return "FP32 arithmetic does not round to nearest even";
    }
    volatile double tie_double = 0x1p-53;
    volatile double sum_double = 1.0 + tie_double;
    volatile double more = 1.0 + 0x1p-52;
    volatile double sum_up = more + tie_double;
    if (sum_double != 1.0 || sum_up != 1.0 + 0x1p-51) return "FP64 arithmetic does not round to nearest even";

    // (1 + 2^-12)^2 - (1 + 2^-11) is 0 when the product is rounded first and 2^-24 when it is fused.
    volatile float factor = 1.0F + 0x1p-12F;
    volatile float subtrahend = -(1.0F + 0x1p-11F);
    if (multiply_add(static_cast<float>(factor), static_cast<float>(factor), static_cast<float>(subtrahend)) != 0.0F) {
        return "the compiler contracts FP32 multiplications and additions";
    }
    volatile double factor_double = 1.0 + 0x1p-27;
    volatile double subtrahend_double = -(1.0 + 0x1p-26);
    if (multiply_add(static_cast<double>(factor_double), static_cast<double>(factor_double),
                     static_cast<double>(subtrahend_double)) != 0.0) {
        return "the compiler contracts FP64 multiplications and additions";
    }
    volatile double above = 1.0 + 0x1p-30;
    volatile double below = -3.0 - 0x1p-30;
    const Pair rounded = round_both(above, below);
    if (rounded.low != 1.0 || rounded.high != -3.0) return "the compiler dropped a rounding from double to float";
    return std::nullopt;
}

void require_sound_arithmetic() {
    static const std::optional<std::string> fault = self_check();
    if (fault) throw std::runtime_error("the oracle refuses to run: " + *fault);
}

}  // namespace gradguard::reference
