// SPDX-License-Identifier: Apache-2.0
// Opening a CUDA device, what it says of itself, and modules.
#include <gtest/gtest.h>

#include "kernels/host/guarded_adamw.h"
#include "tests/cuda/cuda_test.h"
#include "tests/support/group_values.h"

namespace gradguard {
namespace {

using namespace cuda;
using testing::expect_failure;

class CudaDeviceTest : public testing::CudaTest {};

int attribute(const Driver& driver, CUdevice_attribute which) {
    int value = -1;
    EXPECT_EQ(driver.functions().cuDeviceGetAttribute.call(&value, which, 0), CUDA_SUCCESS);
    return value;
}

TEST_F(CudaDeviceTest, ItsPropertiesAreTheDriversAttributes) {
    const auto device = open();
    const Driver& driver = device->driver();
    const DeviceProperties& properties = device->properties();
    EXPECT_EQ(static_cast<int>(properties.max_threads_per_block),
              attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    EXPECT_EQ(static_cast<int>(properties.max_threads_in_x), attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X));
    EXPECT_EQ(static_cast<int>(properties.max_blocks_in_x), attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
    EXPECT_EQ(static_cast<int>(properties.max_shared_bytes_per_block),
              attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    EXPECT_EQ(device->compute_capability(), (ComputeCapability{8, 0}));
}

TEST_F(CudaDeviceTest, TheVirtualDriversNameSaysWhatItIs) {
    EXPECT_EQ(open()->properties().name.find("virtual driver"), 0U) << open()->properties().name;
}

TEST_F(CudaDeviceTest, ANumberWithoutADeviceIsRefused) {
    expect_failure("open", {"want a device with number below 1, got 7"}, [&] { open({.ordinal = 7}); });
    expect_failure("open", {"want a device with number below 1, got -1"}, [&] { open({.ordinal = -1}); });
}

/// The virtual driver as one whose device has no memory pools.
std::shared_ptr<const Driver> without_pools(const Driver& driver) {
    static const DriverFunctions* inner = nullptr;
    static DriverFunctions functions;
    functions = driver.functions();
    static DriverFunctions kept;
    kept = functions;
    inner = &kept;
    functions.cuDeviceGetAttribute.call = [](int* value, CUdevice_attribute which, CUdevice device) {
        if (which != CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) {
            return inner->cuDeviceGetAttribute.call(value, which, device);
        }
        *value = 0;
        return CUDA_SUCCESS;
    };
    return Driver::of(functions, "old", false);
}

TEST_F(CudaDeviceTest, OneWithoutMemoryPoolsIsRefusedWithTheOptionThatHelps) {
    CudaDeviceOptions options;
    options.driver = without_pools(*watched_->driver());
    expect_failure("open", {"has no stream-ordered memory pools; the option pool = false uses cuMemAlloc"},
                   [&] { CudaDevice::open(options); });
    options.pool = false;
    EXPECT_NE(CudaDevice::open(options), nullptr);
}

TEST_F(CudaDeviceTest, WithoutAPoolAStepAllocatesAndFreesWithoutOneAndGivesTheSameBits) {
    const auto device = open({.pool = false});
    device->set_kernel_source(KernelSource::embedded(false));
    const auto queue = device->create_queue();
    const std::vector<float> parameters = testing::ordinary(1500, 1);
    const std::vector<float> gradients = testing::ordinary(1500, 2);
    const std::vector<AdamWEntry> entries = {
        {testing::upload(queue, parameters), testing::upload(queue, gradients), std::nullopt}};
    const auto got = guarded_adamw_step(entries);
    const auto want = reference::guarded_step(
        std::vector<reference::HostEntry>{{parameters, DType::kF32, testing::stored(gradients, DType::kF32), {}}}, {},
        {}, {});
    EXPECT_EQ(testing::download(got.entries[0].parameters), want.entries[0].parameters);
    EXPECT_GT(watched_->count("cuMemAlloc_v2"), 0U);
    EXPECT_EQ(watched_->count("cuMemAllocFromPoolAsync"), 0U);
    EXPECT_EQ(watched_->count("cuMemFreeAsync"), 0U);
}

TEST_F(CudaDeviceTest, AKernelsResourcesCanBeRead) {
    const auto device = open();
    const auto module = device->load_module("statistics", KernelSource::embedded(true).ptx("statistics"));
    const auto kernel = std::dynamic_pointer_cast<const CudaKernel>(module->kernel("gradient_statistics_f32"));
    ASSERT_NE(kernel, nullptr);
    const KernelResources resources = kernel->resources();
    EXPECT_EQ(resources.shared_bytes, 3072);
    EXPECT_EQ(resources.local_bytes, 0);
    EXPECT_EQ(resources.max_threads_per_block, 256);
    EXPECT_GT(resources.registers, 0);
}

TEST_F(CudaDeviceTest, PtxThatDoesNotCompileIsRefusedWithTheCompilersWords) {
    const auto device = open();
    expect_failure("load_module",
                   {"cuModuleLoadDataEx of module 'broken' (its compiler says: ", "CUDA_ERROR_INVALID_PTX"}, [&] {
                       device->load_module("broken",
                                           ".version 8.0\n.target sm_80\n.address_size 64\n"
                                           ".entry k() { no.such.instruction %r1; }\n");
                   });
}

TEST_F(CudaDeviceTest, PtxThatTheDriverIsTooOldForIsRefusedBeforeItIsAsked) {
    restart(1, {{"driver_version", 12040}});
    const auto device = open();
    const std::string ptx = KernelSource::embedded(true).ptx("update");
    ASSERT_TRUE(device->why_not_loadable(ptx));
    expect_failure("load_module", {"module 'update': it is PTX 9.0, and the driver (CUDA 12.4) takes PTX up to 8.4"},
                   [&] { device->load_module("update", ptx); });
    EXPECT_EQ(watched_->count("cuModuleLoadDataEx"), 0U);
}

TEST_F(CudaDeviceTest, PtxForALaterArchitectureIsRefused) {
    restart(1, {{"compute_capability", "7.5"}});
    const auto device = open();
    expect_failure("load_module", {"it is compiled for sm_80, and the device has compute capability 7.5"},
                   [&] { device->load_module("update", KernelSource::embedded(true).ptx("update")); });
}

TEST_F(CudaDeviceTest, AnEntryThatAModuleLacksIsNamed) {
    const auto device = open();
    const auto module = device->load_module("update", KernelSource::embedded(true).ptx("update"));
    expect_failure("load_module", {"entry 'adamw_f64' in module 'update'", "CUDA_ERROR_NOT_FOUND"},
                   [&] { module->kernel("adamw_f64"); });
}

TEST_F(CudaDeviceTest, AModuleIsUnloadedWithItsLastKernel) {
    const auto device = open();
    auto module = device->load_module("update", KernelSource::embedded(true).ptx("update"));
    auto kernel = module->kernel("adamw_f32");
    module.reset();
    EXPECT_EQ(watched_->count("cuModuleUnload"), 0U);
    kernel.reset();
    EXPECT_EQ(watched_->count("cuModuleUnload"), 1U);
}

TEST_F(CudaDeviceTest, ADeviceThatIsTooSmallForTheKernelsIsRefusedBeforeAnythingIsAllocated) {
    restart(1, {{"limits", {{"shared_bytes_per_block", 2048}}}});
    const auto device = open();
    const auto queue = device->create_queue();
    const std::vector<AdamWEntry> entries = {
        {testing::upload(queue, std::vector<float>{1}), testing::upload(queue, std::vector<float>{1}), std::nullopt}};
    watched_->forget();
    const auto error = testing::error_of([&] { guarded_adamw_step(entries); });
    ASSERT_TRUE(error);
    EXPECT_EQ(to_string(error->kind()), "UnsupportedDevice") << error->what();
    EXPECT_TRUE(watched_->calls().empty());
}

}  // namespace
}  // namespace gradguard
