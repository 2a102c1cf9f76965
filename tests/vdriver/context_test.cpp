// SPDX-License-Identifier: Apache-2.0
#include "tests/vdriver/fixture.h"

namespace gradguard::cuda {
namespace {

class Contexts : public Driver {
  protected:
    Contexts() = default;
    bool primary_is_active() {
        unsigned flags = 0;
        int active = -1;
        EXPECT_OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
        return active == 1;
    }
};

TEST_F(Contexts, ThePrimaryOneLivesAsLongAsSomebodyRetainsIt) {
    EXPECT_FALSE(primary_is_active());
    CUcontext first = nullptr, second = nullptr;
    EXPECT_OK(cu.cuDevicePrimaryCtxRetain(&first, 0));
    EXPECT_OK(cu.cuDevicePrimaryCtxRetain(&second, 0));
    EXPECT_EQ(first, second);
    EXPECT_OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    EXPECT_TRUE(primary_is_active());
    EXPECT_OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    EXPECT_FALSE(primary_is_active());
    EXPECT_EQ(cu.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, ResetEndsThePrimaryOneWhoeverRetainsIt) {
    CUcontext context = nullptr;
    EXPECT_OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT_OK(cu.cuCtxPushCurrent_v2(context));
    EXPECT_OK(cu.cuDevicePrimaryCtxReset_v2(0));
    EXPECT_FALSE(primary_is_active());
    CUdeviceptr address;
    EXPECT_EQ(cu.cuMemAlloc_v2(&address, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_F(Contexts, ThePrimaryOneTakesItsFlags) {
    EXPECT_OK(cu.cuDevicePrimaryCtxSetFlags_v2(0, 4));
    CUcontext context = nullptr;
    EXPECT_OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT_OK(cu.cuCtxSetCurrent(context));
    unsigned flags = 0;
    EXPECT_OK(cu.cuCtxGetFlags(&flags));
    EXPECT_EQ(flags, 4U);
}

TEST_F(Contexts, CreatePushesAndDestroyPops) {
    CUcontext made = nullptr, current = nullptr;
    EXPECT_OK(cu.cuCtxCreate_v2(&made, 0, 0));
    EXPECT_OK(cu.cuCtxGetCurrent(&current));
    EXPECT_EQ(current, made);
    EXPECT_OK(cu.cuCtxDestroy_v2(made));
    EXPECT_OK(cu.cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cu.cuCtxDestroy_v2(made), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(cu.cuCtxCreate_v4(&made, nullptr, 0, 0));
    EXPECT_OK(cu.cuCtxDestroy_v2(made));
}

TEST_F(Contexts, PushAndPopKeepTheOrder) {
    CUcontext a = nullptr, b = nullptr, popped = nullptr;
    EXPECT_OK(cu.cuCtxCreate_v2(&a, 0, 0));
    EXPECT_OK(cu.cuCtxCreate_v2(&b, 0, 0));
    EXPECT_OK(cu.cuCtxPushCurrent_v2(a));
    EXPECT_OK(cu.cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(popped, a);
    EXPECT_OK(cu.cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(popped, b);
    EXPECT_OK(cu.cuCtxPopCurrent_v2(&popped));
    EXPECT_EQ(popped, a);
    EXPECT_EQ(cu.cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, WithoutOneNothingIsAllocated) {
    CUdeviceptr address;
    EXPECT_EQ(cu.cuMemAlloc_v2(&address, 4), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cu.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    CUstream stream;
    EXPECT_EQ(cu.cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    CUdevice device;
    EXPECT_EQ(cu.cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cu.cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x77)), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, HaveLimitsAndAVersion) {
    CUcontext context = nullptr;
    EXPECT_OK(cu.cuCtxCreate_v2(&context, 0, 0));
    std::size_t value = 0;
    EXPECT_OK(cu.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_EQ(value, 1024U);
    EXPECT_OK(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    EXPECT_OK(cu.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT_EQ(value, 4096U);
    EXPECT_EQ(cu.cuCtxSetLimit(77, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
    unsigned version = 0;
    EXPECT_OK(cu.cuCtxGetApiVersion(context, &version));
    EXPECT_EQ(version, 3020U);
    int least = 1, greatest = 1;
    EXPECT_OK(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
    EXPECT_EQ(least, 0);
    EXPECT_LT(greatest, 0);
}

TEST_F(Contexts, TakeTheirMemoryAndHandlesWithThem) {
    CUcontext context = nullptr;
    EXPECT_OK(cu.cuCtxCreate_v2(&context, 0, 0));
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuStreamCreate(&stream, 0));
    EXPECT_OK(cu.cuEventCreate(&event, 0));
    EXPECT_OK(cu.cuModuleLoadData(&module, kKernels));
    EXPECT_OK(cu.cuMemAlloc_v2(&address, 4));
    EXPECT_OK(cu.cuCtxDestroy_v2(context));
    EXPECT_EQ(cu.cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cu.cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    CUfunction function;
    EXPECT_EQ(cu.cuModuleGetFunction(&function, module, "fill"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cu.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.parsed_report()["live"]["contexts"], 0);
}

}  // namespace
}  // namespace gradguard::cuda
