// SPDX-License-Identifier: Apache-2.0
// The declarations of kernels/cuda/driver_abi.h against those of cuda.h, where a CUDA toolkit is installed.
#include "kernels/cuda/driver_abi.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <cstddef>

#include "tests/support/same_shape.h"

namespace {

namespace ours = gradguard::cuda;

using gradguard::testing::SameShape;

#define EXPECT_SAME(name) EXPECT_EQ(static_cast<long long>(ours::name), static_cast<long long>(::name)) << #name

TEST(DriverAbi, EveryResultHasTheNumberOfTheHeader) {
#define CHECK(name, number) EXPECT_SAME(name);
    GRADGUARD_CUDA_RESULTS(CHECK)
#undef CHECK
    EXPECT_EQ(sizeof(ours::CUresult), sizeof(::CUresult));
}

TEST(DriverAbi, EveryConstantHasTheNumberOfTheHeader) {
    EXPECT_SAME(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    EXPECT_SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    EXPECT_SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    EXPECT_SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    EXPECT_SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    EXPECT_SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    EXPECT_SAME(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    EXPECT_SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    EXPECT_SAME(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    EXPECT_SAME(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    EXPECT_SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    EXPECT_SAME(CU_FUNC_ATTRIBUTE_NUM_REGS);
    EXPECT_SAME(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    EXPECT_SAME(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    EXPECT_SAME(CU_JIT_INFO_LOG_BUFFER);
    EXPECT_SAME(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
    EXPECT_SAME(CU_JIT_ERROR_LOG_BUFFER);
    EXPECT_SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    EXPECT_SAME(CU_POINTER_ATTRIBUTE_CONTEXT);
    EXPECT_SAME(CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
    EXPECT_SAME(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
    EXPECT_SAME(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
    EXPECT_SAME(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
    EXPECT_SAME(CU_MEMORYTYPE_HOST);
    EXPECT_SAME(CU_MEMORYTYPE_DEVICE);
    EXPECT_SAME(CU_MEMORYTYPE_ARRAY);
    EXPECT_SAME(CU_MEMORYTYPE_UNIFIED);
    EXPECT_SAME(CU_STREAM_DEFAULT);
    EXPECT_SAME(CU_STREAM_NON_BLOCKING);
    EXPECT_SAME(CU_EVENT_DEFAULT);
    EXPECT_SAME(CU_EVENT_BLOCKING_SYNC);
    EXPECT_SAME(CU_EVENT_DISABLE_TIMING);
    EXPECT_SAME(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
    EXPECT_SAME(CU_MEM_ALLOCATION_TYPE_PINNED);
    EXPECT_SAME(CU_MEM_HANDLE_TYPE_NONE);
    EXPECT_SAME(CU_MEM_LOCATION_TYPE_DEVICE);
    EXPECT_EQ(ours::kMemHostAllocPortable, unsigned{CU_MEMHOSTALLOC_PORTABLE});
    EXPECT_EQ(ours::kLaunchParamEnd, std::uintptr_t{CU_LAUNCH_PARAM_END_AS_INT});
    EXPECT_EQ(ours::kLaunchParamBufferPointer, std::uintptr_t{CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT});
    EXPECT_EQ(ours::kLaunchParamBufferSize, std::uintptr_t{CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT});
}

TEST(DriverAbi, EveryFunctionTakesWhatTheHeaderSays) {
#define CHECK(name, parameters) \
    EXPECT_TRUE((SameShape<ours::Fn_##name, std::remove_pointer_t<decltype(&::name)>>::value)) << #name;
    GRADGUARD_CUDA_FUNCTIONS(CHECK)
#undef CHECK
}

TEST(DriverAbi, EveryTypeIsLaidOutAsInTheHeader) {
    EXPECT_EQ(sizeof(ours::CUdevice), sizeof(::CUdevice));
    EXPECT_EQ(sizeof(ours::CUdeviceptr), sizeof(::CUdeviceptr));
    EXPECT_EQ(sizeof(ours::CUmemLocation), sizeof(::CUmemLocation));
    EXPECT_EQ(offsetof(ours::CUmemLocation, id), offsetof(::CUmemLocation, id));
    EXPECT_EQ(sizeof(ours::CUmemPoolProps), sizeof(::CUmemPoolProps));
    EXPECT_EQ(offsetof(ours::CUmemPoolProps, handleTypes), offsetof(::CUmemPoolProps, handleTypes));
    EXPECT_EQ(offsetof(ours::CUmemPoolProps, location), offsetof(::CUmemPoolProps, location));
    EXPECT_EQ(offsetof(ours::CUmemPoolProps, maxSize), offsetof(::CUmemPoolProps, maxSize));
    EXPECT_EQ(offsetof(ours::CUmemPoolProps, reserved), offsetof(::CUmemPoolProps, reserved));
}

}  // namespace

#else

TEST(DriverAbi, EveryFunctionTakesWhatTheHeaderSays) { GTEST_SKIP() << "blocked: no cuda.h of a CUDA toolkit"; }

#endif
