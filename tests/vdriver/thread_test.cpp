// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "tests/vdriver/fixture.h"

namespace gradguard::cuda {
namespace {

class Threads : public InContext {
  protected:
    Threads() : InContext(R"({"seed": 11})") {}
};

TEST_F(Threads, HaveNoContextOfOthers) {
    CUcontext seen = context;
    std::thread([&] { EXPECT_OK(cu.cuCtxGetCurrent(&seen)); }).join();
    EXPECT_EQ(seen, nullptr);
}

TEST_F(Threads, WorkInOneContextAtOnce) {
    const CUfunction fill = kernel("fill"), add_one = kernel("add_one");
    constexpr int kThreads = 4, kRounds = 50;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            EXPECT_OK(cu.cuCtxSetCurrent(context));
            CUstream stream = nullptr;
            EXPECT_OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
            for (int i = 0; i < kRounds; ++i) {
                CUdeviceptr data = 0;
                void* host = nullptr;
                EXPECT_OK(cu.cuMemAllocAsync(&data, 256, stream));
                EXPECT_OK(cu.cuMemHostAlloc(&host, 256, 0));
                auto value = static_cast<std::uint32_t>(1000 * t + i);
                std::uint32_t count = 64;
                void* fill_arguments[] = {&data, &value, &count};
                void* add_arguments[] = {&data, &count};
                EXPECT_OK(cu.cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, stream, fill_arguments, nullptr));
                EXPECT_OK(cu.cuLaunchKernel(add_one, 1, 1, 1, 64, 1, 1, 0, stream, add_arguments, nullptr));
                EXPECT_OK(cu.cuMemcpyDtoHAsync_v2(host, data, 256, stream));
                EXPECT_OK(cu.cuMemFreeAsync(data, stream));
                EXPECT_OK(cu.cuStreamSynchronize(stream));
                for (int k = 0; k < 64; ++k) wrong += static_cast<std::uint32_t*>(host)[k] != value + 1;
                EXPECT_OK(cu.cuMemFreeHost(host));
            }
            EXPECT_OK(cu.cuStreamDestroy_v2(stream));
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(Threads, WaitForTheHostFunctionOfAStreamThatAnotherRuns) {
    CUstream stream = nullptr;
    EXPECT_OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    struct Gate {
        std::atomic<bool> entered{false}, open{false}, passed{false};
    } gate;
    const auto wait_at_gate = [](void* data) {
        auto& g = *static_cast<Gate*>(data);
        g.entered = true;
        while (!g.open) std::this_thread::yield();
        g.passed = true;
    };
    std::thread runner([&] {
        EXPECT_OK(cu.cuLaunchHostFunc(stream, wait_at_gate, &gate));
        EXPECT_OK(cu.cuStreamSynchronize(stream));
    });
    while (!gate.entered) std::this_thread::yield();
    // The driver is not locked meanwhile: others get their calls through, launches that must wait among them, and who
    // waits for the stream waits.
    CUdeviceptr address = 0;
    EXPECT_OK(cu.cuMemAlloc_v2(&address, 4));
    for (int i = 0; i < 20; ++i) EXPECT_OK(cu.cuMemsetD32Async(address, 1, 1, stream));
    EXPECT_EQ(cu.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    std::thread waiter([&] {
        EXPECT_OK(cu.cuStreamSynchronize(stream));
        EXPECT_TRUE(gate.passed);
    });
    gate.open = true;
    runner.join();
    waiter.join();
    EXPECT_OK(cu.cuMemFree_v2(address));
}

TEST_F(Threads, HaveADefaultStreamOfTheirOwnOnRequest) {
    const auto own = reinterpret_cast<CUstream>(kStreamPerThread);
    CUdeviceptr data = allocate(4);
    std::uint32_t value = 5, count = 1;
    EXPECT_OK(launch(kernel("fill"), 1, 1, own, {&data, &value, &count}));
    EXPECT_OK(cu.cuStreamSynchronize(own));
    EXPECT_EQ(words(data, 1)[0], 5U);
}

}  // namespace
}  // namespace gradguard::cuda
