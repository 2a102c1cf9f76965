// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace gradguard::reference {

inline constexpr std::uint32_t kSignBit = 0x80000000U;
inline constexpr std::uint32_t kExponentBits = 0x7F800000U;
inline constexpr std::uint32_t kMantissaBits = 0x007FFFFFU;

constexpr std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
constexpr float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

enum class FloatClass : std::uint8_t { kZero, kSubnormal, kNormal, kInfinite, kNaN };

/// By the integer image, so that no compiler option can fold it away.
constexpr FloatClass classify(float x) {
    const std::uint32_t magnitude = bits_of(x) & ~kSignBit;
    if (magnitude == 0) return FloatClass::kZero;
    if (magnitude < 0x00800000U) return FloatClass::kSubnormal;
    if (magnitude < kExponentBits) return FloatClass::kNormal;
    return magnitude == kExponentBits ? FloatClass::kInfinite : FloatClass::kNaN;
}
constexpr bool is_nan(float x) { return (bits_of(x) & ~kSignBit) > kExponentBits; }
constexpr bool is_finite_bits(float x) { return (bits_of(x) & kExponentBits) != kExponentBits; }
constexpr bool sign_of(float x) { return (bits_of(x) & kSignBit) != 0; }

/// The same bits, where any NaN equals any NaN (contract section 6). -0 differs from +0.
constexpr bool same_float(float a, float b) { return bits_of(a) == bits_of(b) || (is_nan(a) && is_nan(b)); }

/// Place of a value on the line of FP32 numbers: monotone, neighbours differ by 1, -0 and +0 both at 0.
/// Not for NaN.
constexpr std::int64_t ordinal_of(float x) {
    const auto magnitude = static_cast<std::int64_t>(bits_of(x) & ~kSignBit);
    return sign_of(x) ? -magnitude : magnitude;
}

/// Inverse of ordinal_of (0 gives +0); `ordinal` within +-0x7F800000.
constexpr float at_ordinal(std::int64_t ordinal) {
    return ordinal < 0 ? float_of(static_cast<std::uint32_t>(-ordinal) | kSignBit)
                       : float_of(static_cast<std::uint32_t>(ordinal));
}

/// The neighbour `ulps` further up (down when negative). Not beyond the infinities, not for NaN.
constexpr float step_ulps(float x, std::int64_t ulps) { return at_ordinal(ordinal_of(x) + ulps); }

}  // namespace gradguard::reference
