// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "reference/contract/dtype.h"
#include "reference/model/guarded_step.h"

namespace gradguard::testing {

/// Rounds to the stored type by dropping low bits: the tests need values of the type, not a rounding rule.
inline std::vector<std::byte> stored(const std::vector<float>& values, DType dtype) {
    std::vector<std::byte> bytes(values.size() * element_bytes(dtype));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto word = std::bit_cast<std::uint32_t>(values[i]);
        if (dtype == DType::kF32) {
            std::memcpy(bytes.data() + 4 * i, &word, 4);
            continue;
        }
        std::uint16_t half = static_cast<std::uint16_t>(word >> 16U);
        if (dtype == DType::kF16) {
            const std::uint32_t sign = (word >> 16U) & 0x8000U;
            const int exponent = static_cast<int>((word >> 23U) & 0xFFU) - 127 + 15;
            const std::uint32_t mantissa = (word >> 13U) & 0x3FFU;
            const bool special = ((word >> 23U) & 0xFFU) == 0xFFU;
            half = static_cast<std::uint16_t>(
                special ? sign | 0x7C00U | mantissa
                        : (exponent <= 0 ? sign : sign | (static_cast<std::uint32_t>(exponent) << 10U) | mantissa));
        }
        std::memcpy(bytes.data() + 2 * i, &half, 2);
    }
    return bytes;
}

/// Ordinary values of both signs within a few binades, the same for the same seed.
inline std::vector<float> ordinary(std::size_t count, std::uint64_t seed, float magnitude = 1.0F) {
    std::mt19937_64 random(seed);
    std::vector<float> values(count);
    for (float& value : values) {
        const auto mantissa = static_cast<float>(static_cast<std::int64_t>(random() >> 40U) - (1 << 23));
        value = std::ldexp(mantissa, -23 - static_cast<int>(random() % 6)) * magnitude;
    }
    return values;
}

/// A group entry with values everywhere; `step` 0: no state.
inline reference::HostEntry host_entry(std::size_t count, DType dtype, std::uint64_t seed, std::uint64_t step,
                                       bool amsgrad) {
    reference::HostEntry entry;
    entry.parameters = ordinary(count, seed);
    entry.gradient_dtype = dtype;
    entry.gradients = stored(ordinary(count, seed + 1, 0.125F), dtype);
    if (step == 0) return entry;
    reference::HostState state;
    state.step = step;
    state.first_moment = ordinary(count, seed + 2, 0.01F);
    state.second_moment = ordinary(count, seed + 3, 0.001F);
    for (float& v : state.second_moment) v = std::fabs(v);
    if (amsgrad) {
        state.max_second_moment = ordinary(count, seed + 4, 0.001F);
        for (float& v : *state.max_second_moment) v = std::fabs(v);
    }
    entry.state = std::move(state);
    return entry;
}

}  // namespace gradguard::testing
