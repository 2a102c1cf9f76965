// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "reference/exact/float_bits.h"

namespace gradguard::reference {

/// A sum of squares of finite FP32 values without any rounding: a 640-bit integer in units of 2^-298, the square of the
/// least subnormal. One square has at most 554 bits, so any group with a 64-bit count fits (618 bits).
class ExactSumOfSquares {
  public:
    static constexpr int kLimbs = 10;
    static constexpr int kUnitExponent = -298;

    /// Adds value^2. `value` must be finite.
    void add(float value) {
        const std::uint32_t bits = bits_of(value) & ~kSignBit;
        if (bits == 0) return;
        const std::uint32_t exponent = bits >> 23U;
        // |value| = mantissa * 2^place in units of 2^-149.
        const std::uint64_t mantissa = (bits & kMantissaBits) | (exponent != 0 ? 0x00800000U : 0U);
        const std::uint32_t place = exponent != 0 ? exponent - 1 : 0;
        const std::uint32_t shift = 2 * place;
        const auto square = static_cast<unsigned __int128>(mantissa * mantissa) << (shift % 64U);
        add_at(shift / 64U, static_cast<std::uint64_t>(square), static_cast<std::uint64_t>(square >> 64U));
    }

    /// Adds another sum.
    ExactSumOfSquares& operator+=(const ExactSumOfSquares& other);

    bool operator==(const ExactSumOfSquares&) const = default;
    std::strong_ordering operator<=>(const ExactSumOfSquares& other) const;

    bool is_zero() const;

    /// The integer, least significant limb first.
    const std::array<std::uint64_t, kLimbs>& limbs() const { return limbs_; }

    /// The square root, rounded once to FP64 (to nearest even).
    double root() const;

    /// The sum itself, rounded once to FP64 (to nearest even).
    double value() const;

  private:
    void add_at(std::uint32_t limb, std::uint64_t low, std::uint64_t high) {
        limbs_[limb] += low;
        const std::uint64_t carry = limbs_[limb] < low ? 1 : 0;
        // high has at most 47 bits: adding the carry to it cannot wrap.
        limbs_[limb + 1] += high + carry;
        if (limbs_[limb + 1] >= high + carry) return;
        for (std::uint32_t i = limb + 2; i < kLimbs && ++limbs_[i] == 0; ++i) {
        }
    }

    std::array<std::uint64_t, kLimbs> limbs_{};
};

}  // namespace gradguard::reference
