// SPDX-License-Identifier: Apache-2.0
// Contract section 3, the last rows: summaries, readback, and each device call that fails.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "kernels/host/guarded_adamw.h"
#include "tests/host/values.h"

namespace gradguard {
namespace {

using harness::DeviceCall;
using testing::expect_error;
using testing::RecordedDevice;
using Payload = std::vector<std::vector<std::byte>>;

/// Runs a guarded step whose readback is tampered with; it must fail with `kind` before any update is submitted.
void expect_tampering_refused(ErrorKind kind, const std::function<void(Payload&)>& tamper) {
    const RecordedDevice gpu(false, 1, {std::make_shared<harness::TamperReadback>(tamper)});
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F}), gpu.entry({2.0F}, {0.25F})};
    gpu.forget_calls();
    const auto error = testing::error_of([&] { guarded_adamw_step(entries); });
    ASSERT_TRUE(error);
    EXPECT_EQ(to_string(error->kind()), to_string(kind)) << error->what();
    for (const auto& call : gpu.log->calls) EXPECT_EQ(call.detail.find("adamw"), std::string::npos) << call.detail;
    EXPECT_EQ(gpu.read(entries[0].parameters)[0], 1.0F);
    EXPECT_EQ(gpu.read(entries[1].gradients)[0], 0.25F);
}

TEST(Faults, DamagedSummariesAreRefused) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const float damaged[][3] = {{-1, 1, 0}, {kNan, 1, 0}, {1, -1, 0}, {1, kNan, 0}, {1, 1, 2}, {0, 1, 0}, {1, 0.5F, 0}};
    for (const auto& words : damaged) {
        expect_tampering_refused(ErrorKind::kInvalidSummary,
                                 [&](Payload& payload) { std::memcpy(payload[1].data(), words, sizeof words); });
    }
}

TEST(Faults, TheWrongNumberOrLengthOfSummariesIsRefused) {
    expect_tampering_refused(ErrorKind::kInvalidSummary, [](Payload& payload) { payload.pop_back(); });
    expect_tampering_refused(ErrorKind::kInvalidSummary, [](Payload& payload) { payload.push_back(payload[0]); });
    expect_tampering_refused(ErrorKind::kInvalidSummary, [](Payload& payload) { payload[0].pop_back(); });
    expect_tampering_refused(ErrorKind::kInvalidSummary, [](Payload& payload) { payload[0].push_back({}); });
    expect_tampering_refused(ErrorKind::kInvalidSummary, [](Payload& payload) { payload.clear(); });
}

TEST(Faults, EachCallOfAStepThatFailsIsReportedAndTheNextStepWorks) {
    const std::vector<reference::HostEntry> hosts = {testing::host_entry(1500, DType::kF32, 1, 2, false),
                                                     testing::host_entry(40, DType::kF16, 2, 0, false)};
    const auto want = reference::guarded_step(hosts, {}, {}, {});
    // How often each call happens in a step, from a clean run.
    const RecordedDevice clean;
    const auto clean_entries = testing::upload(clean, hosts);
    clean.forget_calls();
    guarded_adamw_step(clean_entries).wait();
    for (const DeviceCall call : {DeviceCall::kAllocate, DeviceCall::kLoadModule, DeviceCall::kLaunch,
                                  DeviceCall::kReadback, DeviceCall::kSynchronize}) {
        const std::size_t times = clean.log->count(call);
        EXPECT_GT(times, 0U) << to_string(call);
        for (std::size_t n = 0; n < times; ++n) {
            SCOPED_TRACE(std::string(to_string(call)) + " number " + std::to_string(n));
            // Skip the calls that set the inputs up, then fail the n-th of the step.
            const RecordedDevice counting;
            testing::upload(counting, hosts);
            counting.queue->synchronize();
            const std::size_t before = counting.log->count(call);
            const RecordedDevice gpu(false, 1, {std::make_shared<harness::FailNthCall>(call, before + n)});
            const auto entries = testing::upload(gpu, hosts);
            gpu.queue->synchronize();
            const ErrorKind kind = call == DeviceCall::kReadback ? ErrorKind::kReadback : ErrorKind::kDeviceFailure;
            expect_error(kind, std::nullopt, std::string(to_string(call)), [&] { guarded_adamw_step(entries).wait(); });
            for (std::size_t i = 0; i < hosts.size(); ++i) {
                EXPECT_TRUE(testing::same_bits(gpu.read(entries[i].parameters), hosts[i].parameters));
            }
            const auto again = guarded_adamw_step(entries);
            for (std::size_t i = 0; i < hosts.size(); ++i) testing::expect_same(gpu, again.entries[i], want.entries[i]);
        }
    }
}

TEST(Faults, RunningOutOfMemoryForOutputsSubmitsNothing) {
    const std::vector<reference::HostEntry> hosts = {testing::host_entry(10, DType::kF32, 1, 0, false),
                                                     testing::host_entry(10, DType::kF32, 2, 0, false)};
    // Calls: 4 uploads, 2 scratch buffers, 6 outputs; the last output fails.
    const RecordedDevice gpu(false, 1, {std::make_shared<harness::FailNthCall>(DeviceCall::kAllocate, 11)});
    const auto entries = testing::upload(gpu, hosts);
    gpu.forget_calls();
    expect_error(ErrorKind::kDeviceFailure, std::nullopt, "allocate", [&] { guarded_adamw_step(entries); });
    EXPECT_EQ(gpu.log->count(DeviceCall::kLaunch), 2U);
}

}  // namespace
}  // namespace gradguard
