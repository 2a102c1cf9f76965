// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <ostream>

#include "tests/vdriver/fixture.h"

namespace gradguard::cuda {
namespace {

class Launches : public InContext {
  protected:
    explicit Launches(const std::string& configuration = R"({"limits": {"instruction_budget": 100000}})")
        : InContext(configuration) {}
};

TEST_F(Launches, TakePointersToArguments) {
    CUdeviceptr out = allocate(16);
    std::uint32_t value = 6, count = 3;
    EXPECT_OK(cu.cuMemsetD32_v2(out, 0, 4));
    EXPECT_OK(launch(kernel("fill"), 2, 2, nullptr, {&out, &value, &count}));
    EXPECT_EQ(words(out, 4), (std::vector<std::uint32_t>{6, 6, 6, 0}));
}

TEST_F(Launches, TakeABufferOfArguments) {
    struct {
        CUdeviceptr out;
        std::uint32_t value = 8;
        std::uint32_t count = 2;
        std::uint64_t more = 0;
    } block{allocate(8)};
    std::size_t size = 16;
    void* extra[] = {reinterpret_cast<void*>(kLaunchParamBufferPointer), &block,
                     reinterpret_cast<void*>(kLaunchParamBufferSize), &size, reinterpret_cast<void*>(kLaunchParamEnd)};
    const CUfunction fill = kernel("fill");
    EXPECT_OK(cu.cuLaunchKernel(fill, 1, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra));
    EXPECT_EQ(words(block.out, 2), (std::vector<std::uint32_t>{8, 8}));
    size = sizeof block;
    EXPECT_OK(cu.cuLaunchKernel(fill, 1, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra));
    size = 12;
    EXPECT_EQ(cu.cuLaunchKernel(fill, 1, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
    void* arguments[] = {&block.out, &block.value, &block.count};
    EXPECT_EQ(cu.cuLaunchKernel(fill, 1, 1, 1, 2, 1, 1, 0, nullptr, arguments, extra), CUDA_ERROR_INVALID_VALUE);
    extra[0] = reinterpret_cast<void*>(std::uintptr_t{77});
    EXPECT_EQ(cu.cuLaunchKernel(fill, 1, 1, 1, 2, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launches, ReadArgumentsBeforeTheCallReturns) {
    CUdeviceptr out = allocate(4);
    std::uint32_t value = 1, count = 1;
    EXPECT_OK(launch(kernel("fill"), 1, 1, nullptr, {&out, &value, &count}));
    value = 2;
    EXPECT_EQ(words(out, 1)[0], 1U);
}

TEST_F(Launches, TakeAConfiguration) {
    CUdeviceptr out = allocate(8);
    std::uint32_t value = 3, count = 2;
    void* arguments[] = {&out, &value, &count};
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    CUlaunchConfig config{1, 1, 1, 2, 1, 1, 0, nullptr, &attribute, 1};
    EXPECT_OK(cu.cuLaunchKernelEx(&config, kernel("fill"), arguments, nullptr));
    EXPECT_EQ(words(out, 2), (std::vector<std::uint32_t>{3, 3}));
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {2, 1, 1};
    EXPECT_EQ(cu.cuLaunchKernelEx(&config, kernel("fill"), arguments, nullptr), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cu.cuLaunchKernelEx(nullptr, kernel("fill"), arguments, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cu.cuLaunchCooperativeKernel(kernel("fill"), 1, 1, 1, 2, 1, 1, 0, nullptr, arguments));
}

TEST_F(Launches, OfWrongDimensionsAreRefusedAtOnceAndHarmNothing) {
    const CUfunction empty = kernel("empty");
    EXPECT_EQ(launch(empty, 0, 1, nullptr, {}), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(empty, 1, 0, nullptr, {}), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(empty, 1, 1025, nullptr, {}), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(empty, 1, 1, nullptr, {}, 50000), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(launch(kernel("small_block"), 1, 65, nullptr, {}), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuLaunchKernel(empty, 1, 70000, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.parsed_report()["refused"][2], "launch of empty: block 1025x1x1, the limit is 1024x1024x64");
    EXPECT_OK(launch(empty, 1, 1, nullptr, {}));
    EXPECT_OK(cu.cuCtxSynchronize());
}

TEST_F(Launches, WithoutArgumentsThatTheKernelTakesAreInvalid) {
    CUdeviceptr out = allocate(4);
    void* arguments[] = {&out, nullptr, nullptr};
    EXPECT_EQ(cu.cuLaunchKernel(kernel("fill"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuLaunchKernel(kernel("fill"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

struct Fault {
    const char* kernel;
    CUresult code;
};
/// Names of tests are made of it.
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.kernel; }

class Faults : public Launches, public ::testing::WithParamInterface<Fault> {};

TEST_P(Faults, AreTheErrorOfTheNextSynchronisationAndStay) {
    CUdeviceptr out = allocate(64);
    const CUfunction function = kernel(GetParam().kernel);
    std::vector<void*> arguments;
    if (std::strcmp(GetParam().kernel, "odd") == 0) arguments.push_back(&out);
    EXPECT_OK(launch(function, 1, 1, nullptr, arguments));
    EXPECT_EQ(cu.cuCtxSynchronize(), GetParam().code);
    EXPECT_EQ(cu.cuCtxSynchronize(), GetParam().code);
    EXPECT_EQ(cu.cuMemAlloc_v2(&out, 4), GetParam().code);
    EXPECT_EQ(cu.cuMemFree_v2(out), GetParam().code);
    std::uint32_t word;
    EXPECT_EQ(cu.cuMemcpyDtoH_v2(&word, out, 4), GetParam().code);
    EXPECT_EQ(launch(function, 1, 1, nullptr, arguments), GetParam().code);
}

TEST_P(Faults, EndWithTheContext) {
    CUdeviceptr out = allocate(64);
    std::vector<void*> arguments;
    if (std::strcmp(GetParam().kernel, "odd") == 0) arguments.push_back(&out);
    EXPECT_OK(launch(kernel(GetParam().kernel), 1, 1, nullptr, arguments));
    EXPECT_EQ(cu.cuCtxSynchronize(), GetParam().code);
    EXPECT_OK(cu.cuDevicePrimaryCtxReset_v2(0));
    EXPECT_OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT_OK(cu.cuCtxSetCurrent(context));
    EXPECT_OK(cu.cuMemAlloc_v2(&out, 4));
    EXPECT_OK(cu.cuCtxSynchronize());
    EXPECT_FALSE(cu.parsed_report()["failures"].empty());
}

INSTANTIATE_TEST_SUITE_P(OfKernels, Faults,
                         ::testing::Values(Fault{"wild", CUDA_ERROR_ILLEGAL_ADDRESS},
                                           Fault{"odd", CUDA_ERROR_MISALIGNED_ADDRESS},
                                           Fault{"spin", CUDA_ERROR_LAUNCH_TIMEOUT},
                                           Fault{"stop", CUDA_ERROR_LAUNCH_FAILED}),
                         [](const auto& fault) { return std::string(fault.param.kernel); });

TEST_F(Launches, AFaultInOneContextLeavesAnotherAlone) {
    CUcontext other = nullptr;
    EXPECT_OK(cu.cuCtxCreate_v2(&other, 0, 0));
    const CUmodule module = load(kKernels);
    CUfunction wild = nullptr;
    EXPECT_OK(cu.cuModuleGetFunction(&wild, module, "wild"));
    EXPECT_OK(launch(wild, 1, 1, nullptr, {}));
    EXPECT_EQ(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_OK(cu.cuCtxSetCurrent(context));
    EXPECT_OK(launch(kernel("empty"), 1, 1, nullptr, {}));
    EXPECT_OK(cu.cuCtxSynchronize());
}

}  // namespace
}  // namespace gradguard::cuda
