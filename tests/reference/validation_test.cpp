// SPDX-License-Identifier: Apache-2.0
// States, steps, device limits and the order of the checks (contract sections 2 and 3).
#include <gtest/gtest.h>
#include <limits>

#include "tests/reference/descriptions.h"

namespace gradguard::reference {
namespace {

using gradguard::testing::entry;

constexpr std::uint64_t kLastStep = std::numeric_limits<std::uint64_t>::max();

AdamWOptions with_amsgrad(bool amsgrad) {
    AdamWOptions options;
    options.amsgrad = amsgrad;
    return options;
}

std::optional<Violation> validate(const std::vector<EntryDescription>& entries, bool amsgrad = false,
                                  const StepControl& control = {}) {
    return validate_step(entries, with_amsgrad(amsgrad), control, GradientGuardOptions{});
}

// cases.csv A14
TEST(Validation, AStateHasCompletedAStep) {
    auto e = entry({4});
    e.state->step = 1;
    EXPECT_FALSE(validate({e}));
    e.state->step = 0;
    const auto violation = validate({entry({2}), e});
    ASSERT_TRUE(violation);
    EXPECT_EQ(violation->kind, ErrorKind::kInvalidState);
    EXPECT_EQ(violation->site.entry, 1U);
    EXPECT_EQ(violation->site.operand, "step");
    EXPECT_TRUE(validate({e}, false, {.skip_update = true}));
    auto empty = entry({0});
    empty.state->step = 0;
    EXPECT_TRUE(validate({empty}));
}

TEST(Validation, TheMaximumIsPresentExactlyWithAmsgrad) {
    for (const bool amsgrad : {false, true}) {
        EXPECT_FALSE(validate({entry({4}, amsgrad)}, amsgrad));
        EXPECT_FALSE(validate({entry({4}, amsgrad, true)}, amsgrad));
        const auto violation = validate({entry({4}, amsgrad), entry({4}, !amsgrad)}, amsgrad);
        ASSERT_TRUE(violation);
        EXPECT_EQ(violation->kind, ErrorKind::kInvalidState);
        EXPECT_EQ(violation->site.entry, 1U);
        EXPECT_EQ(violation->site.operand, "max_second_moment");
    }
}

// cases.csv A12
TEST(Validation, OnlyAnEntryThatWouldAdvanceOverflows) {
    auto e = entry({4});
    e.state->step = kLastStep - 1;
    EXPECT_FALSE(validate({e}));
    e.state->step = kLastStep;
    const auto violation = validate({entry({2}), e});
    ASSERT_TRUE(violation);
    EXPECT_EQ(violation->kind, ErrorKind::kStepOverflow);
    EXPECT_EQ(violation->site.entry, 1U);
    EXPECT_EQ(violation->site.operand, "step");
    EXPECT_FALSE(validate({entry({2}), e}, false, {.skip_update = true}));
    auto empty = entry({0});
    empty.state->step = kLastStep;
    EXPECT_FALSE(validate({entry({2}), empty}));
}

TEST(Validation, TheOrderIsOptionsControlGuardEntries) {
    auto bad_entry = entry({4});
    bad_entry.state->step = 0;
    AdamWOptions options;
    StepControl control;
    GradientGuardOptions guard;
    options.beta1 = 2.0F;
    control.gradient_scale = 0.0F;
    guard.max_norm = -1.0F;
    const std::vector<EntryDescription> entries = {entry({4}), bad_entry, bad_entry};
    EXPECT_EQ(validate_step(entries, options, control, guard)->site.operand, "beta1");
    options = {};
    EXPECT_EQ(validate_step(entries, options, control, guard)->site.operand, "gradient_scale");
    control = {};
    EXPECT_EQ(validate_step(entries, options, control, guard)->site.operand, "max_norm");
    EXPECT_EQ(validate_step(entries, options, control, nullptr)->site.entry, 1U);
    guard = {};
    EXPECT_EQ(validate_step(entries, options, control, guard)->site.entry, 1U);
}

TEST(Validation, SkippingChecksEverythingButTheStep) {
    const StepControl skip{.skip_update = true};
    EXPECT_TRUE(validate_step({}, {.learning_rate = -1.0F}, skip, GradientGuardOptions{}));
    EXPECT_TRUE(validate_step({}, {}, skip, GradientGuardOptions{.epsilon = 0.0F}));
    auto e = entry({4});
    e.gradients.layout.shape = {5};
    EXPECT_TRUE(validate({e}, false, skip));
}

TEST(Validation, AnEmptyGroupIsValid) { EXPECT_FALSE(validate({})); }

TEST(Validation, DeviceLimitsAreThoseOfTheReduction) {
    const DeviceLimits least{256, 256, 1, 3072};
    EXPECT_FALSE(check_limits(least));
    for (int row = 0; row < 4; ++row) {
        DeviceLimits limits = least;
        if (row == 0) limits.threads_per_block = 255;
        if (row == 1) limits.block_x = 255;
        if (row == 2) limits.grid_x = 0;
        if (row == 3) limits.shared_bytes = 3071;
        const auto violation = check_limits(limits);
        ASSERT_TRUE(violation) << row;
        EXPECT_EQ(violation->kind, ErrorKind::kUnsupportedDevice);
    }
}

}  // namespace
}  // namespace gradguard::reference
