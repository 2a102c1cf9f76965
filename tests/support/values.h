// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <stdexcept>
#include <vector>

#include "reference/exact/float_bits.h"
#include "reference/exact/widen.h"
#include "reference/model/gradient_view.h"

namespace gradguard::testing {

/// A stored gradient that owns its bits.
struct Gradient {
    DType dtype = DType::kF32;
    std::vector<std::byte> bytes;
    std::uint64_t elements = 0;

    reference::GradientView view() const { return {dtype, bytes.data(), elements}; }
};

template <class Word>
Gradient gradient_of_words(DType dtype, const std::vector<Word>& words) {
    Gradient gradient{dtype, std::vector<std::byte>(words.size() * sizeof(Word)), words.size()};
    if (!words.empty()) std::memcpy(gradient.bytes.data(), words.data(), gradient.bytes.size());
    return gradient;
}

inline Gradient f32(const std::vector<float>& values) { return gradient_of_words(DType::kF32, values); }

/// The 16-bit pattern whose exact value is `value`; throws when there is none.
inline std::uint16_t half_bits(DType dtype, float value) {
    for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
        const auto word = static_cast<std::uint16_t>(bits);
        const float widened = dtype == DType::kF16 ? reference::widen_f16(word) : reference::widen_bf16(word);
        if (reference::same_float(widened, value)) return word;
    }
    throw std::invalid_argument("no 16-bit pattern has this value");
}

inline Gradient halves(DType dtype, const std::vector<float>& values) {
    std::vector<std::uint16_t> words;
    for (const float value : values) words.push_back(half_bits(dtype, value));
    return gradient_of_words(dtype, words);
}
inline Gradient f16(const std::vector<float>& values) { return halves(DType::kF16, values); }
inline Gradient bf16(const std::vector<float>& values) { return halves(DType::kBF16, values); }

/// A spread of bit patterns over every class of FP32 numbers, the edges of the classes among them.
inline float spread_float(std::uint32_t word) {
    const std::uint32_t sign = word & reference::kSignBit;
    const std::uint32_t low = (word >> 4U) & reference::kMantissaBits;
    switch (word % 12U) {
        case 0:
            return reference::float_of(sign);
        case 1:
            return reference::float_of(sign | low);  // subnormal or zero
        case 2:
            return reference::float_of(sign | (0x007FFFFFU + (word >> 5U) % 3U));  // least normal and neighbours
        case 3:
            return reference::float_of(sign | (0x1FFFFFFFU + (word >> 5U) % 3U));  // 2^-63 and neighbours
        case 4:
            return reference::float_of(sign | (0x5F7FFFFEU + (word >> 5U) % 3U));  // sqrt(FLT_MAX) and neighbours
        case 5:
            return reference::float_of(sign | (0x7F7FFFFFU - (word >> 5U) % 3U));  // FLT_MAX and neighbours
        case 6:
            return reference::float_of(sign | 0x60000000U | (word >> 5U) % 0x1F000000U);  // huge
        default:
            return reference::float_of(sign | (0x3C000000U + (word >> 5U) % 0x06000000U));  // ordinary
    }
}

/// The same with infinities and NaNs.
inline float any_float(std::uint32_t word) {
    if (word % 13U == 0) {
        return reference::float_of((word & reference::kSignBit) | reference::kExponentBits | ((word >> 8U) & 3U));
    }
    return spread_float(word / 13U * 2654435761U);
}

}  // namespace gradguard::testing
