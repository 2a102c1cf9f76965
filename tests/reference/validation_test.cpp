// SPDX-License-Identifier: Apache-2.0
// States, steps, device limits and the order of the checks (contract sections 2 and 3).
#include <gtest/gtest.h>
#include <limits>
#include <string>

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

/// "kind operand" of each.
std::vector<std::string> found(const std::vector<EntryDescription>& entries, const AdamWOptions& options = {},
                               const StepControl& control = {}, const GradientGuardOptions& guard = {}) {
    std::vector<std::string> texts;
    for (const Violation& violation : violations_at_first_place(entries, options, control, &guard)) {
        const std::string entry = violation.site.entry ? std::to_string(*violation.site.entry) + " " : "";
        texts.push_back(std::string(to_string(violation.kind)) + " " + entry + violation.site.operand);
    }
    return texts;
}

TEST(Validation, AllThatIsWrongAtTheFirstPlaceIsFoundAndNothingElsewhere) {
    using Texts = std::vector<std::string>;
    EXPECT_EQ(found({entry({4}), entry({2})}), Texts());
    auto bad = entry({4}, true);
    bad.gradients.layout.byte_offset = 2;
    bad.gradients.queue = 7;
    bad.state->second_moment = gradguard::testing::dense({5});
    bad.state->step = kLastStep;
    auto later = entry({4});
    later.parameters.layout.byte_offset = 1;
    EXPECT_EQ(found({entry({4}), bad, later}),
              Texts({"InvalidTensor 1 gradients", "DifferentExecutionQueue 1 gradients",
                     "ShapeMismatch 1 second_moment", "InvalidState 1 max_second_moment", "StepOverflow 1 step"}));
    AdamWOptions options;
    options.beta1 = 1.0F;
    options.epsilon = 0.0F;
    EXPECT_EQ(found({bad}, options, {.gradient_scale = 0.0F}), Texts({"InvalidOption beta1", "InvalidOption epsilon"}));
    EXPECT_EQ(found({bad}, {}, {.gradient_scale = 0.0F}, {.epsilon = 0.0F}).front(), "InvalidOption gradient_scale");
    EXPECT_EQ(found({bad}, {}, {}, {.epsilon = 0.0F}), Texts({"InvalidOption guard_epsilon"}));
}

TEST(Validation, TheFirstOfAllIsTheOneThatIsReported) {
    auto bad = entry({4});
    bad.state->step = 0;
    bad.state->first_moment.queue = 3;
    const auto all = violations_at_first_place(std::vector{bad}, {}, {}, nullptr);
    const auto first = validate_step(std::vector{bad}, {}, {}, nullptr);
    ASSERT_EQ(all.size(), 2U);
    ASSERT_TRUE(first);
    EXPECT_EQ(all[0].message, first->message);
    EXPECT_EQ(all[0].kind, first->kind);
}

}  // namespace
}  // namespace gradguard::reference
