// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/host/guarded_adamw.h"
#include "tests/host/values.h"

namespace gradguard {
namespace {

using testing::bits;
using testing::RecordedDevice;

std::vector<std::byte> poison(std::size_t size) {
    return std::vector<std::byte>(size, std::byte{harness::VirtualDevice::kPoison});
}

TEST(Asynchrony, ACopyToTheHostIsPoisonUntilSomebodyWaits) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const RecordedDevice gpu(false, seed);
        const Tensor tensor = gpu.tensor(std::vector<float>{1.0F, 2.0F});
        std::vector<std::byte> bytes(8);
        tensor.download(bytes);
        EXPECT_EQ(bytes, poison(8));
        gpu.queue->synchronize();
        EXPECT_EQ(bytes, testing::stored({1.0F, 2.0F}, DType::kF32));
    }
}

TEST(Asynchrony, WorkIsHeldBackForSomeSeedsAndRunAtOnceForOthers) {
    int held_back = 0;
    constexpr int kSeeds = 32;
    for (int seed = 0; seed < kSeeds; ++seed) {
        const RecordedDevice gpu(false, static_cast<std::uint64_t>(seed));
        const AdamWEntry entry = gpu.entry({1.0F}, {0.5F});
        gpu.queue->synchronize();
        const auto before = gpu.inner->machine().counters().launches;
        const AdamWUpdate update = adamw_step(entry.parameters, entry.gradients, std::nullopt);
        held_back += gpu.inner->machine().counters().launches == before ? 1 : 0;
        update.wait();
        EXPECT_EQ(gpu.inner->machine().counters().launches, before + 1);
    }
    EXPECT_GT(held_back, 0);
    EXPECT_LT(held_back, kSeeds);
}

TEST(Asynchrony, InputsLiveUntilTheQueueHasPassedThem) {
    for (std::uint64_t seed = 0; seed < 16; ++seed) {
        const RecordedDevice gpu(false, seed);
        AdamWUpdate update;
        {
            const AdamWEntry entry = gpu.entry({1.0F}, {0.5F});
            update = adamw_step(entry.parameters, entry.gradients, std::nullopt);
        }
        update.wait();
        EXPECT_EQ(bits(gpu.read(update.parameters)[0]), 0x3F7FBE75U);
    }
}

TEST(Asynchrony, NothingIsLeftAllocatedWhenResultsAndInputsAreGone) {
    for (std::uint64_t seed = 0; seed < 16; ++seed) {
        const RecordedDevice gpu(false, seed);
        // Variables of the modules stay: PTX of NVRTC has some, also where no kernel uses them.
        std::size_t of_modules = 0;
        for (const bool loaded : {false, true}) {
            {
                const std::vector<AdamWEntry> entries = {
                    testing::upload(gpu, testing::host_entry(3000, DType::kF16, 1, 2, false))};
                guarded_adamw_step(entries);
            }
            gpu.queue->synchronize();
            if (!loaded) of_modules = gpu.inner->machine().live_allocations();
            EXPECT_EQ(gpu.inner->machine().live_allocations(), of_modules);
        }
        if (!testing::compiled_by_nvrtc()) {
            EXPECT_EQ(of_modules, 0U);
        }
    }
}

TEST(Asynchrony, AnAbandonedReadbackDoesNoHarm) {
    const RecordedDevice gpu;
    const Tensor tensor = gpu.tensor(std::vector<float>{1.0F});
    { const auto readback = gpu.queue->readback({{tensor.storage, 0, 4}}); }
    gpu.queue->synchronize();
    EXPECT_EQ(gpu.read(tensor)[0], 1.0F);
}

TEST(Asynchrony, AFaultOfAKernelShowsWhenSomebodyWaitsAndStays) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const RecordedDevice gpu(false, seed);
        gpu.expect_findings(1);
        AdamWEntry entry = gpu.entry({1.0F, 2.0F}, {0.5F, 0.5F});
        // A caller that lies about foreign memory: two elements in a buffer that holds one.
        Tensor small = gpu.tensor(std::vector<float>{0.5F});
        entry.gradients.storage = Buffer::borrowed(small.storage.address, 8);
        gpu.queue->synchronize();
        AdamWUpdate update;
        const auto error = testing::error_of([&] {
            update = adamw_step(entry.parameters, entry.gradients, std::nullopt);
            update.wait();
        });
        ASSERT_TRUE(error);
        EXPECT_EQ(error->kind(), ErrorKind::kDeviceFailure);
        EXPECT_NE(std::string(error->what()).find("adamw_f32_first"), std::string::npos) << error->what();
        EXPECT_EQ(gpu.inner->machine().findings().size(), 1U);
        testing::expect_error(ErrorKind::kDeviceFailure, std::nullopt, "synchronize",
                              [&] { gpu.queue->synchronize(); });
        testing::expect_error(ErrorKind::kDeviceFailure, std::nullopt, "allocate",
                              [&] { gpu.tensor(std::vector<float>{1.0F}); });
    }
}

TEST(Asynchrony, AFaultDuringTheScanFailsTheReadback) {
    const RecordedDevice gpu;
    gpu.expect_findings(1);
    const Tensor small = gpu.tensor(std::vector<float>{0.5F});
    const std::vector<Tensor> group = {
        Tensor::over(gpu.queue, DType::kF32, {2}, Buffer::borrowed(small.storage.address, 8))};
    const auto error = testing::error_of([&] { gradient_stats_sync(group); });
    ASSERT_TRUE(error);
    EXPECT_TRUE(error->kind() == ErrorKind::kReadback) << error->what();
}

}  // namespace
}  // namespace gradguard
