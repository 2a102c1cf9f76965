// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/guarded_adamw.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/host/values.h"

namespace gradguard {
namespace {

using harness::DeviceCall;
using testing::bits;
using testing::expect_error;
using testing::expect_same;
using testing::host_entry;
using testing::RecordedDevice;
using testing::upload;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<reference::HostEntry> mixed_group(bool amsgrad = false) {
    return {host_entry(0, DType::kF32, 1, 0, amsgrad),    host_entry(1500, DType::kBF16, 2, 3, amsgrad),
            host_entry(0, DType::kF16, 3, 7, amsgrad),    host_entry(33, DType::kF16, 4, 0, amsgrad),
            host_entry(2048, DType::kF32, 5, 1, amsgrad), host_entry(0, DType::kBF16, 6, 0, amsgrad)};
}

void expect_unchanged(const RecordedDevice& gpu, const std::vector<AdamWEntry>& entries,
                      const std::vector<reference::HostEntry>& hosts, const GuardedAdamWUpdate& result) {
    ASSERT_EQ(result.entries.size(), entries.size());
    EXPECT_EQ(result.clip_multiplier, 1.0F);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const AdamWUpdate& update = result.entries[i];
        EXPECT_FALSE(update.updated);
        EXPECT_EQ(update.parameters.storage.address, entries[i].parameters.storage.address);
        EXPECT_EQ(update.state.has_value(), entries[i].state.has_value());
        if (update.state) {
            EXPECT_EQ(update.state->step, entries[i].state->step);
            EXPECT_EQ(update.state->first_moment.storage.address, entries[i].state->first_moment.storage.address);
            EXPECT_TRUE(testing::same_bits(gpu.read(update.state->first_moment), hosts[i].state->first_moment));
            EXPECT_TRUE(testing::same_bits(gpu.read(update.state->second_moment), hosts[i].state->second_moment));
        }
        EXPECT_TRUE(testing::same_bits(gpu.read(update.parameters), hosts[i].parameters));
    }
}

TEST(GuardedStep, AgreesWithTheOracleOnAMixedGroupOverSeveralSteps) {
    for (const bool amsgrad : {false, true}) {
        const RecordedDevice gpu;
        std::vector<reference::HostEntry> hosts = mixed_group(amsgrad);
        std::vector<AdamWEntry> entries = upload(gpu, hosts);
        const AdamWOptions options = {.amsgrad = amsgrad};
        for (int step = 0; step < 4; ++step) {
            for (std::size_t i = 0; i < hosts.size(); ++i) {
                hosts[i].gradients = testing::stored(
                    testing::ordinary(hosts[i].parameters.size(), 100 * step + i, step == 2 ? 8.0F : 0.25F),
                    hosts[i].gradient_dtype);
                entries[i].gradients.upload(hosts[i].gradients);
            }
            const StepControl control = {.gradient_scale = 2.0F};
            const GuardedAdamWUpdate got = guarded_adamw_step(entries, options, control);
            const reference::HostGuardedUpdate want = reference::guarded_step(hosts, options, control, {});
            EXPECT_EQ(got.report->stats.total_norm, want.report->stats.total_norm);
            EXPECT_EQ(got.report->reduction_launches, want.report->reduction_launches);
            EXPECT_EQ(got.report->scratch_bytes, want.report->scratch_bytes);
            EXPECT_EQ(got.report->readback_bytes, want.report->readback_bytes);
            EXPECT_EQ(bits(got.clip_multiplier), bits(want.clip_multiplier));
            for (std::size_t i = 0; i < hosts.size(); ++i) {
                SCOPED_TRACE("step " + std::to_string(step) + ", entry " + std::to_string(i));
                expect_same(gpu, got.entries[i], want.entries[i]);
                entries[i].parameters = got.entries[i].parameters;
                entries[i].state = got.entries[i].state;
                hosts[i].parameters = want.entries[i].parameters;
                hosts[i].state = want.entries[i].state;
            }
        }
    }
}

TEST(GuardedStep, LaunchesAllocatesAndReadsBackWhatTheContractSaysInItsOrder) {
    for (const bool amsgrad : {false, true}) {
        const RecordedDevice gpu;
        const std::vector<AdamWEntry> entries = upload(gpu, mixed_group(amsgrad));
        guarded_adamw_step(entries, {.amsgrad = amsgrad}).wait();  // modules are loaded now
        gpu.forget_calls();
        const GuardedAdamWUpdate result = guarded_adamw_step(entries, {.amsgrad = amsgrad});
        EXPECT_EQ(result.report->reduction_launches, 5U);
        EXPECT_EQ(gpu.log->count(DeviceCall::kLaunch), 5U + 3U);
        EXPECT_EQ(gpu.log->count(DeviceCall::kReadback), 1U);
        EXPECT_EQ(gpu.log->bytes(DeviceCall::kReadback), 36U);
        EXPECT_EQ(result.report->scratch_bytes, (2 * 12U + 12U) + 12U + (2 * 12U + 12U));
        const std::uint64_t outputs = (amsgrad ? 4U : 3U) * 4U * (1500U + 33U + 2048U);
        EXPECT_EQ(gpu.log->bytes(DeviceCall::kAllocate), result.report->scratch_bytes + outputs);
        EXPECT_EQ(gpu.log->count(DeviceCall::kCopyToDevice), 0U);
        EXPECT_EQ(gpu.log->count(DeviceCall::kSynchronize), 0U);
        // Every reduction comes before the readback, every update after it, in input order.
        std::vector<std::string> order;
        for (const auto& call : gpu.log->calls) {
            if (call.call == DeviceCall::kLaunch) order.push_back(call.detail);
            if (call.call == DeviceCall::kReadback) order.push_back("readback");
        }
        const std::string a = amsgrad ? "_amsgrad" : "";
        const std::vector<std::string> want = {
            "gradient_statistics_bf16",    "gradient_statistics_merge",        "gradient_statistics_f16",
            "gradient_statistics_f32",     "gradient_statistics_merge",        "readback",
            "adamw_bf16" + a + "_clipped", "adamw_f16_first" + a + "_clipped", "adamw_f32" + a + "_clipped"};
        EXPECT_EQ(order, want);
        for (const auto& call : gpu.log->calls) {
            if (call.call == DeviceCall::kLaunch) {
                EXPECT_EQ(call.shape.threads, 256U);
            }
        }
    }
}

TEST(GuardedStep, TwoTensorsShareOneNormAndOneClip) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {3.0F}), gpu.entry({1.0F}, {4.0F})};
    const GuardedAdamWUpdate result = guarded_adamw_step(entries, {.beta1 = 0.0F});
    EXPECT_EQ(result.report->stats.total_norm, 5.0);
    EXPECT_EQ(bits(result.clip_multiplier), 0x3E4CCCCAU);
    // With beta1 = 0 the first moment is the effective gradient.
    EXPECT_EQ(gpu.read(result.entries[0].state->first_moment)[0], 3.0F * result.clip_multiplier);
    EXPECT_EQ(gpu.read(result.entries[1].state->first_moment)[0], 4.0F * result.clip_multiplier);
}

TEST(GuardedStep, RequestedSkipTouchesNothing) {
    const RecordedDevice gpu;
    const auto hosts = mixed_group();
    const std::vector<AdamWEntry> entries = upload(gpu, hosts);
    gpu.forget_calls();
    const GuardedAdamWUpdate result = guarded_adamw_step(entries, {}, {.skip_update = true});
    EXPECT_TRUE(gpu.log->calls.empty());
    EXPECT_EQ(result.skip_reason, SkipReason::kRequested);
    EXPECT_FALSE(result.report);
    expect_unchanged(gpu, entries, hosts, result);
}

TEST(GuardedStep, EmptyGroupsAreUnchangedWithoutAReport) {
    const RecordedDevice gpu;
    const std::vector<reference::HostEntry> hosts = {host_entry(0, DType::kF32, 1, 0, false),
                                                     host_entry(0, DType::kF16, 2, 5, false)};
    const std::vector<AdamWEntry> entries = upload(gpu, hosts);
    gpu.forget_calls();
    const GuardedAdamWUpdate result = guarded_adamw_step(entries);
    EXPECT_EQ(guarded_adamw_step({}).skip_reason, SkipReason::kEmpty);
    EXPECT_TRUE(gpu.log->calls.empty());
    EXPECT_EQ(result.skip_reason, SkipReason::kEmpty);
    EXPECT_FALSE(result.report);
    expect_unchanged(gpu, entries, hosts, result);
}

TEST(GuardedStep, OneBadValueAnywhereSkipsTheWholeGroup) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
        for (const std::size_t entry : {1U, 3U, 4U}) {
            for (const bool last : {false, true}) {
                const RecordedDevice gpu;
                auto hosts = mixed_group();
                auto& bytes = hosts[entry].gradients;
                const std::size_t size = element_bytes(hosts[entry].gradient_dtype);
                const auto word = testing::stored({bad}, hosts[entry].gradient_dtype);
                std::copy(word.begin(), word.end(),
                          last ? bytes.end() - static_cast<std::ptrdiff_t>(size) : bytes.begin());
                const std::vector<AdamWEntry> entries = upload(gpu, hosts);
                gpu.forget_calls();
                const GuardedAdamWUpdate result = guarded_adamw_step(entries);
                EXPECT_EQ(result.skip_reason, SkipReason::kNonFinite);
                ASSERT_TRUE(result.report);
                EXPECT_EQ(result.report->stats.total_norm, std::numeric_limits<double>::infinity());
                for (std::size_t i = 0; i < entries.size(); ++i) {
                    EXPECT_EQ(result.report->summaries[i].bad, i == entry ? 1.0F : 0.0F);
                }
                EXPECT_EQ(gpu.log->count(DeviceCall::kLaunch), result.report->reduction_launches);
                EXPECT_EQ(gpu.log->bytes(DeviceCall::kAllocate), result.report->scratch_bytes);
                expect_unchanged(gpu, entries, hosts, result);
            }
        }
    }
}

TEST(GuardedStep, PolicyErrorThrowsBeforeAnyUpdate) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {kNan}), gpu.entry({1.0F}, {1.0F})};
    gpu.forget_calls();
    expect_error(ErrorKind::kNonFiniteGradients, std::nullopt, "gradients",
                 [&] { guarded_adamw_step(entries, {}, {}, {.nonfinite = NonFinitePolicy::kError}); });
    for (const auto& call : gpu.log->calls) EXPECT_EQ(call.detail.find("adamw"), std::string::npos) << call.detail;
    EXPECT_EQ(gpu.read(entries[1].parameters)[0], 1.0F);
}

TEST(GuardedStep, MaxNormZeroGivesZeroGradientsButMomentsDecayAndStepAdvance) {
    for (const float max_norm : {0.0F, -0.0F}) {
        const RecordedDevice gpu;
        auto hosts = mixed_group();
        const GuardedAdamWUpdate got = guarded_adamw_step(upload(gpu, hosts), {}, {}, {.max_norm = max_norm});
        EXPECT_EQ(bits(got.clip_multiplier), 0U);
        for (auto& host : hosts) std::fill(host.gradients.begin(), host.gradients.end(), std::byte{0});
        const auto want = reference::guarded_step(hosts, {}, {}, {.max_norm = std::nullopt});
        EXPECT_EQ(got.entries[1].state->step, 4U);
        EXPECT_TRUE(testing::same_bits(gpu.read(got.entries[1].parameters), want.entries[1].parameters));
    }
}

TEST(GuardedStep, AnEmptyEntryKeepsItsStepInALiveGroup) {
    const RecordedDevice gpu;
    std::vector<AdamWEntry> entries = {gpu.entry({1, 1, 1, 1}, {0.5F, 0.5F, 0.5F, 0.5F}), gpu.entry({}, {})};
    entries[1].state = gpu.state(7, {}, {});
    const GuardedAdamWUpdate result = guarded_adamw_step(entries);
    EXPECT_EQ(result.entries[1].state->step, 7U);
    EXPECT_FALSE(result.entries[1].updated);
    EXPECT_EQ(bits(gpu.read(result.entries[0].parameters)[3]), 0x3F7FBE75U);
    EXPECT_EQ(result.report->stats.tensors, 2U);
}

TEST(GuardedStep, GoodSkipGoodEqualsGoodGood) {
    const auto run = [](bool with_skip) {
        const RecordedDevice gpu;
        std::vector<AdamWEntry> entries = {gpu.entry({1.0F, 2.0F}, {0.5F, -0.25F})};
        const auto commit = [&](const GuardedAdamWUpdate& update) {
            entries[0].parameters = update.entries[0].parameters;
            entries[0].state = update.entries[0].state;
        };
        commit(guarded_adamw_step(entries));
        if (with_skip) {
            entries[0].gradients = gpu.tensor(std::vector<float>{kNan, 1.0F});
            commit(guarded_adamw_step(entries));
        }
        entries[0].gradients = gpu.tensor(std::vector<float>{0.125F, 1.0F});
        commit(guarded_adamw_step(entries));
        std::vector<float> all = gpu.read(entries[0].parameters);
        const std::vector<float> v = gpu.read(entries[0].state->second_moment);
        all.insert(all.end(), v.begin(), v.end());
        all.push_back(static_cast<float>(entries[0].state->step));
        return all;
    };
    EXPECT_TRUE(testing::same_bits(run(true), run(false)));
}

TEST(GuardedStep, IsTheCompositionOfItsThreeHalves) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = upload(gpu, mixed_group());
    std::vector<Tensor> gradients;
    for (const AdamWEntry& entry : entries) gradients.push_back(entry.gradients);
    const GradientStatsReport report = gradient_stats_sync(gradients, 2.0F);
    const GradientDecision decision = decide(report.stats);
    const std::vector<AdamWUpdate> halves = clipped_adamw_step(decision, entries, {}, {.gradient_scale = 2.0F});
    const GuardedAdamWUpdate whole = guarded_adamw_step(entries, {}, {.gradient_scale = 2.0F});
    EXPECT_EQ(whole.report->stats.total_norm, report.stats.total_norm);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        EXPECT_TRUE(testing::same_bits(gpu.read(halves[i].parameters), gpu.read(whole.entries[i].parameters)));
        EXPECT_EQ(halves[i].updated, whole.entries[i].updated);
    }
}

TEST(GuardedStep, ADecisionThatSkipsLeavesEverythingUnchanged) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    gpu.forget_calls();
    const auto updates = clipped_adamw_step({.clip_multiplier = 1.0F, .skip_update = true}, entries);
    EXPECT_FALSE(updates[0].updated);
    EXPECT_FALSE(updates[0].state);
    EXPECT_TRUE(gpu.log->calls.empty());
}

TEST(GuardedStep, OperandsMayAliasEachOther) {
    const RecordedDevice gpu;
    const Tensor shared = gpu.tensor(std::vector<float>{0.5F, 0.25F});
    std::vector<AdamWEntry> entries = {{shared, shared, AdamWState{1, shared, shared, std::nullopt}}};
    reference::HostEntry host = {{0.5F, 0.25F},
                                 DType::kF32,
                                 testing::stored({0.5F, 0.25F}, DType::kF32),
                                 reference::HostState{1, {0.5F, 0.25F}, {0.5F, 0.25F}, std::nullopt}};
    const auto got = guarded_adamw_step(entries);
    expect_same(gpu, got.entries[0], reference::guarded_step(std::span(&host, 1), {}, {}, {}).entries[0]);
    EXPECT_EQ(gpu.read(shared), (std::vector<float>{0.5F, 0.25F}));
}

TEST(GuardedStep, ScheduleSeedsDoNotChangeABit) {
    const auto hosts = mixed_group();
    const RecordedDevice first_gpu(false, 0);
    const auto first = guarded_adamw_step(upload(first_gpu, hosts));
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
        const RecordedDevice gpu(false, seed);
        const auto again = guarded_adamw_step(upload(gpu, hosts));
        EXPECT_TRUE(
            testing::same_bits(gpu.read(again.entries[4].parameters), first_gpu.read(first.entries[4].parameters)));
    }
}

}  // namespace
}  // namespace gradguard
