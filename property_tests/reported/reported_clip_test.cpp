// SPDX-License-Identifier: Apache-2.0
// Rows C* of cases.csv: the clip and the decision. Hexadecimal values are FP32 bit patterns.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "harness/subjects/library_subject.h"
#include "kernels/host/summary.h"
#include "property_tests/reported/reported_case.h"
#include "reference/fp64/summary_rules.h"

namespace gradguard::testing {
namespace {

using harness::Outcome;
using reference::bits_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A strong decay and old moments, so that each of the three moves visibly.
harness::Case zero_gradients(float max_norm) {
    const auto four = [](float value) { return std::vector<float>(4, value); };
    harness::Case c = guarded({entry_of(four(1.0F), f32(four(0.0F)), 3, four(0.25F), four(0.5F))});
    c.options.learning_rate = 0.1F;
    c.options.weight_decay = 0.1F;
    c.guard.max_norm = max_norm;
    return c;
}

TEST(Reported, C01_ZeroGradientsWithALimitOfZeroGiveNoNaN) {
    for (const float max_norm : {0.0F, 1.0F}) {
        on_every_subject(zero_gradients(max_norm), [&](const Outcome& outcome) {
            const harness::StepOutcome& step = outcome.steps[0];
            EXPECT_EQ(bits_of(step.clip_multiplier), bits_of(max_norm));  // 0.0 and 1.0
            const harness::OutcomeEntry& entry = step.entries[0];
            ASSERT_TRUE(entry.updated);
            EXPECT_EQ(entry.state->step, 4U);
            EXPECT_EQ(entry.state->first_moment, std::vector<float>(4, 0.9F * 0.25F));
            EXPECT_EQ(entry.state->second_moment, std::vector<float>(4, 0.999F * 0.5F));
            for (const float p : entry.parameters) EXPECT_LT(p, 0.99F);  // false for NaN
        });
        on_every_subject(shows_gradients({f32(std::vector<float>(4, 0.0F))}, max_norm), [](const Outcome& outcome) {
            const harness::OutcomeEntry& entry = outcome.steps[0].entries[0];
            EXPECT_EQ(entry.state->first_moment, std::vector<float>(4, 0.0F));  // the effective gradient
            EXPECT_EQ(entry.state->step, 1U);
        });
    }
}

TEST(Reported, C02_ZeroGradientsChangeTheParameterByDecayOnly) {
    harness::Case c = guarded({entry_of(f32({0.0F, 0.0F}))});
    c.options.learning_rate = 0.1F;
    c.options.weight_decay = 0.1F;
    on_every_subject(c, [](const Outcome& outcome) {
        EXPECT_EQ(outcome.steps[0].report.value().stats.total_norm, 0.0);
        EXPECT_EQ(outcome.steps[0].clip_multiplier, 1.0F);
        EXPECT_EQ(first_element(outcome.steps[0].entries[0]), (FirstElement{0x3F7D70A4, 0, 0}));
    });
}

TEST(Reported, C03_ANegativeLimitIsRefusedAndMinusZeroIsZero) {
    for (const float max_norm : {-1.0F, kNaN, kInfinity}) {
        expect_refused(shows_gradients({f32({3.0F})}, max_norm), ErrorKind::kInvalidOption, std::nullopt, "max_norm");
    }
    on_every_subject(shows_gradients({f32({3.0F})}, -0.0F), [](const Outcome& outcome) {
        EXPECT_EQ(bits_of(outcome.steps[0].clip_multiplier), 0U);
        EXPECT_EQ(outcome.steps[0].entries[0].state.value().first_moment[0], 0.0F);
    });
}

TEST(Reported, C05_AnInfiniteNormIsDecidedByBranches) {
    expect_bad({f32({kInfinity})});
    on_every_subject(shows_gradients({f32({kInfinity})}), [](const Outcome& outcome) {
        EXPECT_EQ(outcome.steps[0].report.value().stats.total_norm, HUGE_VAL);
        EXPECT_GE(outcome.steps[0].clip_multiplier, 0.0F);
        EXPECT_LE(outcome.steps[0].clip_multiplier, 1.0F);
    });
}

constexpr GradientSummary kCrafted[] = {
    {-1.0F, 1.0F, 0.0F},     {1.0F, -1.0F, 0.0F}, {kNaN, 1.0F, 0.0F}, {1.0F, kNaN, 0.0F}, {kInfinity, 1.0F, 0.0F},
    {1.0F, kInfinity, 0.0F}, {1.0F, 1.0F, 2.0F},  {0.0F, 1.0F, 0.0F}, {1.0F, 0.5F, 0.0F}, {1.0F, 1.0F, kNaN}};

/// The library with a device whose readback says `summary` of the second tensor.
std::unique_ptr<harness::Subject> with_crafted_summary(const GradientSummary& summary) {
    harness::LibraryRecipe recipe;
    recipe.name = "crafted summary";
    recipe.kernels = KernelSource::embedded(false);
    recipe.hooks = {std::make_shared<harness::TamperReadback>(
        [summary](auto& payload) { std::memcpy(payload.at(1).data(), &summary, 12); })};
    return make_library_subject(std::move(recipe), {});
}

TEST(Reported, C06_ASentinelInASummaryIsRefusedBeforeAnyUpdate) {
    static_assert(sizeof(GradientSummary) == 12);
    const harness::Case c = guarded({entry_of(f32({2.0F})), entry_of(f32({2.0F}))});
    for (const GradientSummary& summary : kCrafted) {
        const Outcome outcome = with_crafted_summary(summary)->step(c);
        const harness::StepOutcome& step = outcome.steps.at(0);
        ASSERT_TRUE(step.error) << summary.scale << " " << summary.sumsq << " " << summary.bad;
        EXPECT_EQ(to_string(step.error->kind), "InvalidSummary") << step.error->message;
        EXPECT_EQ(step.error->entry, 1U);
        EXPECT_EQ(step.update_launches, 0U);
        EXPECT_EQ(step.inputs_changed, std::vector<std::string>{});
        EXPECT_EQ(step.findings, std::vector<std::string>{});
    }
    // The hook alone changes nothing: what a right device says goes through it.
    const Outcome control = with_crafted_summary({2.0F, 1.0F, 0.0F})->step(c);
    EXPECT_FALSE(control.steps.at(0).error);
    EXPECT_EQ(control.steps.at(0).update_launches, 2U);
}

TEST(Reported, C06_ASentinelInASummaryLeavesTheTotalsUnchanged) {
    kernels::SummaryTotals library;
    reference::GroupTotals oracle;
    library.add(0, {3.0F, 1.0F, 0.0F}, 4);
    ASSERT_FALSE(oracle.add(4, {3.0F, 1.0F, 0.0F}));
    for (const GradientSummary& summary : kCrafted) {
        const auto violation = oracle.add(100, summary);
        ASSERT_TRUE(violation);
        EXPECT_EQ(to_string(violation->kind), "InvalidSummary");
        try {
            library.add(1, summary, 100);
            ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
            EXPECT_EQ(to_string(error.kind()), "InvalidSummary");
        }
    }
    for (const GradientStats& stats : {library.stats(1.0F), oracle.stats(1.0F)}) {
        EXPECT_EQ(stats.total_norm, 3.0);
        EXPECT_EQ(stats.max_finite_abs, 3.0F);
        EXPECT_EQ(stats.elements, 4U);
        EXPECT_EQ(stats.tensors, 1U);
        EXPECT_TRUE(stats.all_finite);
    }
}

TEST(Reported, C08_TheNormAndNotItsSquareIsHeldAgainstTheLimit) { expect_norm({f32({10.0F})}, 10.0, 0x3DCCCCCB); }

TEST(Reported, C09_TheGroupHasOneCoefficient) {
    // The row's 0.59999987 is the product of 3 and the coefficient before it is rounded: it lies halfway between two
    // FP32 numbers, and contract section 6 keeps g in FP32, so the even one is stored: 0x3F199998, 0.5999999.
    const float clip = reference::float_of(0x3E4CCCCA);
    char product[16];
    std::snprintf(product, sizeof product, "%.8g", 3.0 * double{clip});
    EXPECT_STREQ(product, "0.59999987");
    expect_norm({f32({3.0F}), f32({4.0F})}, 5.0, 0x3E4CCCCA, 1.0F, 1.0F,
                {reference::float_of(0x3F199998), 0.79999983F});
}

TEST(Reported, C10_ATensorPassedTwiceCountsTwice) {
    on_every_subject(statistics({f32({5.0F})}),
                     [](const Outcome& outcome) { EXPECT_EQ(outcome.steps[0].report.value().stats.total_norm, 5.0); });
    on_every_subject(statistics({f32({5.0F}), f32({5.0F})}), [](const Outcome& outcome) {
        EXPECT_EQ(outcome.steps[0].report.value().stats.total_norm, 7.0710678118654755);
    });
}

TEST(Reported, C11_ANaNNormPassesNoGuard) {
    for (const std::optional<float> max_norm : {std::optional(1.0F), std::optional<float>(), std::optional(0.0F)}) {
        expect_bad({f32({kNaN})}, 0.0F, max_norm);
    }
}

TEST(Reported, C12_TheClipIsOfUnscaledGradients) { expect_norm({f32({4.0F})}, 1.0, 0x3F800000, 2.0F, 4.0F, {1.0F}); }

TEST(Reported, C13_ALargeLossScaleDoesNotEnterTheClip) {
    expect_norm({f32({65536.0F})}, 1.0, 0x3F7FFFEF, 1.0F, 65536.0F, {reference::float_of(0x3F7FFFEF)});
}

}  // namespace
}  // namespace gradguard::testing
