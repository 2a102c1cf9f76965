// SPDX-License-Identifier: Apache-2.0
// Rows G* of cases.csv: the loss scale, and steps that are skipped. Hexadecimal values are FP32 bit patterns.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "property_tests/reported/reported_case.h"
#include "reference/fp64/coefficients.h"
#include "reference/fp64/decision.h"

namespace gradguard::testing {
namespace {

using harness::Outcome;
using harness::OutcomeEntry;
using reference::bits_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

/// Every entry of a group that was not updated: parameters as given, and the state of aged() where there was one.
void expect_unchanged(const Outcome& outcome, const harness::Case& c) {
    ASSERT_EQ(outcome.steps[0].entries.size(), c.entries.size());
    for (std::size_t i = 0; i < c.entries.size(); ++i) {
        SCOPED_TRACE("entry " + std::to_string(i));
        const OutcomeEntry& entry = outcome.steps[0].entries[i];
        const std::size_t n = entry.parameters.size();
        EXPECT_FALSE(entry.updated);
        EXPECT_EQ(entry.parameters, std::vector<float>(n, 1.0F));
        ASSERT_EQ(entry.state.has_value(), c.entries[i].state.has_value());
        if (!entry.state) continue;
        EXPECT_EQ(entry.state->step, c.entries[i].state->step);
        EXPECT_EQ(entry.state->first_moment, std::vector<float>(n, 0.25F));
        EXPECT_EQ(entry.state->second_moment, std::vector<float>(n, 0.5F));
    }
}

/// An entry of parameters 1 after 7 steps.
harness::CaseEntry aged(const std::vector<float>& gradient) {
    const std::size_t n = gradient.size();
    return entry_of(std::vector<float>(n, 1.0F), f32(gradient), 7, std::vector<float>(n, 0.25F),
                    std::vector<float>(n, 0.5F));
}

/// The group is skipped for its non-finite values, with a report, and nothing in it changes.
void expect_skipped(const harness::Case& c) {
    on_every_subject(c, [&](const Outcome& outcome) {
        EXPECT_EQ(outcome.steps[0].skip_reason, SkipReason::kNonFinite);
        ASSERT_TRUE(outcome.steps[0].report);
        EXPECT_EQ(outcome.steps[0].report->stats.total_norm, HUGE_VAL);
        expect_unchanged(outcome, c);
    });
}

TEST(Reported, G01_AFiniteValueThatUnscalesToInfinityIsBad) {
    expect_bad({f32({3e38F})}, 0.0F, 1.0F, 0.5F);
    expect_bad({bf16({reference::float_of(0x7F7F0000)})}, 0.0F, 1.0F, 0.5F);
    expect_bad({f16({65504.0F})}, 0.0F, 1.0F, 0x1p-113F);
    const double norm = 3.4011621342146535e38;
    expect_norm({f16({65504.0F})}, norm, bits_of(reference::clip_multiplier(norm, {})), 1.0F, 0x1p-112F);
}

TEST(Reported, G02_ALossScaleWithoutAReciprocalIsRefused) {
    for (const float scale : {0.0F, -1.0F, kNaN, kInfinity, 0x1p-149F, 0x1p-128F}) {
        expect_refused(shows_gradients({f32({1.0F})}, 1.0F, scale), ErrorKind::kInvalidOption, std::nullopt,
                       "gradient_scale");
    }
    struct Row {
        float scale;
        std::uint32_t r;
    };
    for (const Row& row :
         {Row{0x1p-127F, 0x7F000000}, Row{0x1p126F, 0x00800000}, Row{0x1p127F, 0x00400000}, Row{kMax, 0x00200000}}) {
        EXPECT_EQ(bits_of(reference::reciprocal_scale(row.scale)), row.r);
        on_every_subject(shows_gradients({f32({1.0F})}, std::nullopt, row.scale), [&](const Outcome& outcome) {
            ASSERT_FALSE(outcome.steps[0].error);
            const OutcomeEntry& entry = outcome.steps[0].entries.at(0);
            ASSERT_TRUE(entry.coefficients);
            EXPECT_EQ(bits_of(entry.coefficients->r), row.r);
            EXPECT_EQ(bits_of(entry.state.value().first_moment[0]), row.r);  // 1 * r
        });
    }
}

TEST(Reported, G03_ALossScaleOfZeroIsRefusedEvenWhenSkipping) {
    harness::Case c = shows_gradients({f32({1.0F})}, 1.0F, 0.0F);
    c.control.skip_update = true;
    expect_refused(c, ErrorKind::kInvalidOption, std::nullopt, "gradient_scale");
}

TEST(Reported, G05_AValueThatUnscalesToZeroIsAZero) {
    expect_norm({f32({0x1p-126F})}, 0.0, 0x3F800000, 1.0F, 0x1p30F, {0.0F});
}

TEST(Reported, G06_AnInfinityIsSeenWithoutALossScale) { expect_skipped(guarded({aged({kInfinity}), aged({1.0F})})); }

TEST(Reported, G07_ANaNLeavesEveryParameterAlone) {
    for (const float scale : {1.0F, 1024.0F}) expect_bad({f32({1.0F, kNaN})}, 1.0F / scale, 1.0F, scale);
}

TEST(Reported, G09_EveryTensorIsCheckedToItsLastElement) {
    expect_skipped(guarded({aged({1.0F, 2.0F}), aged({3.0F}), aged({kNaN})}));
    std::vector<float> last(2050, 1.0F);
    last.back() = kNaN;
    expect_skipped(guarded({aged({1.0F, 2.0F}), aged({3.0F}), aged(last)}));
}

TEST(Reported, G10_ASkippedStepIsReported) {
    const harness::Case c = guarded({aged({kNaN})});
    expect_skipped(c);
    on_every_subject(c, [](const Outcome& outcome) {
        EXPECT_EQ(outcome.steps[0].report.value().summaries.at(0).bad, 1.0F);
        EXPECT_EQ(outcome.steps[0].entries[0].state.value().step, 7U);
    });
}

TEST(Reported, G12_ASkippedStepLeavesNoTrace) {
    harness::Case both = guarded({entry_of(f32({kNaN, 1.0F}))});
    both.later = {later({f32({1.0F, 1.0F})})};
    std::vector<OutcomeEntry> after, alone;
    on_every_subject(both, [&](const Outcome& outcome) {
        EXPECT_EQ(outcome.steps.at(0).skip_reason, SkipReason::kNonFinite);
        EXPECT_FALSE(outcome.steps.at(1).skip_reason);
        after.push_back(outcome.steps.at(1).entries.at(0));
    });
    on_every_subject(guarded({entry_of(f32({1.0F, 1.0F}))}),
                     [&](const Outcome& outcome) { alone.push_back(outcome.steps.at(0).entries.at(0)); });
    ASSERT_EQ(after.size(), 3U);
    ASSERT_EQ(alone.size(), 3U);
    for (std::size_t i = 0; i < after.size(); ++i) {
        EXPECT_EQ(after[i].state.value().step, 1U);
        EXPECT_EQ(alone[i].state.value().step, 1U);
        EXPECT_EQ(first_element(after[i]), first_element(alone[i]));
        EXPECT_EQ(after[i].parameters, alone[i].parameters);
        EXPECT_EQ(after[i].state->first_moment, alone[i].state->first_moment);
        EXPECT_EQ(after[i].state->second_moment, alone[i].state->second_moment);
    }
}

TEST(Reported, G13_AGroupWithoutElementsIsEmptyAndUnchanged) {
    for (const auto& entries : {std::vector<harness::CaseEntry>{}, {aged({}), entry_of(f32({}))}}) {
        const harness::Case c = guarded(entries);
        on_every_subject(c, [&](const Outcome& outcome) {
            EXPECT_EQ(outcome.steps[0].skip_reason, SkipReason::kEmpty);
            EXPECT_FALSE(outcome.steps[0].report);
            expect_unchanged(outcome, c);
        });
    }
}

TEST(Reported, G15_UnscalingMultipliesByTheReciprocal) {
    struct Row {
        float raw, scale;
        std::uint32_t product, quotient;
    };
    for (const Row& row : {Row{5.0F, 3.0F, 0x3FD55556, 0x3FD55555}, Row{9.0F, 10.0F, 0x3F666667, 0x3F666666}}) {
        EXPECT_EQ(bits_of(row.raw / row.scale), row.quotient);  // what a division would give
        on_every_subject(statistics({f32({row.raw})}, row.scale), [&](const Outcome& outcome) {
            EXPECT_EQ(bits_of(outcome.steps[0].report.value().stats.max_finite_abs), row.product);
        });
    }
}

}  // namespace
}  // namespace gradguard::testing
