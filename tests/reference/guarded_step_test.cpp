// SPDX-License-Identifier: Apache-2.0
// The guarded step as a pure function: contract section 2 and the rows of cases.csv that speak of whole steps.
#include "reference/model/guarded_step.h"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

#include "reference/contract/error.h"
#include "reference/fp64/decision.h"
#include "reference/model/statistics.h"
#include "tests/support/values.h"

namespace gradguard::reference {
namespace {

using gradguard::testing::f32;
using gradguard::testing::Gradient;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

HostEntry entry(std::vector<float> parameters, const Gradient& gradient) {
    return {std::move(parameters), gradient.dtype, gradient.bytes, std::nullopt};
}
HostEntry entry(float parameter, float gradient) { return entry({parameter}, f32({gradient})); }

/// A live entry of `n` elements with a state of `step` completed steps.
HostEntry aged(std::size_t n, std::uint64_t step, float gradient) {
    HostEntry e = entry(std::vector<float>(n, 1.0F), f32(std::vector<float>(n, gradient)));
    e.state = HostState{step, std::vector<float>(n, 0.25F), std::vector<float>(n, 0.5F), std::nullopt};
    return e;
}

HostGuardedUpdate step(const std::vector<HostEntry>& entries, const GradientGuardOptions& guard = {},
                       const StepControl& control = {}) {
    return guarded_step(entries, {}, control, guard);
}

bool same_values(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (bits_of(a[i]) != bits_of(b[i])) return false;
    }
    return true;
}

bool same_state(const std::optional<HostState>& a, const std::optional<HostState>& b) {
    if (a.has_value() != b.has_value()) return false;
    if (!a) return true;
    return a->step == b->step && same_values(a->first_moment, b->first_moment) &&
           same_values(a->second_moment, b->second_moment) &&
           a->max_second_moment.has_value() == b->max_second_moment.has_value() &&
           (!a->max_second_moment || same_values(*a->max_second_moment, *b->max_second_moment));
}

void expect_unchanged(const HostGuardedUpdate& result, const std::vector<HostEntry>& entries) {
    ASSERT_EQ(result.entries.size(), entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        EXPECT_FALSE(result.entries[i].updated);
        EXPECT_TRUE(same_values(result.entries[i].parameters, entries[i].parameters));
        EXPECT_TRUE(same_state(result.entries[i].state, entries[i].state));
    }
    EXPECT_EQ(result.clip_multiplier, 1.0F);
    EXPECT_EQ(result.update_launches, 0U);
}

template <class Action>
ErrorKind kind_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        return error.kind();
    }
    ADD_FAILURE() << "no error";
    return ErrorKind::kDeviceFailure;
}

TEST(GuardedStep, C09_OneNormAndOneClipForTheGroup) {
    const auto result = step({entry(1.0F, 3.0F), entry(1.0F, 4.0F)});
    ASSERT_TRUE(result.report);
    EXPECT_EQ(result.report->stats.total_norm, 5.0);
    EXPECT_EQ(bits_of(result.clip_multiplier), 0x3E4CCCCAU);
    EXPECT_EQ(result.update_launches, 2U);
    EXPECT_FALSE(result.skip_reason);
}

TEST(GuardedStep, A21_GoldenValues) {
    const auto result = step({entry(1.0F, 0.5F)});
    const HostUpdate& update = result.entries[0];
    EXPECT_TRUE(update.updated);
    EXPECT_EQ(bits_of(update.parameters[0]), 0x3F7FBE75U);
    EXPECT_EQ(bits_of(update.state->first_moment[0]), 0x3D4CCCD0U);
    EXPECT_EQ(bits_of(update.state->second_moment[0]), 0x39831200U);
    EXPECT_EQ(update.state->step, 1U);
    EXPECT_FALSE(update.state->max_second_moment);
}

TEST(GuardedStep, C01_C02_ZeroGradientsAdvanceTheState) {
    for (const float max_norm : {0.0F, 1.0F}) {
        const auto result = step({aged(4, 3, 0.0F)}, {.max_norm = max_norm});
        EXPECT_EQ(result.clip_multiplier, max_norm);
        EXPECT_EQ(result.entries[0].state->step, 4U);
        EXPECT_EQ(result.entries[0].state->first_moment[0], 0.9F * 0.25F);
        EXPECT_FALSE(is_nan(result.entries[0].parameters[0]));
    }
}

TEST(GuardedStep, N07_HugeGradientsAreClippedToTheLimit) {
    AdamWOptions options;
    options.beta1 = 0.0F;
    const auto result = guarded_step(
        std::vector{entry(std::vector<float>(100, 1.0F), f32(std::vector<float>(100, 1e20F)))}, options, {}, {});
    EXPECT_EQ(bits_of(result.clip_multiplier), 0x1C971DA0U);
    EXPECT_EQ(result.entries[0].state->first_moment[0], 1e20F * float_of(0x1C971DA0U));
}

TEST(GuardedStep, G03_AnInvalidScaleIsRefusedEvenWhenSkipping) {
    EXPECT_EQ(kind_of([] { (void)step({}, {}, {.gradient_scale = 0.0F, .skip_update = true}); }),
              ErrorKind::kInvalidOption);
}

TEST(GuardedStep, G06_G07_G09_G10_OneBadElementSkipsTheGroup) {
    for (const float scale : {1.0F, 1024.0F}) {
        for (const float bad : {kNaN, kInfinity, -kInfinity}) {
            const std::vector<HostEntry> entries = {aged(3, 7, 1.0F), entry(1.0F, 2.0F),
                                                    entry({1.0F, 1.0F}, f32({1.0F, bad}))};
            const auto result = step(entries, {}, {.gradient_scale = scale});
            expect_unchanged(result, entries);
            EXPECT_EQ(result.skip_reason, SkipReason::kNonFinite);
            ASSERT_TRUE(result.report);
            EXPECT_EQ(result.report->summaries[2].bad, 1.0F);
            EXPECT_EQ(result.report->summaries[0].bad, 0.0F);
        }
    }
}

TEST(GuardedStep, PolicyErrorThrows) {
    EXPECT_EQ(kind_of([] { (void)step({entry(1.0F, kNaN)}, {.nonfinite = NonFinitePolicy::kError}); }),
              ErrorKind::kNonFiniteGradients);
}

TEST(GuardedStep, G12_ASkippedStepLeavesNoTrace) {
    std::vector<HostEntry> run = {entry({1.0F, 1.0F}, f32({kNaN, 1.0F}))};
    const auto first = step(run);
    run[0].parameters = first.entries[0].parameters;
    run[0].state = first.entries[0].state;
    run[0].gradients = f32({1.0F, 1.0F}).bytes;
    const auto second = step(run);
    const auto alone = step({entry({1.0F, 1.0F}, f32({1.0F, 1.0F}))});
    EXPECT_TRUE(same_values(second.entries[0].parameters, alone.entries[0].parameters));
    EXPECT_TRUE(same_state(second.entries[0].state, alone.entries[0].state));
}

TEST(GuardedStep, G13_AGroupWithoutElementsIsEmpty) {
    for (const auto& entries : {std::vector<HostEntry>{}, {aged(0, 7, 0.0F), entry({}, f32({}))}}) {
        const auto result = step(entries);
        expect_unchanged(result, entries);
        EXPECT_EQ(result.skip_reason, SkipReason::kEmpty);
        EXPECT_FALSE(result.report);
    }
}

TEST(GuardedStep, ARequestedSkipComesBeforeEverythingElse) {
    const std::vector<HostEntry> entries = {entry(1.0F, kNaN),
                                            aged(2, std::numeric_limits<std::uint64_t>::max(), 1.0F)};
    const auto result = guarded_step(entries, {}, {.skip_update = true}, {}, DeviceLimits{});
    expect_unchanged(result, entries);
    EXPECT_EQ(result.skip_reason, SkipReason::kRequested);
    EXPECT_FALSE(result.report);
    EXPECT_EQ(guarded_step({}, {}, {.skip_update = true}, {}).skip_reason, SkipReason::kRequested);
}

TEST(GuardedStep, M01_M02_M04_EmptyEntriesStayAndTheOthersMove) {
    const std::vector<HostEntry> entries = {entry(1.0F, 0.5F), entry(1.0F, 0.5F), aged(0, 7, 0.0F), entry(1.0F, 0.5F),
                                            entry({}, f32({}))};
    const auto result = step(entries, {.max_norm = std::nullopt});
    for (const std::size_t i : {0U, 1U, 3U}) {
        EXPECT_TRUE(result.entries[i].updated);
        EXPECT_EQ(bits_of(result.entries[i].parameters[0]), 0x3F7FBE75U);
        EXPECT_EQ(result.entries[i].state->step, 1U);  // A17: once a step, not once a tensor
    }
    EXPECT_FALSE(result.entries[2].updated);
    EXPECT_EQ(result.entries[2].state->step, 7U);
    EXPECT_FALSE(result.entries[4].updated);
    EXPECT_FALSE(result.entries[4].state);
    EXPECT_EQ(result.report->stats.tensors, 5U);
    EXPECT_EQ(result.report->stats.elements, 3U);
    EXPECT_EQ(result.update_launches, 3U);
}

TEST(GuardedStep, A12_TheLastStepIsTakenAndTheNextRefused) {
    auto e = aged(2, std::numeric_limits<std::uint64_t>::max() - 1, 1.0F);
    EXPECT_EQ(step({e}).entries[0].state->step, std::numeric_limits<std::uint64_t>::max());
    e.state->step = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(kind_of([&] { (void)step({e}); }), ErrorKind::kStepOverflow);
}

TEST(GuardedStep, DeviceLimitsAreCheckedOnlyWhereTheReductionRuns) {
    EXPECT_EQ(kind_of([] { (void)guarded_step(std::vector{entry(1.0F, 1.0F)}, {}, {}, {}, DeviceLimits{}); }),
              ErrorKind::kUnsupportedDevice);
    EXPECT_EQ(guarded_step({}, {}, {}, {}, DeviceLimits{}).skip_reason, SkipReason::kEmpty);
}

TEST(GuardedStep, AmsgradKeepsTheUncorrectedMaximum) {
    AdamWOptions options;
    options.amsgrad = true;
    auto e = aged(1, 3, 0.0F);
    e.state->max_second_moment = std::vector<float>{0.75F};
    const auto result = guarded_step(std::vector{e}, options, {}, {});
    EXPECT_EQ((*result.entries[0].state->max_second_moment)[0], 0.75F);
    EXPECT_EQ(result.entries[0].state->second_moment[0], 0.999F * 0.5F);
}

TEST(GuardedStep, ItIsTheCompositionOfItsHalves) {
    const std::vector<HostEntry> entries = {aged(700, 3, 2.0F), entry(1.0F, -3.0F), aged(0, 5, 0.0F)};
    const auto whole = step(entries);
    std::vector<GradientView> gradients;
    for (const auto& e : entries) gradients.push_back(e.gradient_view());
    const auto decision = reference::decide(group_statistics(gradients, 1.0F).stats, {});
    const auto halves = clipped_adamw_step(decision, entries, {}, {});
    for (std::size_t i = 0; i < entries.size(); ++i) {
        EXPECT_TRUE(same_values(whole.entries[i].parameters, halves[i].parameters));
        EXPECT_TRUE(same_state(whole.entries[i].state, halves[i].state));
    }
    EXPECT_FALSE(clipped_adamw_step({1.0F, true}, entries, {}, {})[0].updated);
}

TEST(GuardedStep, WithoutClippingItIsTheUnguardedOperator) {
    const HostEntry e = aged(9, 3, 0.125F);
    const auto guarded = step({e}, {.max_norm = std::nullopt}).entries[0];
    const auto plain = adamw_step(e, {}, {});
    EXPECT_TRUE(same_values(guarded.parameters, plain.parameters));
    EXPECT_TRUE(same_state(guarded.state, plain.state));
}

TEST(GuardedStep, TheUnguardedOperatorLetsNonFiniteGradientsThrough) {
    const auto update = adamw_step(entry(1.0F, kNaN), {}, {});
    EXPECT_TRUE(update.updated);
    EXPECT_TRUE(is_nan(update.parameters[0]));
    EXPECT_FALSE(adamw_step(entry(1.0F, kNaN), {}, {.skip_update = true}).updated);
    EXPECT_EQ(kind_of([] { (void)adamw_step(entry({1.0F}, f32({1.0F, 2.0F})), {}, {}); }), ErrorKind::kShapeMismatch);
}

TEST(GuardedStep, ScaledGradientsAndScaleGiveTheSameBits) {
    std::vector<HostEntry> plain = {aged(300, 3, 0.3F)};
    std::vector<HostEntry> scaled = {aged(300, 3, 0.3F * 4096.0F)};
    const auto a = step(plain);
    const auto b = step(scaled, {}, {.gradient_scale = 4096.0F});
    EXPECT_EQ(a.clip_multiplier, b.clip_multiplier);
    EXPECT_TRUE(same_values(a.entries[0].parameters, b.entries[0].parameters));
    EXPECT_TRUE(same_state(a.entries[0].state, b.entries[0].state));
}

}  // namespace
}  // namespace gradguard::reference
