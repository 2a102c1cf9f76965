// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "reference/exact/float_bits.h"

namespace gradguard::reference {

/// The FP32 value of a BF16 bit pattern: the upper half of the word. Exact; NaN payloads are kept.
constexpr float widen_bf16(std::uint16_t bits) { return float_of(static_cast<std::uint32_t>(bits) << 16U); }

/// The FP32 value of an IEEE binary16 bit pattern. Exact, in integers; NaN payloads are kept.
constexpr float widen_f16(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000U) << 16U;
    const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
    const std::uint32_t mantissa = bits & 0x3FFU;
    if (exponent == 0x1F) return float_of(sign | kExponentBits | mantissa << 13U);
    if (exponent != 0) return float_of(sign | (exponent + 112U) << 23U | mantissa << 13U);
    if (mantissa == 0) return float_of(sign);
    // mantissa * 2^-24: bring the leading bit to place 10, which stands for 2^-14.
    const auto shift = static_cast<std::uint32_t>(std::countl_zero(mantissa)) - 21U;
    return float_of(sign | (113U - shift) << 23U | ((mantissa << shift) & 0x3FFU) << 13U);
}

}  // namespace gradguard::reference
