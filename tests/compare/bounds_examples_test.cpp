// SPDX-License-Identifier: Apache-2.0
// The examples of harness/compare/BOUNDS.md: inputs that attain a bound.
#include <gtest/gtest.h>
#include <cmath>
#include <vector>

#include "harness/compare/enclosure.h"
#include "harness/compare/measure.h"
#include "harness/compare/norm_bound.h"
#include "reference/model/statistics.h"
#include "tests/support/values.h"

namespace gradguard::harness {
namespace {

using reference::ElementState;

struct Example {
    float raw;
    ElementState<float> old;
    AdamWOptions options;
    float gradient_scale;
    std::uint64_t completed_steps;
};

// Found by `gradguard hunt` without contraction.
const Example kWorstM{0x1.261108p-1F,
                      {-0x1.9c584cp-4F, 0x1.203cfap-4F, 0x1.c0ea18p+16F, 0.0F},
                      {0x1.fd44cep-3F, 0x1.c816cap-1F, 0x1.0e4472p-17F, 0x1.ed443p-10F, 0x1.0a6c8ap-8F},
                      1.0F,
                      102};
const Example kWorstV{0x1.056754p+3F,
                      {0x1.dcfce2p+0F, 0x1.d64a52p+11F, 0x1.55249ep+4F, 0.0F},
                      {0x1.0bdcp+0F, 0x1.8e5d72p-11F, 0x1.8462e6p-1F, 0x1.ee8d9ap-25F, 0x1.d8ffdep-5F},
                      1.0F,
                      174};
const Example kWorstP{0x1.a4c96ap+8F,
                      {-0x1.6d8e4cp-5F, -0x1.0cb4dp+3F, 0x1.3f5db4p+4F, 0.0F},
                      {0x1.848b5cp-2F, 0x1.0458eap-1F, 0x1.d04ce8p-1F, 0x1.01cc2cp-79F, 0.0F},
                      0x1.940816p+5F,
                      176};

/// The share of the interval that the uncontracted result of an example uses.
template <class Part>
double used(const Example& e, Part part) {
    const auto c =
        reference::update_coefficients(e.options, {.gradient_scale = e.gradient_scale}, 1.0F, e.completed_steps + 1);
    const Centre centre = centre_of(e.raw, e.old, reference::line_coefficients<double>(c));
    EXPECT_TRUE(centre.balanced);
    const Within found = within(part(reference::update_element(e.raw, e.old, c)), part(intervals(e.raw, e.old, c, {})),
                                part(centre.exact));
    EXPECT_TRUE(found.ok);
    return found.fraction;
}

TEST(Bounds, TheIntervalIsNearlyFilled) {
    EXPECT_GE(used(kWorstM, [](const auto& state) { return state.m; }), 0.995);
    EXPECT_GE(used(kWorstV, [](const auto& state) { return state.v; }), 0.978);
    EXPECT_GE(used(kWorstP, [](const auto& state) { return state.p; }), 0.888);
}

TEST(Bounds, AFlushedInputIsScaledUp) {
    AdamWOptions options;
    const auto c = reference::update_coefficients(options, {.gradient_scale = 0x1p-100F}, 1.0F, 1);
    Abilities flushing;
    flushing.flushes = true;
    const Interval m = intervals(0x1p-127F, {1.0F}, c, flushing).m;
    EXPECT_EQ(m.lo, 0.0);
    EXPECT_TRUE(within(0.0F, m, 0.0).ok);
    EXPECT_TRUE(within(c.one_minus_beta1 * 0x1p-27F, m, 0.0).ok);
    EXPECT_GT(c.one_minus_beta1 * 0x1p-27F, 0x1p-31F);  // far above any absolute term
    EXPECT_FALSE(within(0.0F, intervals(0x1p-127F, {1.0F}, c, {}).m, 0.0).ok);
}

TEST(Bounds, StagnationUsesAFifthOfTheBoundForAnyOrder) {
    constexpr std::size_t kElements = 100000;
    std::vector<float> values(kElements, 0x1p-12F);
    values[0] = 1.0F;
    float sum = 0.0F;
    for (const float value : values) sum += value * value;
    EXPECT_EQ(sum, 1.0F);
    const auto gradient = gradguard::testing::f32(values);
    const double exact = reference::exact_scan(gradient.view(), 1.0F).sum.root();
    const double share = std::fabs(std::sqrt(sum) - exact) / any_order_bound(exact, kElements, 1, 1.0F, false);
    EXPECT_LE(share, 1.0);
    EXPECT_GE(share, 0.19);
}

TEST(Bounds, TheWorstTreeLosesEightUnits) {
    std::vector<float> values(256, 0.0F);
    values[0] = 1.0F;
    for (std::size_t position = 1; position <= 128; position *= 2) values[position] = 0x1p-12F;
    const auto gradient = gradguard::testing::f32(values);
    EXPECT_EQ(reference::tree_summary(gradient.view(), 1.0F).sumsq, 1.0F);
    EXPECT_EQ(reference::exact_scan(gradient.view(), 1.0F).sum.value(), 1.0 + 8 * 0x1p-24);
}

}  // namespace
}  // namespace gradguard::harness
