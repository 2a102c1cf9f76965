// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "reference/model/guarded_step.h"
#include "tests/host/group.h"
#include "tests/support/group_values.h"

namespace gradguard::testing {

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
