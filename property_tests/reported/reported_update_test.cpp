// SPDX-License-Identifier: Apache-2.0
// Rows A* of cases.csv: the update. Hexadecimal values are FP32 bit patterns; a step is the unguarded operator where
// the row says nothing of the guard. No row's values here depend on whether the kernels were built with contraction.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "property_tests/reported/reported_case.h"
#include "reference/fp64/coefficients.h"

namespace gradguard::testing {
namespace {

using harness::Outcome;
using reference::bits_of;
using reference::float_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint64_t kLastStep = std::numeric_limits<std::uint64_t>::max();

harness::Case unguarded(const harness::CaseEntry& entry, const AdamWOptions& options = {}) {
    harness::Case c = guarded({entry});
    c.operation = harness::Operation::kUnguardedStep;
    c.options = options;
    return c;
}

/// The unguarded operator's first update of one element.
harness::Case first_step(float p, float g, const AdamWOptions& options) {
    return unguarded(entry_of({p}, f32({g})), options);
}

AdamWOptions options_of(float learning_rate, float weight_decay, float epsilon = 1e-5F) {
    AdamWOptions options;
    options.learning_rate = learning_rate;
    options.weight_decay = weight_decay;
    options.epsilon = epsilon;
    return options;
}

void expect_first_step(const harness::Case& c, const FirstElement& want) {
    on_every_subject(c, [&](const Outcome& outcome) {
        ASSERT_FALSE(outcome.steps[0].error);
        EXPECT_EQ(first_element(outcome.steps[0].entries.at(0)), want);
        EXPECT_EQ(outcome.steps[0].entries[0].state.value().step, 1U);
    });
}

TEST(Reported, A01_ALearningRateOfZeroLeavesTheParameterAndGivesNoNaN) {
    for (const float weight_decay : {0.0F, 1e-4F, 0.5F}) {
        expect_first_step(first_step(0.75F, 3.0F, options_of(0.0F, weight_decay)),
                          {0x3F400000, 0x3E99999C, 0x3C137440});
        expect_first_step(first_step(0.75F, 0.0F, options_of(0.0F, weight_decay)), {0x3F400000, 0, 0});
    }
    expect_first_step(first_step(0.75F, 3.0F, options_of(0x1p-149F, 1e-4F)), {0x3F400000, 0x3E99999C, 0x3C137440});
}

TEST(Reported, A02_ZeroMomentsGiveNoNaNHoweverSmallEpsilonIs) {
    for (const float epsilon : {1e-8F, 1e-30F}) {
        expect_first_step(first_step(0.75F, 0.0F, options_of(1e-3F, 0.0F, epsilon)), {0x3F400000, 0, 0});
    }
}

TEST(Reported, A04_DecayComesBeforeTheUpdate) {
    on_every_subject(first_step(1.0F, 1.0F, options_of(0.1F, 0.1F, 1e-8F)), [](const Outcome& outcome) {
        EXPECT_EQ(bits_of(outcome.steps[0].entries.at(0).parameters[0]), 0x3F63D70AU);
        EXPECT_NE(0x3F63D70AU, bits_of(0.891F));  // the wrong order
    });
}

TEST(Reported, A05_DecayIsDecoupledFromTheMoments) {
    expect_first_step(first_step(1.0F, 0.0F, options_of(0.1F, 0.1F)), {0x3F7D70A4, 0, 0});
}

TEST(Reported, A06_DecayCarriesTheLearningRate) {
    expect_first_step(first_step(1.0F, 0.0F, options_of(0.1F, 0.1F)), {0x3F7D70A4, 0, 0});
    EXPECT_NE(0x3F7D70A4U, bits_of(0.9F));  // without it
}

TEST(Reported, A07_ASmallDecayIsRoundedAsTheContractSays) {
    on_every_subject(first_step(1.0F, 0.0F, {}), [](const Outcome& outcome) {
        EXPECT_EQ(bits_of(outcome.steps[0].entries.at(0).coefficients.value().decay), 0x3F7FFFFEU);
        EXPECT_EQ(bits_of(outcome.steps[0].entries[0].parameters[0]), 0x3F7FFFFEU);
    });
    harness::Case none = first_step(1.0F, 0.0F, options_of(1e-4F, 1e-4F));
    none.later.assign(999, later({f32({0.0F})}));
    on_every_subject(none, [](const Outcome& outcome) {
        ASSERT_EQ(outcome.steps.size(), 1000U);
        EXPECT_EQ(outcome.steps[0].entries.at(0).coefficients.value().decay, 1.0F);
        EXPECT_EQ(outcome.steps.back().entries.at(0).state.value().step, 1000U);
        EXPECT_EQ(outcome.steps.back().entries[0].parameters[0], 1.0F);
    });
}

TEST(Reported, A09_TheMaximumIsOfTheUncorrectedMoment) {
    // The row's input is that of A08, which is not in the file. Gradients 1 and 0.01, beta2 0.5 and no decay give both
    // of its numbers: this one, and 0.99852107 with the maximum of the corrected moments.
    AdamWOptions options = options_of(1e-3F, 0.0F);
    options.beta2 = 0.5F;
    options.amsgrad = true;
    harness::Case c = first_step(1.0F, 1.0F, options);
    c.later = {later({f32({0.01F})})};
    on_every_subject(c, [](const Outcome& outcome) {
        EXPECT_EQ(bits_of(outcome.steps.at(1).entries.at(0).parameters[0]), 0x3F7F9806U);
        EXPECT_EQ(outcome.steps[1].entries[0].state.value().max_second_moment.value()[0], 0.5F);
    });
}

TEST(Reported, A11_TheStepIsNoFloat) {
    struct Row {
        std::uint64_t t;
        std::uint32_t beta2, inverse_bias2;
    };
    constexpr std::uint64_t kTwo24 = std::uint64_t{1} << 24U;
    const std::uint32_t common = bits_of(0.999F);
    for (const Row& row : {Row{kTwo24, 0x3F7FFFFF, 0x3FCA7E36}, Row{3 * kTwo24 / 2, 0x3F7FFFFF, 0x3FA4C386},
                           Row{2 * kTwo24, 0x3F7FFFFF, 0x3F9408C5}, Row{4 * kTwo24, 0x3F7FFFFF, 0x3F82635D},
                           Row{256, common, 0x408D9F11}, Row{257, common, 0x408D234B}}) {
        EXPECT_EQ(bits_of(reference::inverse_bias(float_of(row.beta2), row.t)), row.inverse_bias2);
        AdamWOptions options;
        options.beta2 = float_of(row.beta2);
        on_every_subject(unguarded(entry_of({1.0F}, f32({0.5F}), row.t - 1, {0.25F}, {0.5F}), options),
                         [&](const Outcome& outcome) {
                             const harness::OutcomeEntry& entry = outcome.steps[0].entries.at(0);
                             EXPECT_EQ(bits_of(entry.coefficients.value().inverse_bias2), row.inverse_bias2);
                             EXPECT_EQ(entry.state.value().step, row.t);
                         });
    }
}

TEST(Reported, A12_TheLastStepIsTakenAndNoneAfterIt) {
    const auto at = [](std::uint64_t step) { return entry_of({1.0F}, f32({0.5F}), step, {0.25F}, {0.5F}); };
    on_every_subject(guarded({at(kLastStep - 1)}), [](const Outcome& outcome) {
        ASSERT_FALSE(outcome.steps[0].error);
        const harness::OutcomeEntry& entry = outcome.steps[0].entries.at(0);
        EXPECT_EQ(entry.state.value().step, kLastStep);
        EXPECT_EQ(entry.coefficients.value().inverse_bias1, 1.0F);
        EXPECT_EQ(entry.coefficients.value().inverse_bias2, 1.0F);
    });
    expect_refused(guarded({at(kLastStep)}), ErrorKind::kStepOverflow, 0, "step");
    expect_refused(unguarded(at(kLastStep)), ErrorKind::kStepOverflow, 0, "step");
    // An empty entry would not advance.
    on_every_subject(guarded({entry_of(f32({0.5F})), entry_of({}, f32({}), kLastStep, {}, {})}),
                     [](const Outcome& outcome) {
                         ASSERT_FALSE(outcome.steps[0].error);
                         EXPECT_TRUE(outcome.steps[0].entries.at(0).updated);
                         EXPECT_FALSE(outcome.steps[0].entries.at(1).updated);
                         EXPECT_EQ(outcome.steps[0].entries[1].state.value().step, kLastStep);
                     });
}

TEST(Reported, A14_TheFirstStepIsStepOne) {
    on_every_subject(first_step(1.0F, 0.5F, {}), [](const Outcome& outcome) {
        const harness::OutcomeEntry& entry = outcome.steps[0].entries.at(0);
        EXPECT_EQ(entry.state.value().step, 1U);
        EXPECT_EQ(bits_of(entry.coefficients.value().inverse_bias1), bits_of(reference::inverse_bias(0.9F, 1)));
        EXPECT_TRUE(std::isfinite(entry.parameters[0]));
    });
    expect_refused(guarded({entry_of({1.0F}, f32({0.5F}), 0, {0.0F}, {0.0F})}), ErrorKind::kInvalidState, 0, "step");
}

TEST(Reported, A15_TwoBetasGiveTwoSecondMoments) {
    struct Row {
        float beta2;
        const char* v;
    };
    for (const Row& row : {Row{0.999F, "0.00099998713"}, Row{0.9999F, "0.00010001659"}}) {
        AdamWOptions options;
        options.beta2 = row.beta2;
        on_every_subject(first_step(1.0F, 1.0F, options), [&](const Outcome& outcome) {
            char v[24];
            std::snprintf(v, sizeof v, "%.8g", double{outcome.steps[0].entries.at(0).state.value().second_moment[0]});
            EXPECT_STREQ(v, row.v);
        });
    }
}

TEST(Reported, A17_EveryEntryAdvancesByOneStep) {
    const auto fresh = entry_of(f32({0.5F}));
    on_every_subject(guarded({fresh, fresh, fresh}), [](const Outcome& outcome) {
        ASSERT_EQ(outcome.steps[0].entries.size(), 3U);
        for (const harness::OutcomeEntry& entry : outcome.steps[0].entries) EXPECT_EQ(entry.state.value().step, 1U);
    });
}

TEST(Reported, A18_AHugeGradientFreezesAnElementUnlessItIsClipped) {
    harness::Case c = guarded({entry_of(f32({1e20F}))});
    c.guard.max_norm = std::nullopt;
    expect_first_step(c, {0x3F7FFFFE, 0x5F0AC725, bits_of(kInfinity)});
    c.later.assign(3, later({f32({1.0F})}));
    on_every_subject(c, [](const Outcome& outcome) {
        for (std::size_t i = 1; i < 4; ++i) {
            const harness::OutcomeEntry& entry = outcome.steps.at(i).entries.at(0);
            EXPECT_EQ(entry.state.value().second_moment[0], kInfinity);
            EXPECT_EQ(entry.parameters[0], outcome.steps[i - 1].entries[0].parameters[0] * float_of(0x3F7FFFFE));
        }
    });
    const harness::Case clipped = guarded({entry_of(f32({1e20F}))});
    on_every_subject(clipped, [](const Outcome& outcome) {
        EXPECT_EQ(bits_of(outcome.steps[0].clip_multiplier), 0x1E3CE508U);
        const FirstElement element = first_element(outcome.steps[0].entries.at(0));
        EXPECT_EQ(element.p, 0x3F7FBE75U);
        EXPECT_EQ(element.v, 0x3A831200U);
    });
}

TEST(Reported, A19_ABetaOutsideZeroToOneIsRefused) {
    for (const float beta : {1.0F, -0.1F, kNaN}) {
        AdamWOptions first, second;
        first.beta1 = beta;
        second.beta2 = beta;
        expect_refused(first_step(1.0F, 0.5F, first), ErrorKind::kInvalidOption, std::nullopt, "beta1");
        expect_refused(first_step(1.0F, 0.5F, second), ErrorKind::kInvalidOption, std::nullopt, "beta2");
    }
    AdamWOptions none;
    none.beta1 = 0.0F;
    none.beta2 = 0.0F;
    on_every_subject(unguarded(entry_of({1.0F}, f32({3.0F}), 4, {7.0F}, {8.0F}), none), [](const Outcome& outcome) {
        const harness::OutcomeEntry& entry = outcome.steps[0].entries.at(0);
        EXPECT_EQ(entry.state.value().first_moment[0], 3.0F);
        EXPECT_EQ(entry.state.value().second_moment[0], 9.0F);
    });
}

TEST(Reported, A21_TheBaselineHasItsGoldenValues) {
    expect_first_step(first_step(1.0F, 0.5F, {}), {0x3F7FBE75, 0x3D4CCCD0, 0x39831200});
    AdamWOptions maximize;
    maximize.maximize = true;
    expect_first_step(first_step(1.0F, 0.5F, maximize), {0x3F8020C3, 0xBD4CCCD0, 0x39831200});
    expect_first_step(guarded({entry_of(f32({0.5F}))}), {0x3F7FBE75, 0x3D4CCCD0, 0x39831200});
}

}  // namespace
}  // namespace gradguard::testing
