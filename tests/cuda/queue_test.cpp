// SPDX-License-Identifier: Apache-2.0
// Work in a CUDA stream: the same bits as the oracle, copies, memory in stream order, errors that stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "kernels/host/guarded_adamw.h"
#include "tests/cuda/cuda_test.h"
#include "tests/support/group_values.h"

namespace gradguard {
namespace {

using namespace cuda;
using testing::download;
using testing::expect_failure;
using testing::upload;

class CudaQueueTest : public testing::CudaTest {
  protected:
    void start(std::uint64_t seed = 1) {
        restart(seed);
        device = open();
        device->set_kernel_source(KernelSource::embedded(false));
        queue = device->create_queue();
        watched_->forget();
    }
    void TearDown() override {
        queue.reset();
        device.reset();
        CudaTest::TearDown();
    }

    AdamWEntry place(const reference::HostEntry& host) const {
        Tensor gradients = Tensor::allocate(queue, host.gradient_dtype, {host.gradient_view().elements});
        gradients.upload(host.gradients);
        AdamWEntry entry = {upload(queue, host.parameters), gradients, std::nullopt};
        if (host.state) {
            entry.state = {host.state->step, upload(queue, host.state->first_moment),
                           upload(queue, host.state->second_moment), std::nullopt};
            if (host.state->max_second_moment) {
                entry.state->max_second_moment = upload(queue, *host.state->max_second_moment);
            }
        }
        return entry;
    }

    std::shared_ptr<CudaDevice> device;
    std::shared_ptr<Queue> queue;
};

TEST_F(CudaQueueTest, AGuardedStepGivesTheOraclesBitsWheneverTheDeviceRunsIt) {
    const std::vector<reference::HostEntry> hosts = {testing::host_entry(1500, DType::kF32, 1, 3, false),
                                                     testing::host_entry(40, DType::kF16, 7, 3, false),
                                                     testing::host_entry(300, DType::kBF16, 9, 0, false)};
    const auto want = reference::guarded_step(hosts, {}, {}, {});
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE(seed);
        queue.reset();
        device.reset();
        start(seed);
        std::vector<AdamWEntry> entries;
        for (const auto& host : hosts) entries.push_back(place(host));
        const auto got = guarded_adamw_step(entries);
        ASSERT_EQ(got.entries.size(), want.entries.size());
        EXPECT_EQ(got.clip_multiplier, want.clip_multiplier);
        for (std::size_t i = 0; i < hosts.size(); ++i) {
            EXPECT_EQ(download(got.entries[i].parameters), want.entries[i].parameters);
            EXPECT_EQ(download(got.entries[i].state->first_moment), want.entries[i].state->first_moment);
            EXPECT_EQ(download(got.entries[i].state->second_moment), want.entries[i].state->second_moment);
        }
    }
}

TEST_F(CudaQueueTest, TheSourceOfAnUploadMayBeOverwrittenAtOnce) {
    start();
    std::vector<float> source(1000, 1.5F);
    const Tensor tensor = Tensor::allocate(queue, DType::kF32, {source.size()});
    tensor.upload(std::as_bytes(std::span(source)));
    std::fill(source.begin(), source.end(), -9.0F);
    EXPECT_EQ(download(tensor), std::vector<float>(1000, 1.5F));
}

TEST_F(CudaQueueTest, APinnedSourceMayBeOverwrittenAtOnceToo) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        queue.reset();
        device.reset();
        start(seed);
        auto context = Context::of_device(watched_->driver(), 0);
        const PinnedMemory pinned(context, 4000, "test");
        std::memset(pinned.bytes().data(), 7, 4000);
        const Tensor tensor = Tensor::allocate(queue, DType::kF32, {1000});
        tensor.upload(pinned.bytes());
        std::memset(pinned.bytes().data(), 8, 4000);
        const std::vector<float> got = download(tensor);
        std::vector<float> want(1000);
        std::memset(want.data(), 7, 4000);
        EXPECT_EQ(got, want);
    }
}

TEST_F(CudaQueueTest, AnUploadThatIsLargerThanTheStagingMemoryArrivesWhole) {
    start();
    std::vector<float> source(Staging::kHalfBytes + 123);  // four halves and a bit
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i % 1000003);
    const Tensor tensor = upload(queue, source);
    EXPECT_EQ(download(tensor), source);
    EXPECT_EQ(watched_->count("cuMemcpyHtoDAsync_v2"), 5U);
    EXPECT_EQ(watched_->count("cuMemHostAlloc"), 2U);
}

TEST_F(CudaQueueTest, SmallUploadsDoNotWaitForTheDevice) {
    start();
    std::vector<Tensor> tensors;
    for (int i = 0; i < 100; ++i) tensors.push_back(upload(queue, std::vector<float>(1, static_cast<float>(i))));
    EXPECT_EQ(watched_->count("cuEventSynchronize") + watched_->count("cuStreamSynchronize"), 0U);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(download(tensors[static_cast<std::size_t>(i)])[0], static_cast<float>(i));
}

TEST_F(CudaQueueTest, AReadbackOfManyRangesComesInTheirOrderThroughOneBlockOfPinnedMemory) {
    start();
    const Tensor one = upload(queue, std::vector<float>{1, 2, 3});
    const Tensor two = upload(queue, std::vector<float>{4, 5});
    watched_->forget();
    for (int again = 0; again < 3; ++again) {
        const auto data = queue->readback({{two.storage, 4, 4}, {one.storage, 0, 12}, {one.storage, 0, 0}})->wait();
        ASSERT_EQ(data.size(), 3U);
        float five = 0;
        ASSERT_EQ(data[0].size(), 4U);
        std::memcpy(&five, data[0].data(), 4);
        EXPECT_EQ(five, 5.0F);
        EXPECT_EQ(data[1].size(), 12U);
        EXPECT_TRUE(data[2].empty());
    }
    EXPECT_EQ(watched_->count("cuMemHostAlloc"), 1U);
    EXPECT_EQ(watched_->count("cuMemcpyDtoHAsync_v2"), 6U);
}

TEST_F(CudaQueueTest, TwoReadbacksAtATimeDoNotShareMemory) {
    start();
    const Tensor tensor = upload(queue, std::vector<float>{1});
    const auto first = queue->readback({{tensor.storage, 0, 4}});
    const float two = 2;
    tensor.upload(std::as_bytes(std::span(&two, 1)));
    const auto second = queue->readback({{tensor.storage, 0, 4}});
    float values[2];
    std::memcpy(values, second->wait().at(0).data(), 4);
    std::memcpy(values + 1, first->wait().at(0).data(), 4);
    EXPECT_EQ(values[0], 2.0F);
    EXPECT_EQ(values[1], 1.0F);
    expect_failure("readback", {"its data have been taken before"}, [&] { first->wait(); });
}

TEST_F(CudaQueueTest, AReadbackThatNobodyWaitsForIsFinishedBeforeItsMemoryGoes) {
    start();
    const Tensor tensor = upload(queue, std::vector<float>{1});
    queue->readback({{tensor.storage, 0, 4}}).reset();
    EXPECT_EQ(watched_->count("cuEventSynchronize"), 1U);
}

TEST_F(CudaQueueTest, MemoryIsFreedInStreamOrderAndWithoutWaiting) {
    start();
    {
        const AdamWEntry entry = {upload(queue, std::vector<float>(100, 1)), upload(queue, std::vector<float>(100, 1)),
                                  std::nullopt};
        adamw_step(entry.parameters, entry.gradients, std::nullopt, {}, {});
    }  // inputs and outputs go while the kernel may not have run
    EXPECT_EQ(watched_->count("cuMemFreeAsync"), 5U);
    EXPECT_EQ(watched_->count("cuStreamSynchronize"), 0U);
    queue->synchronize();
}

TEST_F(CudaQueueTest, ABufferOfAnotherQueueIsKeptUntilTheKernelHasRun) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        queue.reset();
        device.reset();
        start(seed);
        const auto other = device->create_queue();
        Tensor parameters = upload(other, std::vector<float>(100, 1));
        other->synchronize();
        parameters.queue = queue;
        auto update = adamw_step(parameters, upload(queue, std::vector<float>(100, 1)), std::nullopt, {}, {});
        parameters = {};
        EXPECT_EQ(watched_->count("cuMemFreeAsync") + watched_->count("cuMemFree_v2"), 1U) << "the gradients alone";
        queue->synchronize();
        EXPECT_EQ(watched_->count("cuMemFreeAsync") + watched_->count("cuMemFree_v2"), 2U);
        EXPECT_LT(download(update.parameters)[99], 1.0F);
    }
}

TEST_F(CudaQueueTest, SomebodyElsesOwnerIsKeptUntilTheKernelHasRunAndThenLetGoWithoutWaiting) {
    start();
    const Tensor parameters = upload(queue, std::vector<float>(100, 1));
    const Tensor gradients = upload(queue, std::vector<float>(100, 1));
    const auto owner = std::make_shared<int>(0);
    Tensor foreign = parameters;
    foreign.storage.owner = owner;
    adamw_step(foreign, gradients, std::nullopt, {}, {});
    foreign = {};
    EXPECT_EQ(owner.use_count(), 2);
    queue->readback({{parameters.storage, 0, 4}})->wait();
    EXPECT_EQ(owner.use_count(), 1);
    EXPECT_EQ(watched_->count("cuStreamSynchronize"), 0U);
}

TEST_F(CudaQueueTest, BuffersOutliveTheQueueAndTheDevice) {
    start();
    Tensor tensor = upload(queue, std::vector<float>{1, 2, 3});
    Buffer kept = tensor.storage;
    tensor = {};
    queue.reset();
    device.reset();
    EXPECT_EQ(watched_->count("cuDevicePrimaryCtxRelease_v2"), 0U);
    kept = {};
    EXPECT_EQ(watched_->count("cuMemFree_v2"), 1U);
    EXPECT_EQ(watched_->count("cuDevicePrimaryCtxRelease_v2"), 1U);
}

TEST_F(CudaQueueTest, AQueueFinishesItsWorkBeforeItGoes) {
    start();
    std::vector<float> values(3);
    const Tensor tensor = upload(queue, std::vector<float>{1, 2, 3});
    Buffer storage = tensor.storage;
    queue->copy_to_host(std::as_writable_bytes(std::span(values)), {storage, 0, 12});
    std::weak_ptr<Queue> gone = queue;
    const_cast<Tensor&>(tensor) = {};
    queue.reset();
    EXPECT_TRUE(gone.expired());
    EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
}

TEST_F(CudaQueueTest, AFaultOfAKernelShowsAtTheWaitAndStaysUnderItsFirstName) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        queue.reset();
        device.reset();
        start(seed);
        expect_findings();
        const Tensor good = upload(queue, std::vector<float>(100, 1));
        const Tensor nowhere = Tensor::over(queue, DType::kF32, {100}, Buffer::borrowed(DeviceAddress{1} << 46U, 400));
        std::optional<AdamWUpdate> update;
        try {
            update = adamw_step(nowhere, good, std::nullopt, {}, {});
            queue->synchronize();
            ADD_FAILURE() << "the fault did not show";
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << error.what();
        }
        const std::vector<std::string> first = {"CUDA_ERROR_ILLEGAL_ADDRESS"};
        expect_failure("synchronize", first, [&] { queue->synchronize(); });
        expect_failure("allocate", first, [&] { device->allocate(4, *queue); });
        expect_failure("copy_to_device", first, [&] { good.upload(std::vector<std::byte>(400)); });
        expect_failure("readback", first, [&] { queue->readback({{good.storage, 0, 4}}); });
        expect_failure("launch", first, [&] {
            queue->launch(device->kernel("update", "adamw_f32_first"), {1, 256}, {}, {});
        });
        expect_failure("create_queue", first, [&] { device->create_queue(); });
    }
}

TEST_F(CudaQueueTest, RangesOutsideTheirBufferAreRefusedBeforeTheDriverIsAsked) {
    start();
    const Buffer buffer = device->allocate(16, *queue);
    watched_->forget();
    std::vector<std::byte> host(8);
    expect_failure("copy_to_device", {"want a range inside the buffer of 16 bytes, got 8 bytes from 12"}, [&] {
        queue->copy_to_device({buffer, 12, 8}, host);
    });
    expect_failure("copy_to_host", {"want ranges of one length, got 4 and 8 bytes"}, [&] {
        queue->copy_to_host(host, {buffer, 0, 4});
    });
    expect_failure("readback", {"got 1 bytes from 17"}, [&] { queue->readback({{buffer, 17, 1}}); });
    EXPECT_TRUE(watched_->calls().empty());
}

TEST_F(CudaQueueTest, WhatBelongsToAnotherDeviceIsRefused) {
    start();
    const auto other = open();
    const auto kernel = other->kernel("update", "adamw_f32_first");
    expect_failure("launch", {"the kernel was loaded by another device"}, [&] {
        queue->launch(kernel, {1, 256}, {}, {});
    });
    expect_failure("allocate", {"the queue belongs to another device"}, [&] { other->allocate(4, *queue); });
}

TEST_F(CudaQueueTest, ArgumentsOfTheWrongSizeAreRefused) {
    start();
    const std::vector<std::byte> arguments(8);
    expect_failure("launch", {"cuLaunchKernel of adamw_f32_first"}, [&] {
        queue->launch(device->kernel("update", "adamw_f32_first"), {1, 256}, arguments, {});
    });
}

TEST_F(CudaQueueTest, ATimerTellsTheTimeBetweenTwoPoints) {
    start();
    const auto cuda_queue = std::dynamic_pointer_cast<CudaQueue>(queue);
    const CudaTimer timer(cuda_queue);
    timer.start();
    const Tensor tensor = upload(queue, std::vector<float>(5000, 1));
    adamw_step(tensor, tensor, std::nullopt, {}, {});
    timer.stop();
    EXPECT_GT(timer.milliseconds(), 0.0F);
}

TEST_F(CudaQueueTest, MemoryCanBeCopiedWithinTheDevice) {
    start();
    const Tensor from = upload(queue, std::vector<float>{1, 2, 3});
    const Tensor to = upload(queue, std::vector<float>{7, 8, 9});
    const auto cuda_queue = std::dynamic_pointer_cast<CudaQueue>(queue);
    cuda_queue->copy_on_device({to.storage, 0, 8}, {from.storage, 4, 8});
    EXPECT_EQ(download(to), (std::vector<float>{2, 3, 9}));
    expect_failure("copy_on_device", {"want ranges of one length"}, [&] {
        cuda_queue->copy_on_device({to.storage, 0, 4}, {from.storage, 0, 8});
    });
}

TEST_F(CudaQueueTest, SeveralThreadsWorkOnDevicesOfTheirOwn) {
    watched_.reset();  // its record is for one thread
    const std::vector<reference::HostEntry> hosts = {testing::host_entry(700, DType::kF32, 3, 0, false)};
    const auto want = reference::guarded_step(hosts, {}, {}, {});
    std::vector<std::thread> threads;
    std::vector<std::string> wrong(4);
    for (std::string& problem : wrong) {
        threads.emplace_back([&] {
            try {
                const auto own = CudaDevice::open({.driver_library = testing::VirtualDriver::instance().library()});
                own->set_kernel_source(KernelSource::embedded(false));
                const auto own_queue = own->create_queue();
                const std::vector<AdamWEntry> entries = {{upload(own_queue, hosts[0].parameters),
                                                          Tensor::allocate(own_queue, DType::kF32, {700}),
                                                          std::nullopt}};
                entries[0].gradients.upload(hosts[0].gradients);
                for (int step = 0; step < 5; ++step) {
                    const auto got = guarded_adamw_step(entries);
                    if (download(got.entries[0].parameters) != want.entries[0].parameters) problem = "other bits";
                }
            } catch (const std::exception& error) {
                problem = error.what();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<std::string>(4));
}

}  // namespace
}  // namespace gradguard
