// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "reference/contract/dtype.h"

namespace gradguard::harness {

/// A binary floating format in integers.
struct FloatFormat {
    unsigned bits;           ///< Of the whole word.
    unsigned mantissa_bits;  ///< Stored ones.
    int least_exponent;      ///< Of a normal number.
    int greatest_exponent;

    constexpr std::uint32_t sign() const { return 1U << (bits - 1); }
    constexpr std::uint32_t infinity() const { return (sign() - 1) >> mantissa_bits << mantissa_bits; }
    constexpr std::uint32_t greatest() const { return infinity() - 1; }
    constexpr std::uint32_t least_normal() const { return 1U << mantissa_bits; }
    constexpr std::uint32_t one() const { return static_cast<std::uint32_t>(1 - least_exponent) << mantissa_bits; }
};

inline constexpr FloatFormat kF32Format{32, 23, -126, 127};
inline constexpr FloatFormat kF16Format{16, 10, -14, 15};
inline constexpr FloatFormat kBF16Format{16, 7, -126, 127};

constexpr const FloatFormat& format_of(DType dtype) {
    return dtype == DType::kF32 ? kF32Format : dtype == DType::kF16 ? kF16Format : kBF16Format;
}

/// The bits of 2^exponent * (1 + fraction / 2^23), cut to the format: subnormal or zero below its range, the greatest
/// finite number above it.
constexpr std::uint32_t encode(const FloatFormat& format, int exponent, std::uint32_t fraction) {
    if (exponent > format.greatest_exponent) return format.greatest();
    const unsigned cut = 23 - format.mantissa_bits;
    if (exponent >= format.least_exponent) {
        return static_cast<std::uint32_t>(exponent - format.least_exponent + 1) << format.mantissa_bits |
               fraction >> cut;
    }
    const int shift = format.least_exponent - exponent + static_cast<int>(cut);
    return shift > 23 ? 0 : (0x00800000U | fraction) >> static_cast<unsigned>(shift);
}

}  // namespace gradguard::harness
