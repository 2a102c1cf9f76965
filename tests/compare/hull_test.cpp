// SPDX-License-Identifier: Apache-2.0
// The hull is that of the 27 contractions, no more and no less.
#include <gtest/gtest.h>
#include <array>
#include <limits>

#include "harness/compare/enclosure.h"
#include "tests/compare/elements.h"

namespace gradguard::harness {
namespace {

using gradguard::testing::Element;
using gradguard::testing::Words;
using reference::ElementState;

/// Hull of the enumeration.
struct Enumerated {
    double lo = std::numeric_limits<double>::infinity();
    double hi = -std::numeric_limits<double>::infinity();
    bool nan = false;

    void include(float value) {
        if (std::isnan(value)) {
            nan = true;
            return;
        }
        lo = std::min(lo, static_cast<double>(value));
        hi = std::max(hi, static_cast<double>(value));
    }
    bool equals(const Hull& hull) const { return lo == hull.lo && hi == hull.hi && nan == hull.may_be_nan; }
};

bool hulls_are_enumerated(const Element& e) {
    Enumerated p, m, v, x;
    for (int way = 0; way < 27; ++way) {
        const ElementState<float> next = gradguard::testing::contracted(e, way);
        p.include(next.p);
        m.include(next.m);
        v.include(next.v);
        x.include(next.x);
    }
    const ElementHulls hulls = legal_hulls(e.raw, e.old, e.c);
    return p.equals(hulls.p) && m.equals(hulls.m) && v.equals(hulls.v) && x.equals(hulls.x);
}

TEST(Hull, IsTheHullOfAllContractionsOnOrdinaryInputs) {
    Words words(1);
    for (int i = 0; i < 100000; ++i)
        ASSERT_TRUE(hulls_are_enumerated(gradguard::testing::ordinary_element(words))) << i;
}

TEST(Hull, IsTheHullOfAllContractionsOnInputsOfEveryClass) {
    Words words(2);
    for (int i = 0; i < 200000; ++i) {
        ASSERT_TRUE(hulls_are_enumerated(gradguard::testing::any_element(words, true))) << i;
    }
}

TEST(Hull, ANegativeSecondMomentThatRoundsToZeroOneWayOnlyStillHasARoot) {
    // beta2 * v_old + (1 - beta2) * g^2 with opposite signs: the contractions differ in sign, so that some have NaN.
    Words words(3);
    int mixed = 0;
    for (int i = 0; i < 200000; ++i) {
        Element e = gradguard::testing::ordinary_element(words);
        const float g = e.raw * e.c.r * e.c.clip;
        e.old.v = -(e.c.one_minus_beta2 * (g * g)) / e.c.beta2;
        e.c.amsgrad = false;
        const ElementHulls hulls = legal_hulls(e.raw, e.old, e.c);
        if (hulls.v.lo < 0.0F && hulls.v.hi > 0.0F) ++mixed;
        ASSERT_TRUE(hulls_are_enumerated(e)) << i;
    }
    EXPECT_GT(mixed, 0);
}

}  // namespace
}  // namespace gradguard::harness
