// SPDX-License-Identifier: Apache-2.0
// What the guarded step does not reach of the other operations: the order of their checks, their skips, their edges,
// and waiting.
#include <gtest/gtest.h>

#include "kernels/host/guarded_adamw.h"
#include "kernels/host/validation.h"
#include "tests/host/values.h"

namespace gradguard {
namespace {

using harness::DeviceCall;
using testing::expect_error;
using testing::RecordedDevice;

/// With beta1 = 0 the first moment is the effective gradient.
const AdamWOptions kMomentIsGradient = {.beta1 = 0.0F};

TEST(ClippedStep, OptionsComeBeforeControlBeforeTheClipBeforeEntries) {
    const RecordedDevice gpu;
    std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    entries[0].gradients.layout.byte_offset = 1;
    AdamWOptions options = {.beta1 = 1.0F};
    StepControl control = {.gradient_scale = 0.0F};
    GradientDecision decision = {.clip_multiplier = 2.0F};
    const auto step = [&] { clipped_adamw_step(decision, entries, options, control); };
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "beta1", step);
    options = {};
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "gradient_scale", step);
    control = {};
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "clip_multiplier", step);
    decision = {};
    expect_error(ErrorKind::kInvalidTensor, 0, "gradients", step);
}

TEST(ClippedStep, TheClipMayBeZeroOrOne) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    for (const float clip : {0.0F, 0.25F, 1.0F}) {
        const auto updates = clipped_adamw_step({.clip_multiplier = clip}, entries, kMomentIsGradient);
        EXPECT_EQ(gpu.read(updates[0].state->first_moment)[0], 0.5F * clip);
    }
}

TEST(ClippedStep, ARequestToSkipMakesNoCall) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    gpu.forget_calls();
    const auto updates = clipped_adamw_step({}, entries, {}, {.skip_update = true});
    ASSERT_EQ(updates.size(), 1U);
    EXPECT_FALSE(updates[0].updated);
    EXPECT_EQ(updates[0].parameters.storage.address, entries[0].parameters.storage.address);
    EXPECT_TRUE(gpu.log->calls.empty());
}

TEST(ClippedStep, EmptyEntriesComeBackAndMakeNoCall) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> empty = {gpu.entry({}, {}), gpu.entry({}, {})};
    const std::vector<AdamWEntry> mixed = {gpu.entry({}, {}), gpu.entry({1.0F}, {0.5F})};
    gpu.forget_calls();
    EXPECT_TRUE(clipped_adamw_step({}, {}).empty());
    const auto none = clipped_adamw_step({}, empty);
    ASSERT_EQ(none.size(), 2U);
    EXPECT_FALSE(none[0].updated || none[1].updated);
    EXPECT_TRUE(gpu.log->calls.empty());
    const auto one = clipped_adamw_step({}, mixed);
    EXPECT_FALSE(one[0].updated);
    EXPECT_TRUE(one[1].updated);
    EXPECT_EQ(gpu.log->count(DeviceCall::kLaunch), 1U);
}

TEST(ClippedStep, NeedsTheLimitsOfTheUpdateAndNotThoseOfTheReduction) {
    DeviceProperties properties = RecordedDevice().device->properties();
    properties.max_shared_bytes_per_block = 0;
    const RecordedDevice no_shared(false, 1, {}, properties);
    const std::vector<AdamWEntry> entries = {no_shared.entry({1.0F}, {0.5F})};
    EXPECT_TRUE(clipped_adamw_step({}, entries)[0].updated);

    properties.max_threads_in_x = 255;
    const RecordedDevice narrow(false, 1, {}, properties);
    const std::vector<AdamWEntry> refused = {narrow.entry({1.0F}, {0.5F})};
    narrow.forget_calls();
    expect_error(ErrorKind::kUnsupportedDevice, std::nullopt, "device", [&] { clipped_adamw_step({}, refused); });
    EXPECT_TRUE(narrow.log->calls.empty());
    EXPECT_FALSE(clipped_adamw_step({}, refused, {}, {.skip_update = true})[0].updated);
}

TEST(Scan, SharedMemoryBeyond32BitsIsEnough) {
    const DeviceProperties properties = {"large", 1024, 1024, 65535, std::uint64_t{1} << 32U};
    EXPECT_NO_THROW(kernels::validate_device(properties, true));
}

TEST(UnguardedStep, OptionsComeBeforeControlBeforeTheEntry) {
    const RecordedDevice gpu;
    AdamWEntry entry = gpu.entry({1.0F}, {0.5F});
    entry.gradients.layout.byte_offset = 1;
    AdamWOptions options = {.beta1 = 1.0F};
    StepControl control = {.gradient_scale = 0.0F};
    const auto step = [&] { adamw_step(entry.parameters, entry.gradients, entry.state, options, control); };
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "beta1", step);
    options = {};
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "gradient_scale", step);
    control = {};
    expect_error(ErrorKind::kInvalidTensor, 0, "gradients", step);
}

TEST(UnguardedStep, UnscalesAndDoesNotClip) {
    const RecordedDevice gpu;
    const reference::HostEntry host = testing::host_entry(700, DType::kBF16, 3, 4, false);
    const AdamWEntry entry = testing::upload(gpu, host);
    const StepControl control = {.gradient_scale = 0.125F};
    gpu.forget_calls();
    const AdamWUpdate got = adamw_step(entry.parameters, entry.gradients, entry.state, {}, control);
    got.wait();
    std::string launched;
    for (const auto& call : gpu.log->calls) launched += call.call == DeviceCall::kLaunch ? call.detail : "";
    EXPECT_EQ(launched, "adamw_bf16");
    const auto want = reference::guarded_step(std::span(&host, 1), {}, control, {.max_norm = std::nullopt});
    testing::expect_same(gpu, got, want.entries[0]);
}

TEST(Scan, TheScaleIsCheckedBeforeTheGradients) {
    const RecordedDevice gpu;
    std::vector<Tensor> gradients = {gpu.tensor(std::vector<float>{0.5F})};
    gradients[0].layout.byte_offset = 1;
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "gradient_scale",
                 [&] { gradient_stats_sync(gradients, 0.0F); });
}

TEST(Waiting, ForWhatWasNotUpdatedMakesNoCall) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    gpu.forget_calls();
    const StepControl skip = {.skip_update = true};
    adamw_step(entries[0].parameters, entries[0].gradients, std::nullopt, {}, skip).wait();
    guarded_adamw_step(entries, {}, skip).wait();
    guarded_adamw_step({}).wait();
    AdamWUpdate{}.wait();
    GuardedAdamWUpdate{}.wait();
    EXPECT_TRUE(gpu.log->calls.empty());
}

TEST(Waiting, ForAGroupWaitsForItsUpdatesWhereverTheyAre) {
    for (const std::size_t live : {0U, 1U, 2U}) {
        const RecordedDevice gpu;
        std::vector<AdamWEntry> entries(3, gpu.entry({}, {}));
        entries[live] = gpu.entry({1.0F}, {0.5F});
        const GuardedAdamWUpdate update = guarded_adamw_step(entries);
        gpu.log->calls.clear();
        update.wait();
        EXPECT_EQ(gpu.log->count(DeviceCall::kSynchronize), 1U);
    }
}

}  // namespace
}  // namespace gradguard
