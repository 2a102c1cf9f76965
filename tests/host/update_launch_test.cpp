// SPDX-License-Identifier: Apache-2.0
// The grid of the update: its results do not depend on it, so that only the launch itself shows it.
#include <gtest/gtest.h>

#include "tests/host/values.h"

namespace gradguard {
namespace {

using testing::RecordedDevice;

LaunchShape shape_of_update(std::size_t elements, std::uint32_t max_blocks) {
    DeviceProperties properties = RecordedDevice().device->properties();
    properties.max_blocks_in_x = max_blocks;
    const RecordedDevice gpu(false, 1, {}, properties);
    const AdamWEntry entry = testing::upload(gpu, testing::host_entry(elements, DType::kF32, 1, 0, false));
    gpu.forget_calls();
    adamw_step(entry.parameters, entry.gradients, std::nullopt).wait();
    for (const auto& call : gpu.log->calls) {
        if (call.call == harness::DeviceCall::kLaunch) return call.shape;
    }
    ADD_FAILURE() << "nothing was launched";
    return {};
}

TEST(UpdateLaunch, HasABlockForEach1024ElementsUpToTheDevicesLimit) {
    struct Row {
        std::size_t elements;
        std::uint32_t limit, blocks;
    };
    for (const Row& row : {Row{1, 65535, 1}, Row{1024, 65535, 1}, Row{1025, 65535, 2}, Row{2048, 65535, 2},
                           Row{5000, 65535, 5}, Row{5000, 5, 5}, Row{5000, 4, 4}, Row{5000, 1, 1}}) {
        const LaunchShape shape = shape_of_update(row.elements, row.limit);
        EXPECT_EQ(shape.blocks, row.blocks) << row.elements << " elements, limit " << row.limit;
        EXPECT_EQ(shape.threads, 256U);
    }
}

TEST(UpdateLaunch, HasNoLimitOfTheReduction) {
    // 1025 blocks, where the reduction has at most 1024.
    EXPECT_EQ(shape_of_update(1024 * 1024 + 1, 65535).blocks, 1025U);
}

}  // namespace
}  // namespace gradguard
