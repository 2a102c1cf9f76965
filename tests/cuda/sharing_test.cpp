// SPDX-License-Identifier: Apache-2.0
// Life inside somebody else's program: its context, its stream, its memory.
#include <gtest/gtest.h>

#include "kernels/cuda/dynamic_library.h"
#include "kernels/host/guarded_adamw.h"
#include "tests/cuda/cuda_test.h"
#include "tests/support/group_values.h"

namespace gradguard {
namespace {

using namespace cuda;
using testing::download;
using testing::expect_failure;

/// The caller's program: its context is current, and it has a stream.
class CudaSharing : public testing::CudaTest {
  protected:
    void SetUp() override {
        CudaTest::SetUp();
        library_ = testing::VirtualDriver::instance().library();
        driver_ = watched_->driver();
        ASSERT_EQ(functions().cuDevicePrimaryCtxRetain.call(&context, 0), CUDA_SUCCESS);
        ASSERT_EQ(functions().cuCtxPushCurrent_v2.call(context), CUDA_SUCCESS);
        ASSERT_EQ(functions().cuStreamCreate.call(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    void TearDown() override {
        EXPECT_EQ(current(), context) << "the caller's context is no longer current";
        EXPECT_EQ(functions().cuStreamDestroy_v2.call(stream), CUDA_SUCCESS) << "the caller's stream is gone";
        CUcontext popped = nullptr;
        EXPECT_EQ(functions().cuCtxPopCurrent_v2.call(&popped), CUDA_SUCCESS);
        EXPECT_EQ(functions().cuDevicePrimaryCtxRelease_v2.call(0), CUDA_SUCCESS) << "the caller's context is gone";
        CudaTest::TearDown();
    }

    const DriverFunctions& functions() const { return driver_->functions(); }
    CUcontext current() const {
        CUcontext now = nullptr;
        DynamicLibrary::open(library_).function<CUresult(CUcontext*)>("cuCtxGetCurrent")(&now);
        return now;
    }
    CUdeviceptr allocate(std::size_t bytes) const {
        CUdeviceptr address = 0;
        EXPECT_EQ(functions().cuMemAlloc_v2.call(&address, bytes), CUDA_SUCCESS);
        return address;
    }

    std::string library_;
    std::shared_ptr<const Driver> driver_;
    CUcontext context = nullptr;
    CUstream stream = nullptr;
};

TEST_F(CudaSharing, AStepRunsInTheCallersContextAndStreamOnTheCallersMemory) {
    const std::vector<reference::HostEntry> hosts = {testing::host_entry(300, DType::kF32, 5, 0, false)};
    const auto want = reference::guarded_step(hosts, {}, {}, {});
    const CUdeviceptr parameters = allocate(1200);
    const CUdeviceptr gradients = allocate(1200);
    {
        const auto device = open({.context = context});
        EXPECT_EQ(device->context(), context);
        device->set_kernel_source(KernelSource::embedded(false));
        const auto queue = device->queue_over(stream);
        // The caller's copies are queued, not done, when the step is submitted behind them.
        functions().cuMemcpyHtoDAsync_v2.call(parameters, hosts[0].parameters.data(), 1200, stream);
        functions().cuMemcpyHtoDAsync_v2.call(gradients, hosts[0].gradients.data(), 1200, stream);
        const std::vector<AdamWEntry> entries = {
            {Tensor::over(queue, DType::kF32, {300}, device->borrow(parameters, 1200)),
             Tensor::over(queue, DType::kF32, {300}, device->borrow(gradients, 1200)), std::nullopt}};
        const auto got = guarded_adamw_step(entries);
        EXPECT_EQ(download(got.entries[0].parameters), want.entries[0].parameters);
        EXPECT_EQ(current(), context);
    }
    EXPECT_EQ(watched_->count("cuStreamDestroy_v2"), 0U);
    EXPECT_EQ(watched_->count("cuDevicePrimaryCtxRelease_v2"), 0U);
    std::vector<float> after(300);
    functions().cuMemcpyDtoHAsync_v2.call(after.data(), parameters, 1200, stream);
    EXPECT_EQ(functions().cuStreamSynchronize.call(stream), CUDA_SUCCESS);
    EXPECT_EQ(after, hosts[0].parameters) << "the caller's memory is as it was";
    EXPECT_EQ(functions().cuMemFree_v2.call(parameters), CUDA_SUCCESS);
    EXPECT_EQ(functions().cuMemFree_v2.call(gradients), CUDA_SUCCESS);
}

TEST_F(CudaSharing, TheDefaultStreamCanBeAQueue) {
    const auto device = open({.context = context});
    const auto queue = device->queue_over(nullptr);
    EXPECT_EQ(download(testing::upload(queue, std::vector<float>{1, 2})), (std::vector<float>{1, 2}));
}

TEST_F(CudaSharing, NothingOfOursIsCurrentAfterACallInAThreadThatHasNoContext) {
    CUcontext popped = nullptr;
    ASSERT_EQ(functions().cuCtxPopCurrent_v2.call(&popped), CUDA_SUCCESS);
    {
        const auto device = open();
        const auto queue = device->create_queue();
        EXPECT_EQ(current(), nullptr);
        const Tensor tensor = testing::upload(queue, std::vector<float>{1, 2});
        EXPECT_EQ(current(), nullptr);
        adamw_step(tensor, tensor, std::nullopt, {}, {});
        EXPECT_EQ(download(tensor), (std::vector<float>{1, 2}));
        EXPECT_EQ(current(), nullptr);
    }
    EXPECT_EQ(current(), nullptr);
    ASSERT_EQ(functions().cuCtxPushCurrent_v2.call(context), CUDA_SUCCESS);
}

TEST_F(CudaSharing, TheCallersContextIsCurrentAfterACallThatFails) {
    const auto device = open();
    const auto queue = device->create_queue();
    watched_->fail("cuMemAllocFromPoolAsync", 0, CUDA_ERROR_OUT_OF_MEMORY);
    expect_failure("allocate", {"cuMemAllocFromPoolAsync of 64 bytes: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"},
                   [&] { device->allocate(64, *queue); });
    EXPECT_EQ(current(), context);
}

TEST_F(CudaSharing, AStreamOfAnotherContextIsRefused) {
    const auto create =
        DynamicLibrary::open(library_).function<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2");
    const auto destroy = DynamicLibrary::open(library_).function<CUresult(CUcontext)>("cuCtxDestroy_v2");
    CUcontext own = nullptr;
    ASSERT_EQ(create(&own, 0, 0), CUDA_SUCCESS);  // and current
    {
        const auto device = open({.context = own});
        expect_failure("create_queue", {"the stream belongs to another context than the device"},
                       [&] { device->queue_over(stream); });
        EXPECT_EQ(current(), own);
        const auto queue = device->create_queue();
        EXPECT_EQ(download(testing::upload(queue, std::vector<float>{4})), (std::vector<float>{4}));
    }
    EXPECT_EQ(destroy(own), CUDA_SUCCESS);
}

TEST_F(CudaSharing, AnAddressThatTheDriverDoesNotKnowIsRefused) {
    const auto device = open();
    const auto error = testing::error_of([&] { device->borrow(DeviceAddress{1} << 46U, 4); });
    ASSERT_TRUE(error);
    EXPECT_EQ(to_string(error->kind()), "InvalidTensor");
    EXPECT_EQ(error->message(), "want device memory, got address 0x400000000000, which the driver does not know");
}

TEST_F(CudaSharing, HostMemoryIsNoDeviceMemory) {
    const auto device = open();
    const PinnedMemory pinned(Context::of_device(driver_, 0), 64, "test");
    const auto error =
        testing::error_of([&] { device->borrow(reinterpret_cast<DeviceAddress>(pinned.bytes().data()), 4); });
    ASSERT_TRUE(error);
    EXPECT_EQ(to_string(error->kind()), "InvalidTensor");
    EXPECT_NE(error->message().find(" of host memory"), std::string::npos) << error->message();
}

TEST_F(CudaSharing, ARangeThatReachesOutOfItsAllocationIsRefused) {
    const auto device = open();
    const CUdeviceptr address = allocate(64);
    EXPECT_EQ(device->borrow(address + 16, 48).address, address + 16);
    const auto error = testing::error_of([&] { device->borrow(address + 16, 52); });
    EXPECT_EQ(functions().cuMemFree_v2.call(address), CUDA_SUCCESS);
    ASSERT_TRUE(error);
    EXPECT_EQ(to_string(error->kind()), "InvalidTensor");
    EXPECT_NE(error->message().find("its allocation ends after 48 bytes, want 52"), std::string::npos)
        << error->message();
}

TEST_F(CudaSharing, MemoryOfAnotherDeviceIsRefused) {
    static Fn_cuPointerGetAttribute* ask = nullptr;
    DriverFunctions two = functions();
    ask = two.cuPointerGetAttribute.call;
    two.cuPointerGetAttribute.call = [](void* value, CUpointer_attribute which, CUdeviceptr address) {
        if (which != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) return ask(value, which, address);
        *static_cast<int*>(value) = 3;
        return CUDA_SUCCESS;
    };
    const auto device = CudaDevice::open({.driver = Driver::of(two, "two devices", false)});
    const CUdeviceptr address = allocate(64);
    const auto error = testing::error_of([&] { device->borrow(address, 4); });
    EXPECT_EQ(functions().cuMemFree_v2.call(address), CUDA_SUCCESS);
    ASSERT_TRUE(error);
    EXPECT_EQ(to_string(error->kind()), "DifferentExecutionQueue");
    EXPECT_NE(error->message().find(" on device 3 instead of 0"), std::string::npos) << error->message();
}

}  // namespace
}  // namespace gradguard
