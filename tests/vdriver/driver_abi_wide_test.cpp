// SPDX-License-Identifier: Apache-2.0
// The declarations of harness/vdriver/driver_abi_wide.h, and the signatures that these tests call, against those of
// cuda.h, where a CUDA toolkit is installed.
#include "harness/vdriver/driver_abi_wide.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#include <cudaProfiler.h>

#include <cstddef>

#include "tests/support/same_shape.h"
#include "tests/vdriver/api.h"

namespace {

namespace ours = gradguard::cuda;

using gradguard::testing::SameShape;

TEST(DriverAbiWide, EveryNumberIsThatOfTheHeader) {
    // Some are macros there.
#define CHECK(name, number) EXPECT_EQ(static_cast<long long>(number), static_cast<long long>(name)) << #name;
    GRADGUARD_CUDA_WIDE_NUMBERS(CHECK)
#undef CHECK
}

TEST(DriverAbiWide, EveryFunctionThatTestsCallHasTheParametersOfTheHeader) {
#define CHECK(name, parameters) EXPECT_TRUE((SameShape<ours::Fn_##name, decltype(::name)>::value)) << #name;
    GRADGUARD_TESTED_FUNCTIONS(CHECK)
#undef CHECK
}

#define EXPECT_SAME_SIZE(type) EXPECT_EQ(sizeof(ours::type), sizeof(::type)) << #type
#define EXPECT_SAME_OFFSET(type, member) \
    EXPECT_EQ(offsetof(ours::type, member), offsetof(::type, member)) << #type "::" #member

TEST(DriverAbiWide, EveryStructureHasTheLayoutOfTheHeader) {
    EXPECT_SAME_SIZE(CUuuid);
    EXPECT_SAME_SIZE(CUmemAccessDesc);
    EXPECT_SAME_OFFSET(CUmemAccessDesc, flags);
    EXPECT_SAME_SIZE(CUlaunchAttribute);
    EXPECT_SAME_OFFSET(CUlaunchAttribute, value);
    EXPECT_SAME_SIZE(CUlaunchConfig);
    EXPECT_SAME_OFFSET(CUlaunchConfig, sharedMemBytes);
    EXPECT_SAME_OFFSET(CUlaunchConfig, hStream);
    EXPECT_SAME_OFFSET(CUlaunchConfig, attrs);
    EXPECT_SAME_OFFSET(CUlaunchConfig, numAttrs);
    EXPECT_SAME_SIZE(CUDA_KERNEL_NODE_PARAMS_v1);
    EXPECT_SAME_OFFSET(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams);
    EXPECT_SAME_SIZE(CUDA_KERNEL_NODE_PARAMS_v2);
    EXPECT_SAME_OFFSET(CUDA_KERNEL_NODE_PARAMS_v2, kern);
    EXPECT_SAME_SIZE(CUDA_MEMSET_NODE_PARAMS);
    EXPECT_SAME_OFFSET(CUDA_MEMSET_NODE_PARAMS, width);
    EXPECT_SAME_SIZE(CUDA_HOST_NODE_PARAMS);
    EXPECT_SAME_SIZE(CUctxCreateParams);
    EXPECT_SAME_OFFSET(CUctxCreateParams, numExecAffinityParams);
    EXPECT_SAME_OFFSET(CUctxCreateParams, cigParams);
}

TEST(DriverAbiWide, CopiesOfRowsAndBoxesHaveTheLayoutOfTheHeader) {
    EXPECT_SAME_SIZE(CUDA_MEMCPY2D);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY2D, srcMemoryType);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY2D, srcDevice);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY2D, srcPitch);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY2D, dstXInBytes);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY2D, dstHost);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY2D, dstPitch);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY2D, WidthInBytes);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY2D, Height);
    EXPECT_SAME_SIZE(CUDA_MEMCPY3D);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY3D, srcLOD);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY3D, srcDevice);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY3D, srcHeight);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY3D, dstXInBytes);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY3D, dstHost);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY3D, dstHeight);
    EXPECT_SAME_OFFSET(CUDA_MEMCPY3D, Depth);
}

}  // namespace

#else

TEST(DriverAbiWide, IsThatOfTheHeader) { GTEST_SKIP() << "blocked: no cuda.h of a CUDA toolkit"; }

#endif
