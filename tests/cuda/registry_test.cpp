// SPDX-License-Identifier: Apache-2.0
// The CUDA device and the virtual driver by name.
#include "harness/devices/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/host/adamw.h"
#include "tests/cuda/cuda_test.h"

namespace gradguard {
namespace {

class Registry : public testing::CudaTest {};

harness::DeviceStatus status(const std::string& name) {
    const auto all = harness::list_devices();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    EXPECT_NE(found, all.end()) << name;
    return found == all.end() ? harness::DeviceStatus{} : *found;
}

std::string refusal(const harness::DeviceRequest& request) {
    try {
        harness::open_device(request);
    } catch (const harness::DeviceUnavailable& error) {
        return error.what();
    }
    ADD_FAILURE() << "it was opened";
    return "";
}

TEST_F(Registry, TheVirtualDriverIsThereAndSaysWhatItIs) {
    EXPECT_TRUE(status("vdriver").available) << status("vdriver").reason;
    const auto device = harness::open_device({.name = "vdriver"});
    EXPECT_EQ(device->properties().name.find("virtual driver"), 0U) << device->properties().name;
}

TEST_F(Registry, AGpuIsThereOrAbsentWithItsReason) {
    const harness::DeviceStatus cuda = status("cuda");
    EXPECT_NE(cuda.available, !cuda.reason.empty());
    if (!cuda.available) {
        EXPECT_EQ(refusal({.name = "cuda"}), "device 'cuda': " + cuda.reason);
        EXPECT_EQ(harness::best_device(), "vgpu");
    }
}

TEST_F(Registry, AnUnknownNameIsRefusedWithTheKnownOnes) {
    EXPECT_EQ(refusal({.name = "cuda:0"}),
              "device 'cuda:0': no device has this name; want vgpu, cuda, vdriver or auto");
}

TEST_F(Registry, TheVirtualDriverIsConfiguredByTheRequestAndByOneAtATime) {
    const auto device = harness::open_device({.name = "vdriver", .schedule_seed = 5, .observers = "bounds"});
    const auto configuration = testing::VirtualDriver::instance().report().at("configuration");
    EXPECT_EQ(configuration.at("seed"), 5);
    EXPECT_EQ(configuration.at("observers"), "bounds");
    EXPECT_NE(refusal({.name = "vdriver", .schedule_seed = 6}).find("is open; another"), std::string::npos);
    EXPECT_THROW(harness::open_device({.name = "vdriver", .observers = "nobody"}), std::exception);
}

TEST_F(Registry, WhatTheVirtualDriverFindsIsAFindingOfItsDevice) {
    expect_findings();
    const auto device = harness::open_device({.name = "vdriver", .schedule_seed = 7, .observers = "all"});
    EXPECT_TRUE(harness::device_findings(*device).empty());
    const auto queue = device->create_queue();
    const Tensor good = testing::upload(queue, std::vector<float>(10, 1));
    const Tensor nowhere = Tensor::over(queue, DType::kF32, {10}, Buffer::borrowed(DeviceAddress{1} << 46U, 40));
    EXPECT_THROW(
        {
            adamw_step(nowhere, good, std::nullopt, {}, {});
            queue->synchronize();
        },
        Error);
    EXPECT_FALSE(harness::device_findings(*device).empty());
}

}  // namespace
}  // namespace gradguard
