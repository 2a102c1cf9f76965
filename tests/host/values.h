// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "reference/contract/dtype.h"
#include "reference/model/guarded_step.h"
#include "tests/host/group.h"

namespace gradguard::testing {

/// Rounds to the stored type by dropping low bits: the tests need values of the type, not a rounding rule.
inline std::vector<std::byte> stored(const std::vector<float>& values, DType dtype) {
    std::vector<std::byte> bytes(values.size() * element_bytes(dtype));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint32_t word = bits(values[i]);
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

inline AdamWEntry upload(const RecordedDevice& gpu, const reference::HostEntry& host) {
    AdamWEntry entry;
    entry.parameters = gpu.tensor(host.parameters);
    entry.gradients = Tensor::allocate(gpu.queue, host.gradient_dtype, {host.gradient_view().elements});
    entry.gradients.upload(host.gradients);
    if (host.state) {
        entry.state = gpu.state(host.state->step, host.state->first_moment, host.state->second_moment);
        if (host.state->max_second_moment) entry.state->max_second_moment = gpu.tensor(*host.state->max_second_moment);
    }
    return entry;
}

inline std::vector<AdamWEntry> upload(const RecordedDevice& gpu, const std::vector<reference::HostEntry>& hosts) {
    std::vector<AdamWEntry> entries;
    for (const reference::HostEntry& host : hosts) entries.push_back(upload(gpu, host));
    return entries;
}

/// The same bits, any NaN equal to any NaN; false at the first difference, which `where` tells.
inline ::testing::AssertionResult same_bits(const std::vector<float>& got, const std::vector<float>& want) {
    if (got.size() != want.size()) {
        return ::testing::AssertionFailure() << "got " << got.size() << " elements, want " << want.size();
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
        const bool both_nan = std::isnan(got[i]) && std::isnan(want[i]);
        if (!both_nan && bits(got[i]) != bits(want[i])) {
            return ::testing::AssertionFailure()
                   << "element " << i << ": got " << got[i] << " (0x" << std::hex << bits(got[i]) << "), want "
                   << want[i] << " (0x" << bits(want[i]) << ")";
        }
    }
    return ::testing::AssertionSuccess();
}

/// Compares an update on the device with one on the host, bit for bit.
inline void expect_same(const RecordedDevice& gpu, const AdamWUpdate& got, const reference::HostUpdate& want) {
    EXPECT_EQ(got.updated, want.updated);
    EXPECT_TRUE(same_bits(gpu.read(got.parameters), want.parameters)) << "parameters";
    ASSERT_EQ(got.state.has_value(), want.state.has_value());
    if (!got.state) return;
    EXPECT_EQ(got.state->step, want.state->step);
    EXPECT_TRUE(same_bits(gpu.read(got.state->first_moment), want.state->first_moment)) << "first_moment";
    EXPECT_TRUE(same_bits(gpu.read(got.state->second_moment), want.state->second_moment)) << "second_moment";
    ASSERT_EQ(got.state->max_second_moment.has_value(), want.state->max_second_moment.has_value());
    if (got.state->max_second_moment) {
        EXPECT_TRUE(same_bits(gpu.read(*got.state->max_second_moment), *want.state->max_second_moment)) << "maximum";
    }
}

}  // namespace gradguard::testing
