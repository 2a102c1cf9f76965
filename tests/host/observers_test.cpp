// SPDX-License-Identifier: Apache-2.0
// The suite runs under every observer; here is what keeps that from meaning nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/host/guarded_adamw.h"
#include "tests/host/values.h"

namespace gradguard {
namespace {

using testing::RecordedDevice;

void take_a_step(const RecordedDevice& gpu) {
    const std::vector<AdamWEntry> entries = {testing::upload(gpu, testing::host_entry(3000, DType::kF32, 1, 2, true)),
                                             testing::upload(gpu, testing::host_entry(70, DType::kBF16, 2, 0, false))};
    guarded_adamw_step({entries.data(), 1}, AdamWOptions{.amsgrad = true}).wait();
    guarded_adamw_step({entries.data() + 1, 1}).wait();
}

TEST(Observers, AStepGivesEachOfThemSomethingToCheck) {
    std::vector<observers::Checked> total;
    {
        const RecordedDevice gpu;
        take_a_step(gpu);
        total = gpu.inner->checked();
    }
    EXPECT_EQ(observers::checked_nothing(total), std::vector<std::string>{});
    std::size_t names = 0;
    for (const observers::Checked& checked : total) names += checked.observer == "races" ? 2U : 1U;
    EXPECT_EQ(names, observers::observer_names().size());
}

TEST(Observers, ADeviceThatRanNothingHasCheckedNothing) {
    const RecordedDevice gpu;
    EXPECT_EQ(observers::checked_nothing(gpu.inner->checked()).size(), gpu.inner->checked().size());
}

TEST(Observers, ARunWithoutThemIsAnIdleOne) {
    testing::Watch watch;
    EXPECT_EQ(watch.idle(), observers::observer_names());
    watch.add({{"leaks", {{"allocations", 1}}}, {"barriers", {{"arrivals", 0}}}});
    EXPECT_EQ(watch.idle(), std::vector<std::string>{"barriers"});
}

TEST(Observers, AnInputThatIsWrittenIsAFinding) {
    const RecordedDevice gpu;
    gpu.expect_findings(1);
    const AdamWEntry entry = gpu.entry({1.0F}, {0.5F});
    const AdamWUpdate update = adamw_step(entry.parameters, entry.gradients, std::nullopt);
    update.wait();
    // The same launch again, told that its output is an input.
    const auto mark = gpu.inner->mark_read_only({update.parameters.storage, 0, 4});
    const auto calls = gpu.log->calls;
    const auto launch = std::find_if(calls.begin(), calls.end(),
                                     [](const auto& call) { return call.call == harness::DeviceCall::kLaunch; });
    ASSERT_NE(launch, calls.end());
    gpu.queue->launch(gpu.device->kernel("update", launch->detail), launch->shape, launch->arguments, {});
    gpu.queue->synchronize();
    const auto findings = gpu.inner->findings();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, vgpu::FindingKind::WriteToInput) << findings[0].message();
    EXPECT_EQ(findings[0].allocation, update.parameters.storage.address);
}

TEST(Observers, AMarkEndsWithItsHandle) {
    const RecordedDevice gpu;
    const AdamWEntry entry = gpu.entry({1.0F}, {0.5F});
    const AdamWUpdate update = adamw_step(entry.parameters, entry.gradients, std::nullopt);
    update.wait();
    { const auto mark = gpu.inner->mark_read_only({update.parameters.storage, 0, 4}); }
    for (const auto& call : std::vector(gpu.log->calls)) {
        if (call.call != harness::DeviceCall::kLaunch) continue;
        gpu.queue->launch(gpu.device->kernel("update", call.detail), call.shape, call.arguments, {});
    }
    gpu.queue->synchronize();
    EXPECT_TRUE(gpu.inner->findings().empty());
}

TEST(Observers, ABufferThatStaysIsALeakAtTheEnd) {
    const RecordedDevice gpu;
    {
        const Tensor tensor = gpu.tensor(std::vector<float>{1.0F});
        gpu.queue->synchronize();
        ASSERT_EQ(gpu.inner->final_findings().size(), 1U);
        EXPECT_EQ(gpu.inner->final_findings()[0].kind, vgpu::FindingKind::Leak);
        EXPECT_TRUE(gpu.inner->findings().empty());
    }
    EXPECT_TRUE(gpu.inner->final_findings().empty());
}

TEST(Observers, CountsAreByKernel) {
    harness::VirtualDeviceOptions options;
    options.count = true;
    const auto device = harness::VirtualDevice::create(options);
    const auto queue = device->create_queue();
    const Tensor gradient = Tensor::allocate(queue, DType::kF32, {3000});
    const std::vector<float> values(3000, 0.5F);
    gradient.upload(std::as_bytes(std::span(values)));
    gradient_stats_sync({&gradient, 1});
    ASSERT_NE(device->counts(), nullptr);
    const auto& kernels = device->counts()->by_kernel();
    ASSERT_EQ(kernels.size(), 2U);
    const observers::Totals& scan = kernels.at("gradient_statistics_f32").totals();
    EXPECT_EQ(scan.launches, 1U);
    EXPECT_EQ(scan.blocks, 3U);
    EXPECT_EQ(scan.global_reads.bytes, 4U * 3000);
    EXPECT_EQ(scan.global_reads.sectors, 4U * 3000 / 32);
    EXPECT_EQ(scan.global_writes.bytes, 3U * 12);
    EXPECT_EQ(scan.instructions.at("ld.global.f32"), 3000U);
    EXPECT_EQ(kernels.at("gradient_statistics_merge").totals().global_reads.bytes, 3U * 12);
    EXPECT_EQ(harness::VirtualDevice::create()->counts(), nullptr);
}

TEST(Observers, AnUnknownObserverIsRefused) {
    harness::VirtualDeviceOptions options;
    options.observers = "races,gossip";
    EXPECT_THROW(harness::VirtualDevice::create(options), std::invalid_argument);
}

/// Over a run of the whole program no observer was idle.
class NoObserverWasIdle : public ::testing::Environment {
  public:
    void TearDown() override {
        const ::testing::UnitTest& run = *::testing::UnitTest::GetInstance();
        if (run.test_to_run_count() != run.total_test_count()) return;  // a single test need not give work to all
        EXPECT_EQ(testing::Watch::instance().idle(), std::vector<std::string>{}) << "these observers checked nothing";
    }
};

[[maybe_unused]] const auto* const kEnvironment = ::testing::AddGlobalTestEnvironment(new NoObserverWasIdle);

}  // namespace
}  // namespace gradguard
