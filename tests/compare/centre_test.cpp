// SPDX-License-Identifier: Apache-2.0
// The fraction of the bound: its centre, its half width, and which inputs count.
#include <gtest/gtest.h>

#include "harness/compare/enclosure.h"
#include "harness/compare/measure.h"
#include "tests/compare/elements.h"

namespace gradguard::harness {
namespace {

using gradguard::testing::Element;
using gradguard::testing::Words;

Centre centre(const Element& e) { return centre_of(e.raw, e.old, reference::line_coefficients<double>(e.c)); }

/// Whether the half width is the interval's to first order. `summand`: the one that carries the longest chain of
/// roundings. What is left out are products of two relative errors, each at most bound / summand, and FP64's own share.
bool is_half_width(double bound, double exact, double summand, const Interval& interval) {
    const double second_order = 2.0 * bound * (bound / std::fabs(summand)) + 0x1p-24 * bound;
    return std::fabs((interval.hi - exact) - bound) <= second_order &&
           std::fabs((exact - interval.lo) - bound) <= second_order;
}

TEST(Centre, TheHalfWidthIsTheIntervalsToFirstOrder) {
    Words words(5);
    int balanced = 0;
    for (int i = 0; i < 400000; ++i) {
        const Element e = gradguard::testing::ordinary_element(words);
        const Centre found = centre(e);
        if (!found.balanced) continue;
        ++balanced;
        const auto all = intervals(e.raw, e.old, e.c, {});
        const double added_to_m = found.exact.m - static_cast<double>(e.c.beta1) * e.old.m;
        const double added_to_v = found.exact.v - static_cast<double>(e.c.beta2) * e.old.v;
        const double moved = found.exact.p - static_cast<double>(e.c.decay) * e.old.p;
        ASSERT_TRUE(is_half_width(found.bound.m, found.exact.m, added_to_m, all.m)) << i;
        ASSERT_TRUE(is_half_width(found.bound.v, found.exact.v, added_to_v, all.v)) << i;
        ASSERT_TRUE(is_half_width(found.bound.p, found.exact.p, moved, all.p)) << i;
        if (found.bound.x > 0.0) {
            ASSERT_TRUE(is_half_width(found.bound.x, found.exact.x, added_to_v, all.x)) << i;
        }
    }
    EXPECT_GT(balanced, 500);
}

TEST(Centre, NoContractionUsesMoreThanTheBound) {
    Words words(6);
    int balanced = 0;
    for (int i = 0; i < 400000; ++i) {
        const Element e = gradguard::testing::ordinary_element(words);
        const Centre found = centre(e);
        if (!found.balanced) continue;
        ++balanced;
        for (int way = 0; way < 27; ++way) {
            const auto stored = gradguard::testing::contracted(e, way);
            std::array<WorstError, kOperands> worst{};
            take_errors(found, e.raw, e.old, stored, e.c, 0, worst);
            for (const auto& one : worst) ASSERT_LE(one.fraction, 1.0) << i << " way " << way;
        }
    }
    EXPECT_GT(balanced, 500);
}

TEST(Centre, OnlyBalancedInputsInTheNormalRangeCount) {
    Element e;
    AdamWOptions options;
    options.beta1 = options.beta2 = 0.5F;
    options.learning_rate = 1.0F;
    e.c = reference::update_coefficients(options, {}, 1.0F, 2);
    e.raw = 1.5F;
    e.old = {1.25F, 1.25F, 1.75F, 0.0F};
    EXPECT_TRUE(centre(e).balanced);
    Element other = e;
    other.old.p = 100.0F;  // a dominant p_old fills any bound
    EXPECT_FALSE(centre(other).balanced);
    other = e;
    other.old.m = 0.0F;
    EXPECT_FALSE(centre(other).balanced);
    other = e;
    other.raw = 0x1p-64F;  // g * g underflows
    other.old.m = 0x1p-64F;
    EXPECT_FALSE(centre(other).balanced);
    other = e;
    other.raw = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(centre(other).balanced);
}

}  // namespace
}  // namespace gradguard::harness
