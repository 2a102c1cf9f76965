// SPDX-License-Identifier: Apache-2.0
// The legal set of one element: exactly the enumerated contractions, and nothing one ulp beside them.
#include "harness/compare/update_bound.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <cmath>
#include <limits>
#include <set>

#include "reference/exact/float_bits.h"
#include "tests/support/property.h"
#include "tests/support/values.h"

namespace gradguard::harness {
namespace {

using reference::bits_of;
using reference::ElementState;
using reference::float_of;
using reference::Real;
using reference::same_float;
using reference::step_ulps;
using reference::UpdateCoefficients;

const gradguard::testing::FixedRapidCheckSeed kSeed;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

using gradguard::testing::any_word;
float ordinary() { return float_of((any_word() & reference::kSignBit) | (0x3C000000U + any_word() % 0x06000000U)); }

UpdateCoefficients any_coefficients() {
    AdamWOptions options;
    options.amsgrad = any_word() % 2U == 0;
    options.maximize = any_word() % 2U == 0;
    options.beta1 = *rc::gen::element(0.0F, 0.5F, 0.9F, 0x1.fffffep-1F);
    options.weight_decay = *rc::gen::element(0.0F, 1e-4F, 0.3F);
    options.learning_rate = *rc::gen::element(1e-3F, 0.1F, 1.0F);
    const float clip = *rc::gen::element(1.0F, 0.3F, 0.0F);
    return reference::update_coefficients(options, {.gradient_scale = *rc::gen::element(1.0F, 3.0F, 128.0F)}, clip,
                                          1 + any_word() % 100U);
}

ElementState<float> any_state() { return {ordinary(), ordinary(), std::fabs(ordinary()), std::fabs(ordinary())}; }

/// a*b + c*d with the sum rounded once from the exact values of its terms, each rounded or not.
std::set<std::uint32_t> contractions_over_the_reals(float a, float b, float c, float d) {
    const Real first = Real(a) * Real(b);
    const Real second = Real(c) * Real(d);
    const Real first_rounded(reference::to_float(first));
    const Real second_rounded(reference::to_float(second));
    return {bits_of(reference::to_float(first_rounded + second_rounded)),
            bits_of(reference::to_float(first + second_rounded)), bits_of(reference::to_float(first_rounded + second))};
}

std::set<std::uint32_t> bits_of_set(const LegalSet& set) {
    return {bits_of(set.values[0]), bits_of(set.values[1]), bits_of(set.values[2])};
}

/// Reals have one zero.
std::set<std::uint32_t> with_one_zero(std::set<std::uint32_t> bits) {
    if (bits.erase(reference::kSignBit) != 0) bits.insert(0);
    return bits;
}

RC_GTEST_PROP(LegalSetProperty, IsTheEnumerationOverTheReals, ()) {
    const UpdateCoefficients c = any_coefficients();
    const ElementState<float> old = any_state();
    const float raw = ordinary();
    ElementState<float> stored = reference::update_element(raw, old, c);
    const ElementLegalSets sets = legal_sets(raw, old, stored, c);
    float g = raw * c.r;
    if (c.clip != 1.0F) g *= c.clip;
    if (c.maximize) g = -g;
    RC_ASSERT(with_one_zero(bits_of_set(sets.m)) ==
              with_one_zero(contractions_over_the_reals(c.beta1, old.m, c.one_minus_beta1, g)));
    RC_ASSERT(with_one_zero(bits_of_set(sets.v)) ==
              with_one_zero(contractions_over_the_reals(c.beta2, old.v, c.one_minus_beta2, g * g)));
    const float x = c.amsgrad ? stored.x : stored.v;
    const float root = std::sqrt(x * c.inverse_bias2);
    const float ratio = (stored.m * c.inverse_bias1) / (root + c.epsilon);
    RC_ASSERT(with_one_zero(bits_of_set(sets.p)) ==
              with_one_zero(contractions_over_the_reals(old.p, c.decay, -c.learning_rate, ratio)));
}

RC_GTEST_PROP(LegalSetProperty, AdmitsEachContractionAndRefusesTheNeighbours, ()) {
    const UpdateCoefficients c = any_coefficients();
    const ElementState<float> old = any_state();
    const float raw = ordinary();
    const ElementState<float> plain = reference::update_element(raw, old, c);
    RC_ASSERT(!first_outside(raw, old, plain, c, Contraction::kForbidden).has_value());
    RC_ASSERT(!first_outside(raw, old, plain, c, Contraction::kAllowed).has_value());
    const ElementLegalSets sets = legal_sets(raw, old, plain, c);
    for (const LegalSet* set : {&sets.m, &sets.v, &sets.p}) {
        const auto legal = bits_of_set(*set);
        for (const float value : set->values) {
            RC_ASSERT(set->contains(value, Contraction::kAllowed));
            RC_ASSERT(set->contains(value, Contraction::kForbidden) == same_float(value, set->values[0]));
            for (const float beside : {step_ulps(value, 1), step_ulps(value, -1)}) {
                RC_ASSERT(set->contains(beside, Contraction::kAllowed) == legal.contains(bits_of(beside)));
            }
        }
        RC_ASSERT(!set->contains(kNaN, Contraction::kAllowed));
    }
}

RC_GTEST_PROP(LegalSetProperty, AContractedMomentCarriesItsParameterAlong, ()) {
    // m by one contraction, v by another, p from what was stored: legal; p from the uncontracted moments: only where
    // the bits happen to be legal from the stored ones too.
    const UpdateCoefficients c = any_coefficients();
    const ElementState<float> old = any_state();
    const float raw = ordinary();
    const ElementState<float> plain = reference::update_element(raw, old, c);
    const ElementLegalSets sets = legal_sets(raw, old, plain, c);
    ElementState<float> stored = plain;
    stored.m = sets.m.values[1];
    stored.v = sets.v.values[2];
    if (c.amsgrad) stored.x = legal_sets(raw, old, stored, c).x.values[0];
    const LegalSet p = legal_sets(raw, old, stored, c).p;
    for (const float value : p.values) {
        stored.p = value;
        RC_ASSERT(!first_outside(raw, old, stored, c, Contraction::kAllowed).has_value());
    }
    stored.p = plain.p;
    RC_ASSERT(first_outside(raw, old, stored, c, Contraction::kAllowed).has_value() ==
              !bits_of_set(p).contains(bits_of(plain.p)));
}

TEST(LegalSet, AProductThatMayBeFusedIsNeverRoundedOnItsOwn) {
    // Unfused the second product overflows; fused with a sum of the other sign the result is finite. Both are legal.
    UpdateCoefficients c = reference::update_coefficients({}, {}, 1.0F, 1);
    c.decay = 1.0F;
    c.learning_rate = 0x1.8p100F;
    c.inverse_bias1 = 1.0F;
    c.inverse_bias2 = 1.0F;
    c.epsilon = 1.0F;
    const ElementState<float> old{0x1.fffffep127F, 0.0F, 0.0F, 0.0F};
    const ElementState<float> stored{0.0F, 0x1p28F, 0.0F, 0.0F};
    const LegalSet p = legal_sets(0.0F, old, stored, c).p;
    EXPECT_EQ(p.values[0], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(p.values[2], -0x1.000002p127F);
    EXPECT_TRUE(p.contains(-0x1.000002p127F, Contraction::kAllowed));
    EXPECT_FALSE(p.contains(-0x1.000002p127F, Contraction::kForbidden));
}

TEST(LegalSet, NaNPassesOnlyWhereTheLinesGiveNaN) {
    const UpdateCoefficients c = reference::update_coefficients({}, {}, 1.0F, 1);
    const ElementState<float> old{1.0F, 0.0F, 0.0F, 0.0F};
    const ElementState<float> nan{float_of(0xFFC12345U), float_of(0x7F800001U), kNaN, 0.0F};
    EXPECT_FALSE(first_outside(kNaN, old, nan, c, Contraction::kForbidden).has_value());
    EXPECT_EQ(first_outside(0.5F, old, nan, c, Contraction::kAllowed), Operand::kSecondMoment);
    ElementState<float> stored = reference::update_element(0.5F, old, c);
    stored.p = kNaN;
    EXPECT_EQ(first_outside(0.5F, old, stored, c, Contraction::kAllowed), Operand::kParameters);
}

TEST(LegalSet, SignsOfZeroAreBits) {
    const UpdateCoefficients c = reference::update_coefficients({}, {}, 1.0F, 1);
    const ElementState<float> old{1.0F, 0.0F, 0.0F, 0.0F};
    ElementState<float> stored = reference::update_element(-0.0F, old, c);
    EXPECT_EQ(bits_of(stored.m), 0U);
    stored.m = -0.0F;
    EXPECT_EQ(first_outside(-0.0F, old, stored, c, Contraction::kAllowed), Operand::kFirstMoment);
}

TEST(LegalSet, TheMaximumHasOneValue) {
    AdamWOptions options;
    options.amsgrad = true;
    const UpdateCoefficients c = reference::update_coefficients(options, {}, 1.0F, 2);
    const ElementState<float> old{1.0F, 0.5F, 0.25F, 0.75F};
    ElementState<float> stored = reference::update_element(0.5F, old, c);
    EXPECT_EQ(stored.x, 0.75F);
    stored.x = stored.v;  // the maximum was not kept
    EXPECT_EQ(first_outside(0.5F, old, stored, c, Contraction::kAllowed), Operand::kMaxSecondMoment);
}

}  // namespace
}  // namespace gradguard::harness
