// SPDX-License-Identifier: Apache-2.0
// The interval holds whatever rounding, contraction, regrouping or flushing may give, and no wrong line.
#include "harness/compare/interval.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <limits>

#include "harness/compare/enclosure.h"
#include "tests/compare/elements.h"
#include "tests/support/property.h"

namespace gradguard::harness {
namespace {

using gradguard::testing::Element;
using gradguard::testing::Words;
using reference::ElementState;
using reference::float_of;
using reference::step_ulps;

const gradguard::testing::FixedRapidCheckSeed kSeed;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Once = RoundedInterval<1, false>;

bool inside(const ElementState<float>& stored, const ElementIntervals& all) {
    return within(stored.p, all.p, 0.0).ok && within(stored.m, all.m, 0.0).ok && within(stored.v, all.v, 0.0).ok &&
           within(stored.x, all.x, 0.0).ok;
}
Abilities abilities_of(bool reassociates, bool flushes, Contraction contraction = Contraction::kAllowed) {
    Abilities abilities;
    abilities.reassociates = reassociates;
    abilities.flushes = flushes;
    abilities.contraction = contraction;
    return abilities;
}
bool covers(const Interval& outer, const Hull& inner) {
    const bool numbers = !(inner.lo <= inner.hi) || (outer.lo <= inner.lo && inner.hi <= outer.hi);
    return numbers && (outer.may_be_nan || !inner.may_be_nan);
}
bool covers(const Interval& outer, const Interval& inner) {
    const bool numbers = inner.holds_no_number() || (outer.lo <= inner.lo && inner.hi <= outer.hi);
    return numbers && (outer.may_be_nan || !inner.may_be_nan);
}

TEST(Interval, TwoMillionElementsOfEveryClassHaveNoFalseRejection) {
    Words words(20240229);
    for (int i = 0; i < 2000000; ++i) {
        const Element e = gradguard::testing::any_element(words, i % 2 == 0);
        const auto all = intervals(e.raw, e.old, e.c, abilities_of(false, false));
        const ElementState<float> stored = gradguard::testing::contracted(e, i % 27);
        ASSERT_TRUE(inside(stored, all)) << "element " << i << " contracted in way " << i % 27;
    }
}

TEST(Interval, HoldsTheHullAndEachAbilityOnlyAdds) {
    Words words(7);
    for (int i = 0; i < 200000; ++i) {
        const Element e = gradguard::testing::any_element(words, i % 2 == 0);
        const ElementHulls hulls = legal_hulls(e.raw, e.old, e.c);
        const auto plain = intervals(e.raw, e.old, e.c, abilities_of(false, false));
        ASSERT_TRUE(covers(plain.p, hulls.p) && covers(plain.m, hulls.m) && covers(plain.v, hulls.v) &&
                    covers(plain.x, hulls.x))
            << i;
        const auto regrouped = intervals(e.raw, e.old, e.c, abilities_of(true, false));
        const auto flushed = intervals(e.raw, e.old, e.c, abilities_of(false, true));
        const auto both = intervals(e.raw, e.old, e.c, abilities_of(true, true));
        ASSERT_TRUE(covers(regrouped.p, plain.p) && covers(flushed.p, plain.p) && covers(both.p, regrouped.p) &&
                    covers(both.p, flushed.p))
            << i;
        const auto uncontracted = intervals(e.raw, e.old, e.c, abilities_of(false, false, Contraction::kForbidden));
        ASSERT_TRUE(covers(plain.p, uncontracted.p)) << i;
        ASSERT_TRUE(inside(gradguard::testing::contracted(e, 0), uncontracted)) << i;
    }
}

/// A subnormal as zero where `flush` says so.
float flushed(float x, bool flush) {
    return flush && reference::classify(x) == reference::FloatClass::kSubnormal ? 0.0F : x;
}

TEST(Interval, AdmitsFlushingWhereItIsDeclared) {
    Words words(11);
    int differs = 0;
    for (int i = 0; i < 300000; ++i) {
        Element e = gradguard::testing::any_element(words, false);
        const auto c = e.c;
        const auto f = [&](float x) { return flushed(x, true); };
        // Every operand and every result flushed.
        float g = f(f(e.raw) * f(c.r));
        if (c.clip != 1.0F) g = f(g * f(c.clip));
        if (c.maximize) g = -g;
        ElementState<float> got;
        got.m = f(f(f(c.beta1) * f(e.old.m)) + f(f(c.one_minus_beta1) * g));
        got.v = f(f(f(c.beta2) * f(e.old.v)) + f(f(c.one_minus_beta2) * f(g * g)));
        const float x = c.amsgrad ? reference::maximum(f(e.old.x), got.v) : got.v;
        got.x = c.amsgrad ? x : 0.0F;
        const float denominator = f(f(std::sqrt(f(x * f(c.inverse_bias2)))) + f(c.epsilon));
        const float ratio = f(f(got.m * f(c.inverse_bias1)) / denominator);
        got.p = f(f(f(e.old.p) * f(c.decay)) - f(f(c.learning_rate) * ratio));
        ASSERT_TRUE(inside(got, intervals(e.raw, e.old, e.c, abilities_of(false, true)))) << i;
        if (!inside(got, intervals(e.raw, e.old, e.c, abilities_of(false, false)))) ++differs;
    }
    EXPECT_GT(differs, 1000);  // and it is not admitted where it is not declared
}

TEST(Interval, AdmitsOtherPeoplesGroupingWhereItIsDeclared) {
    Words words(13);
    for (int i = 0; i < 300000; ++i) {
        const Element e = gradguard::testing::ordinary_element(words);
        const auto& c = e.c;
        const float g = (c.maximize ? -e.raw : e.raw) * (c.r * c.clip);
        ElementState<float> got;
        got.m = e.old.m + c.one_minus_beta1 * (g - e.old.m);  // beta1 + (1 - beta1) is exactly 1 for beta1 >= 0.5
        got.v = e.old.v * c.beta2 + (c.one_minus_beta2 * g) * g;
        const float x = c.amsgrad ? std::max(e.old.x, got.v) : got.v;
        got.x = c.amsgrad ? x : 0.0F;
        const float root = std::sqrt(x) * std::sqrt(c.inverse_bias2);
        got.p = e.old.p * c.decay - ((c.learning_rate * c.inverse_bias1) * got.m) / (root + c.epsilon);
        ASSERT_TRUE(inside(got, intervals(e.raw, e.old, e.c, abilities_of(true, false)))) << i;
    }
}

TEST(Interval, WrongLinesAreOutside) {
    Element e;
    AdamWOptions options;
    options.epsilon = 0.5F;
    options.weight_decay = 0.3F;
    options.learning_rate = 0.1F;
    e.c = reference::update_coefficients(options, {.gradient_scale = 8.0F}, 0.3F, 5);
    e.raw = 4.0F;
    e.old = {1.25F, 0.25F, 0.5F, 0.0F};
    const auto& c = e.c;
    const ElementState<float> right = gradguard::testing::contracted(e, 0);
    const auto p_of = [&](float numerator, float denominator) {
        return e.old.p * c.decay - c.learning_rate * (numerator / denominator);
    };
    const float root = std::sqrt(right.v * c.inverse_bias2);
    const float numerator = right.m * c.inverse_bias1;
    const float g = e.raw * c.r * c.clip;
    const auto with = [&](auto change) {
        ElementState<float> wrong = right;
        change(wrong);
        return wrong;
    };
    const std::pair<const char*, ElementState<float>> rows[] = {
        {"epsilon inside the root",
         with([&](auto& s) { s.p = p_of(numerator, std::sqrt(right.v * c.inverse_bias2 + c.epsilon)); })},
        {"epsilon before the bias correction",
         with([&](auto& s) { s.p = p_of(numerator, (std::sqrt(right.v) + c.epsilon) * std::sqrt(c.inverse_bias2)); })},
        {"no bias correction", with([&](auto& s) { s.p = p_of(right.m, std::sqrt(right.v) + c.epsilon); })},
        {"decay after the update",
         with([&](auto& s) { s.p = (e.old.p - c.learning_rate * (numerator / (root + c.epsilon))) * c.decay; })},
        {"no decay", with([&](auto& s) { s.p = e.old.p - c.learning_rate * (numerator / (root + c.epsilon)); })},
        {"not clipped", with([&](auto& s) { s.m = c.beta1 * e.old.m + c.one_minus_beta1 * (e.raw * c.r); })},
        {"unscaled twice", with([&](auto& s) { s.m = c.beta1 * e.old.m + c.one_minus_beta1 * (g * c.r); })},
        {"square of v's g left out", with([&](auto& s) { s.v = c.beta2 * e.old.v + c.one_minus_beta2 * g; })},
        {"nothing happened to p", with([&](auto& s) { s.p = e.old.p; })},
        {"NaN", with([&](auto& s) { s.p = kNaN; })},
        {"infinity", with([&](auto& s) { s.v = kInfinity; })}};
    for (const auto& [what, wrong] : rows) {
        for (const bool reassociates : {false, true}) {
            for (const bool flushes : {false, true}) {
                EXPECT_FALSE(inside(wrong, intervals(e.raw, e.old, e.c, abilities_of(reassociates, flushes)))) << what;
            }
        }
    }
    EXPECT_TRUE(inside(right, intervals(e.raw, e.old, e.c, abilities_of(false, false))));
}

// Unfused the second product overflows; fused with a sum of the other sign the result is finite. Both are legal.
TEST(Interval, AProductThatMayBeFusedIsNeverRoundedOnItsOwn) {
    Element e;
    e.c = reference::update_coefficients({}, {}, 1.0F, 2);
    e.c.decay = 1.0F;
    e.c.learning_rate = 0x1.8p100F;
    e.c.beta1 = 0.5F;
    e.c.inverse_bias1 = e.c.inverse_bias2 = e.c.epsilon = 1.0F;
    e.old = {0x1.fffffep127F, 0x1p29F, 0.0F, 0.0F};
    const auto all = intervals(e.raw, e.old, e.c, abilities_of(false, false));
    EXPECT_EQ(gradguard::testing::contracted(e, 0).p, -kInfinity);
    const float fused = gradguard::testing::contracted(e, 18).p;
    EXPECT_TRUE(std::isfinite(fused));
    EXPECT_TRUE(within(fused, all.p, 0.0).ok);
    EXPECT_TRUE(within(-kInfinity, all.p, 0.0).ok);
    EXPECT_FALSE(within(kInfinity, all.p, 0.0).ok);
    const auto unfused = intervals(e.raw, e.old, e.c, abilities_of(false, false, Contraction::kForbidden));
    EXPECT_FALSE(within(fused, unfused.p, 0.0).ok);
}

TEST(Interval, ExactOperationsAreNotWidened) {
    const Once one(1.0F);
    const Once zero(0.0F);
    const Once x(0.1F);
    for (const Once& same : {one * x, x * one, x + zero, zero + x, square(one) * x, maximum(x, zero)}) {
        EXPECT_EQ(same.lo, static_cast<double>(0.1F));
        EXPECT_EQ(same.hi, static_cast<double>(0.1F));
    }
    EXPECT_TRUE((zero * x).is(0.0));
    EXPECT_LT((x * x).lo, (x * x).hi);
}

TEST(Interval, OverflowBeginsExactlyAtTheRoundingThreshold) {
    const Once half(0x1p127F);
    const Once most(std::numeric_limits<float>::max());
    const Once ulp_half(0x1p103F);
    const Once below(0x1.fffffep102F);
    EXPECT_EQ((most + ulp_half).hi, kInfinity);
    EXPECT_EQ((most + ulp_half).lo, kInfinity);
    EXPECT_LT((most + below).lo, 0x1p128);
    EXPECT_NE((most + below).hi, kInfinity);
    EXPECT_EQ((half + half).lo, kInfinity);
}

TEST(Interval, NaNComesFromInfinitiesThatMeetAndFromNegativeRoots) {
    const Once infinite(kInfinity);
    const Once zero(0.0F);
    const Once one(1.0F);
    const Once minus(-1.0F);
    for (const Once& nothing : {infinite + -infinite, zero * infinite, infinite / infinite, sqrt(minus), Once(kNaN)}) {
        EXPECT_TRUE(nothing.empty());
        EXPECT_TRUE(nothing.nan);
    }
    for (const Once& number : {infinite + one, one * infinite, one / infinite, sqrt(zero), maximum(one, infinite)}) {
        EXPECT_FALSE(number.empty());
        EXPECT_FALSE(number.nan);
    }
    EXPECT_TRUE(maximum(one, Once(kNaN)).nan);
    EXPECT_TRUE(maximum(one, Once(kNaN)).empty());
}

TEST(Interval, SignsAreKeptByRounding) {
    const Once tiny(0x1p-149F);
    EXPECT_EQ((tiny * tiny).lo, 0.0);
    EXPECT_EQ((tiny * -tiny).hi, 0.0);
    EXPECT_GE(square(tiny).lo, 0.0);
    EXPECT_FALSE(sqrt(square(-tiny)).nan);
}

TEST(Within, SaysWhichShareOfTheBoundWasUsed) {
    const Interval interval{1.0, 2.0, false};
    EXPECT_EQ(within(1.75F, interval, 1.5).fraction, 0.5);
    EXPECT_EQ(within(1.25F, interval, 1.5).fraction, 0.5);
    EXPECT_EQ(within(2.0F, interval, 1.5).fraction, 1.0);
    EXPECT_EQ(within(1.5F, interval, 1.5).fraction, 0.0);
    EXPECT_FALSE(within(2.5F, interval, 1.5).ok);
    EXPECT_EQ(within(2.5F, interval, 1.5).fraction, 2.0);
}

TEST(Within, NaNAndInfinitiesPassOnlyWhereTheyAreAdmitted) {
    EXPECT_FALSE(within(kNaN, {-1.0, 1.0, false}, 0.0).ok);
    EXPECT_FALSE(within(kNaN, {-HUGE_VAL, HUGE_VAL, false}, 0.0).ok);
    EXPECT_TRUE(within(kNaN, {-1.0, 1.0, true}, 0.0).ok);
    EXPECT_FALSE(within(kInfinity, {-1.0, 1.0, true}, 0.0).ok);
    EXPECT_TRUE(within(kInfinity, {-1.0, HUGE_VAL, false}, 0.0).ok);
    EXPECT_FALSE(within(-kInfinity, {-1.0, HUGE_VAL, false}, 0.0).ok);
    EXPECT_EQ(within(kInfinity, {-1.0, 1.0, false}, 0.0).fraction, HUGE_VAL);
    EXPECT_FALSE(within(1.0F, {HUGE_VAL, -HUGE_VAL, true}, 0.0).ok);
}

RC_GTEST_PROP(WithinProperty, AgreesWithItsEndsAndTheFractionWithTheVerdict, ()) {
    const float a = gradguard::testing::spread_float(gradguard::testing::any_word());
    const float b = gradguard::testing::spread_float(gradguard::testing::any_word());
    const float got = gradguard::testing::any_float(gradguard::testing::any_word());
    const Interval interval{std::min(a, b), std::max(a, b), false};
    const double centre = 0.5 * interval.lo + 0.5 * interval.hi;
    const Within found = within(got, interval, centre);
    RC_ASSERT(found.ok == (got >= std::min(a, b) && got <= std::max(a, b)));
    RC_ASSERT(std::isnan(got) || found.ok == (found.fraction <= 1.0));
}

}  // namespace
}  // namespace gradguard::harness
