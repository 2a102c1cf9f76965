// SPDX-License-Identifier: Apache-2.0
// Contract section 3, the rules for options, states, steps and devices. Tensors: tensor_rules_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/host/guarded_adamw.h"
#include "tests/host/group.h"

namespace gradguard {
namespace {

using testing::expect_error;
using testing::from_bits;
using testing::RecordedDevice;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
const float kBelowOne = std::nextafter(1.0F, 0.0F);

/// Which option a value goes to.
using Setter = std::function<void(AdamWOptions&, StepControl&, GradientGuardOptions&, float)>;

struct OptionCase {
    std::string name;
    Setter set;
    std::vector<float> accepted;
    std::vector<float> refused;
    bool is_guard_option = false;
};

std::vector<OptionCase> option_cases() {
    const std::vector<float> not_a_rate = {-1.0F, -kTiny, kInfinity, -kInfinity, kNan};
    const std::vector<float> not_a_beta = {1.0F, 2.0F, -0.1F, -kTiny, kInfinity, kNan};
    const std::vector<float> not_an_epsilon = {0.0F, -0.0F, -1.0F, kInfinity, kNan};
    return {
        {"learning_rate",
         [](auto& o, auto&, auto&, float x) { o.learning_rate = x; },
         {0.0F, -0.0F, kTiny, 1.0F, 1e30F},
         not_a_rate},
        {"weight_decay",
         [](auto& o, auto&, auto&, float x) { o.weight_decay = x; },
         {0.0F, -0.0F, kTiny, 1.0F, kMax},
         not_a_rate},
        {"beta1", [](auto& o, auto&, auto&, float x) { o.beta1 = x; }, {0.0F, -0.0F, kTiny, kBelowOne}, not_a_beta},
        {"beta2", [](auto& o, auto&, auto&, float x) { o.beta2 = x; }, {0.0F, -0.0F, kTiny, kBelowOne}, not_a_beta},
        {"epsilon", [](auto& o, auto&, auto&, float x) { o.epsilon = x; }, {kTiny, 1e-8F, kMax}, not_an_epsilon},
        {"gradient_scale",
         [](auto&, auto& c, auto&, float x) { c.gradient_scale = x; },
         {0x1p-127F, 0x1p126F, 0x1p127F, kMax, 1.0F, 3.0F},
         {0.0F, -0.0F, -1.0F, kNan, kInfinity, kTiny, 0x1p-128F}},
        {"max_norm",
         [](auto&, auto&, auto& g, float x) { g.max_norm = x; },
         {0.0F, -0.0F, kTiny, kMax},
         {-1.0F, -kTiny, kInfinity, kNan},
         true},
        {"guard_epsilon",
         [](auto&, auto&, auto& g, float x) { g.epsilon = x; },
         {kTiny, 1e-6F, kMax},
         not_an_epsilon,
         true},
    };
}

TEST(OptionRules, EveryOptionIsRefusedOutsideItsRangeBeforeAnyDeviceCall) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    for (const OptionCase& option : option_cases()) {
        for (const float value : option.refused) {
            SCOPED_TRACE(option.name + " = " + std::to_string(value));
            AdamWOptions options;
            StepControl control;
            GradientGuardOptions guard;
            option.set(options, control, guard, value);
            gpu.forget_calls();
            expect_error(ErrorKind::kInvalidOption, std::nullopt, option.name,
                         [&] { guarded_adamw_step(entries, options, control, guard); });
            control.skip_update = true;  // checked even when skipping
            expect_error(ErrorKind::kInvalidOption, std::nullopt, option.name,
                         [&] { guarded_adamw_step(entries, options, control, guard); });
            if (!option.is_guard_option) {
                expect_error(ErrorKind::kInvalidOption, std::nullopt, option.name, [&] {
                    adamw_step(entries[0].parameters, entries[0].gradients, std::nullopt, options, control);
                });
                expect_error(ErrorKind::kInvalidOption, std::nullopt, option.name,
                             [&] { clipped_adamw_step({}, entries, options, control); });
            }
            if (option.name == "gradient_scale") {
                const std::vector<Tensor> gradients = {entries[0].gradients};
                expect_error(ErrorKind::kInvalidOption, std::nullopt, option.name,
                             [&] { gradient_stats_sync(gradients, value); });
            }
            EXPECT_TRUE(gpu.log->calls.empty());
        }
    }
}

TEST(OptionRules, EveryOptionIsAcceptedUpToItsEdges) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.0F})};
    for (const OptionCase& option : option_cases()) {
        for (const float value : option.accepted) {
            SCOPED_TRACE(option.name + " = " + std::to_string(value));
            AdamWOptions options;
            StepControl control;
            GradientGuardOptions guard;
            option.set(options, control, guard, value);
            const auto result = guarded_adamw_step(entries, options, control, guard);
            result.wait();
            EXPECT_TRUE(result.entries[0].updated);
        }
    }
}

TEST(OptionRules, TheProductOfRateAndDecayMustBeFinite) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    gpu.forget_calls();
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "weight_decay",
                 [&] { guarded_adamw_step(entries, {.learning_rate = 1e30F, .weight_decay = 1e30F}); });
    EXPECT_TRUE(gpu.log->calls.empty());
    guarded_adamw_step(entries, {.learning_rate = 1e30F, .weight_decay = 1e8F}).wait();
}

TEST(OptionRules, OptionsComeBeforeControlBeforeGuardBeforeEntries) {
    const RecordedDevice gpu;
    std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    entries[0].gradients.layout.byte_offset = 1;
    AdamWOptions options = {.beta1 = 1.0F};
    StepControl control = {.gradient_scale = 0.0F};
    GradientGuardOptions guard = {.max_norm = -1.0F};
    const auto step = [&] { guarded_adamw_step(entries, options, control, guard); };
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "beta1", step);
    options = {};
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "gradient_scale", step);
    control = {};
    expect_error(ErrorKind::kInvalidOption, std::nullopt, "max_norm", step);
    guard = {};
    expect_error(ErrorKind::kInvalidTensor, 0, "gradients", step);
}

TEST(OptionRules, TheFirstOffendingEntryIsNamed) {
    const RecordedDevice gpu;
    std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F}), gpu.entry({1.0F}, {0.5F}), gpu.entry({1.0F}, {0.5F})};
    entries[1].state = gpu.state(0, {0.0F}, {0.0F});
    entries[2].gradients.layout.byte_offset = 1;
    expect_error(ErrorKind::kInvalidState, 1, "step", [&] { guarded_adamw_step(entries); });
}

TEST(OptionRules, ClipMultiplierOfACallersDecisionMustBeInRange) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    gpu.forget_calls();
    for (const float clip : {-1.0F, 1.5F, kNan, kInfinity}) {
        expect_error(ErrorKind::kInvalidOption, std::nullopt, "clip_multiplier",
                     [&] { clipped_adamw_step({.clip_multiplier = clip}, entries); });
    }
    EXPECT_TRUE(gpu.log->calls.empty());
}

TEST(StateRules, StepIsAtLeastOne) {
    const RecordedDevice gpu;
    std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    entries[0].state = gpu.state(0, {0.0F}, {0.0F});
    gpu.forget_calls();
    expect_error(ErrorKind::kInvalidState, 0, "step", [&] { guarded_adamw_step(entries); });
    EXPECT_TRUE(gpu.log->calls.empty());
    entries[0].state->step = 1;
    EXPECT_EQ(guarded_adamw_step(entries).entries[0].state->step, 2U);
}

TEST(StateRules, TheMaximumIsThereExactlyWithAmsgrad) {
    const RecordedDevice gpu;
    std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    entries[0].state = gpu.state(1, {0.0F}, {0.0F});
    gpu.forget_calls();
    expect_error(ErrorKind::kInvalidState, 0, "max_second_moment",
                 [&] { guarded_adamw_step(entries, {.amsgrad = true}); });
    EXPECT_TRUE(gpu.log->calls.empty());
    guarded_adamw_step(entries, {.amsgrad = false}).wait();
    entries[0].state->max_second_moment = gpu.tensor(std::vector<float>{0.0F});
    gpu.forget_calls();
    expect_error(ErrorKind::kInvalidState, 0, "max_second_moment",
                 [&] { guarded_adamw_step(entries, {.amsgrad = false}); });
    EXPECT_TRUE(gpu.log->calls.empty());
    guarded_adamw_step(entries, {.amsgrad = true}).wait();
}

TEST(StateRules, TheStepMustNotOverflowWhereItWouldAdvance) {
    constexpr auto kLast = std::numeric_limits<std::uint64_t>::max();
    const RecordedDevice gpu;
    std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    entries[0].state = gpu.state(kLast, {0.0F}, {0.0F});
    gpu.forget_calls();
    expect_error(ErrorKind::kStepOverflow, 0, "step", [&] { guarded_adamw_step(entries); });
    expect_error(ErrorKind::kStepOverflow, 0, "step",
                 [&] { adamw_step(entries[0].parameters, entries[0].gradients, entries[0].state); });
    EXPECT_TRUE(gpu.log->calls.empty());
    EXPECT_EQ(guarded_adamw_step(entries, {}, {.skip_update = true}).skip_reason, SkipReason::kRequested);
    entries[0].state->step = kLast - 1;
    EXPECT_EQ(guarded_adamw_step(entries).entries[0].state->step, kLast);
}

TEST(StateRules, AnEmptyEntryMayBeAtTheLastStep) {
    const RecordedDevice gpu;
    std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F}), gpu.entry({}, {})};
    entries[1].state = gpu.state(std::numeric_limits<std::uint64_t>::max(), {}, {});
    const auto result = guarded_adamw_step(entries);
    EXPECT_EQ(result.entries[1].state->step, std::numeric_limits<std::uint64_t>::max());
    EXPECT_FALSE(result.entries[1].updated);
}

struct LimitCase {
    std::string name;
    std::function<void(DeviceProperties&)> lower;
    bool reduction_only;
};

TEST(DeviceRules, ADeviceBelowTheLimitsIsRefusedBeforeAnyCall) {
    const LimitCase cases[] = {
        {"threads in a block", [](DeviceProperties& p) { p.max_threads_per_block = 255; }, false},
        {"threads in x", [](DeviceProperties& p) { p.max_threads_in_x = 255; }, false},
        {"blocks in x", [](DeviceProperties& p) { p.max_blocks_in_x = 0; }, false},
        {"shared memory", [](DeviceProperties& p) { p.max_shared_bytes_per_block = 3071; }, true},
    };
    for (const LimitCase& limit : cases) {
        SCOPED_TRACE(limit.name);
        DeviceProperties properties = RecordedDevice().device->properties();
        limit.lower(properties);
        const RecordedDevice gpu(false, 1, {}, properties);
        const std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
        const std::vector<Tensor> gradients = {entries[0].gradients};
        gpu.forget_calls();
        expect_error(ErrorKind::kUnsupportedDevice, std::nullopt, "device", [&] { guarded_adamw_step(entries); });
        expect_error(ErrorKind::kUnsupportedDevice, std::nullopt, "device", [&] { gradient_stats_sync(gradients); });
        if (!limit.reduction_only) {
            expect_error(ErrorKind::kUnsupportedDevice, std::nullopt, "device",
                         [&] { adamw_step(entries[0].parameters, entries[0].gradients, std::nullopt); });
        }
        EXPECT_TRUE(gpu.log->calls.empty());
        if (limit.reduction_only) adamw_step(entries[0].parameters, entries[0].gradients, std::nullopt).wait();
        // Nothing to run: the limits do not matter.
        const std::vector<AdamWEntry> empty = {gpu.entry({}, {})};
        EXPECT_EQ(guarded_adamw_step(empty).skip_reason, SkipReason::kEmpty);
        EXPECT_EQ(guarded_adamw_step(entries, {}, {.skip_update = true}).skip_reason, SkipReason::kRequested);
    }
}

TEST(DeviceRules, ADeviceAtTheLimitsIsEnough) {
    const DeviceProperties least = {"least", 256, 256, 1, 3072};
    const RecordedDevice gpu(false, 1, {}, least);
    const std::vector<AdamWEntry> entries = {gpu.entry(std::vector<float>(5000, 1.0F), std::vector<float>(5000, 0.5F))};
    const auto result = guarded_adamw_step(entries);
    result.wait();
    EXPECT_EQ(result.report->reduction_launches, 1U);
    EXPECT_EQ(result.report->scratch_bytes, 12U);
}

}  // namespace
}  // namespace gradguard
