// SPDX-License-Identifier: Apache-2.0
// Modules are loaded at first use and kept, until the device is given another source of kernels.
#include <gtest/gtest.h>

#include "tests/host/group.h"

namespace gradguard {
namespace {

using harness::DeviceCall;
using testing::RecordedDevice;

TEST(KernelCache, AModuleIsLoadedOnceAndAKernelLookedUpOnce) {
    const RecordedDevice gpu;
    const auto first = gpu.device->kernel("update", "adamw_f32");
    EXPECT_EQ(gpu.device->kernel("update", "adamw_f32"), first);
    EXPECT_NE(gpu.device->kernel("update", "adamw_f16"), first);
    EXPECT_EQ(gpu.log->count(DeviceCall::kLoadModule), 1U);
    gpu.device->kernel("statistics", "gradient_statistics_f32");
    EXPECT_EQ(gpu.log->count(DeviceCall::kLoadModule), 2U);
}

TEST(KernelCache, ANewSourceReplacesWhatWasLoaded) {
    const RecordedDevice gpu(false);
    const auto old = gpu.device->kernel("update", "adamw_f32");
    const KernelSource contracted = KernelSource::embedded(true);
    gpu.device->set_kernel_source(contracted);
    EXPECT_EQ(gpu.device->kernel_source().name, "fmad");
    gpu.forget_calls();
    EXPECT_NE(gpu.device->kernel("update", "adamw_f32"), old);
    ASSERT_EQ(gpu.log->calls.size(), 1U);
    EXPECT_EQ(gpu.log->calls[0].detail, "update");
    EXPECT_EQ(gpu.log->calls[0].bytes, contracted.ptx("update").size());
}

TEST(KernelCache, AModuleThatDidNotLoadIsTriedAgain) {
    const RecordedDevice gpu(false, 1, {std::make_shared<harness::FailNthCall>(DeviceCall::kLoadModule, 0)});
    testing::expect_error(ErrorKind::kDeviceFailure, std::nullopt, "load_module",
                          [&] { gpu.device->kernel("update", "adamw_f32"); });
    EXPECT_NE(gpu.device->kernel("update", "adamw_f32"), nullptr);
}

}  // namespace
}  // namespace gradguard
