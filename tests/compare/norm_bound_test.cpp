// SPDX-License-Identifier: Apache-2.0
// The bound along the tree: never exceeded, attained, and never above the closed form.
#include "harness/compare/norm_bound.h"

#include <gtest/gtest.h>
#include <cmath>

#include "reference/exact/real.h"
#include "reference/fp64/summary_rules.h"
#include "reference/model/statistics.h"
#include "tests/compare/elements.h"

namespace gradguard::harness {
namespace {

using gradguard::testing::f32;
using gradguard::testing::Gradient;
using gradguard::testing::Words;
using reference::Real;

/// How much of the bound of sumsq the tree used, exactly.
double used(const Gradient& gradient, float r, std::uint32_t block_limit = 1024) {
    const GradientSummary summary = reference::tree_summary(gradient.view(), r, block_limit);
    const Real got = Real(summary.scale) * Real(summary.scale) * Real(summary.sumsq);
    const Real error = abs(Real(got - reference::to_real(reference::exact_scan(gradient.view(), r).sum)));
    const TreeBound bound = tree_bound(gradient.view(), r, block_limit);
    if (error == 0) return 0.0;
    return reference::to_double(Real(error / Real(bound.error)));
}

std::vector<float> drawn(Words& words, std::size_t n, int kind) {
    std::vector<float> values(n);
    for (auto& value : values) {
        if (kind == 0) value = gradguard::testing::ordinary(words);
        if (kind == 1) value = gradguard::testing::any_float(words.next());
        if (kind == 2) value = 1.0F + static_cast<float>(words.next() % 1024U) * 0x1p-10F;
        if (kind == 3) value = std::ldexp(1.0F, -static_cast<int>(words.next() % 14U));
    }
    return values;
}

TEST(NormBound, TheTreeNeverUsesMoreThanItsBound) {
    Words words(1);
    for (const std::size_t n : {1U, 2U, 31U, 255U, 256U, 257U, 1024U, 1025U, 5000U, 300000U}) {
        const int rounds = n > 1025 ? 3 : 40;
        for (int kind = 0; kind < 4; ++kind) {
            for (int i = 0; i < rounds; ++i) {
                const Gradient gradient = f32(drawn(words, n, kind));
                for (const float r : {1.0F, 1.0F / 3.0F}) {
                    ASSERT_LE(used(gradient, r), 1.0) << n << " elements of kind " << kind;
                    ASSERT_LE(used(gradient, r, 3), 1.0) << n << " elements of kind " << kind << " in 3 blocks";
                }
            }
        }
    }
}

TEST(NormBound, TheNormNeverUsesMoreThanItsBound) {
    Words words(2);
    for (int i = 0; i < 500; ++i) {
        std::vector<Gradient> tensors;
        std::vector<reference::GradientView> views;
        std::vector<TreeBound> bounds;
        for (unsigned k = 0; k < 1 + words.next() % 5U; ++k) {
            tensors.push_back(f32(drawn(words, words.next() % 700U, static_cast<int>(words.next() % 4U) & ~1)));
        }
        for (const auto& tensor : tensors) views.push_back(tensor.view());
        for (const auto& view : views) bounds.push_back(tree_bound(view, 1.0F));
        const double got = reference::group_statistics(views, 1.0F).stats.total_norm;
        const double exact = reference::exact_norm(views, 1.0F);
        ASSERT_LE(std::fabs(got - exact), norm_error_bound(bounds)) << i;
    }
}

/// One 1, then 2^-12 at positions 1, 2, 4, ..., 128: the lanes that meet the one in each level of the tree.
Gradient worst_tree() {
    std::vector<float> values(256, 0.0F);
    values[0] = 1.0F;
    for (std::size_t position = 1; position <= 128; position *= 2) values[position] = 0x1p-12F;
    return f32(values);
}

TEST(NormBound, TheWorstTreeFills99Percent) {
    const Gradient gradient = worst_tree();
    EXPECT_GE(used(gradient, 1.0F), 0.99);
    EXPECT_LE(used(gradient, 1.0F), 1.0);
    const double got = reference::tensor_norm(reference::tree_summary(gradient.view(), 1.0F));
    const std::vector<TreeBound> bounds{tree_bound(gradient.view(), 1.0F)};
    EXPECT_GE(std::fabs(got - reference::exact_scan(gradient.view(), 1.0F).sum.root()) / norm_error_bound(bounds),
              0.99);
}

TEST(NormBound, TheClosedFormIsNeverBelowTheEvaluatedBound) {
    Words words(3);
    for (const std::size_t n : {1U, 2U, 3U, 200U, 256U, 257U, 1024U, 1025U, 4096U, 100000U, 300000U}) {
        for (int kind = 0; kind < 4; ++kind) {
            for (const std::uint32_t limit : {1024U, 1U, 7U}) {
                const Gradient gradient = f32(drawn(words, n, kind));
                const TreeBound bound = tree_bound(gradient.view(), 1.0F, limit);
                ASSERT_LE(bound.error, closed_form_bound(n, limit) * bound.sum) << n << " kind " << kind;
            }
        }
    }
    const TreeBound worst = tree_bound(worst_tree().view(), 1.0F);
    EXPECT_LE(worst.error, closed_form_bound(256) * worst.sum);
}

TEST(NormBound, TheClosedFormCountsTheLevels) {
    const auto gamma = [](double k) { return k * 0x1p-24 / (1.0 - k * 0x1p-24); };
    EXPECT_EQ(closed_form_bound(1), gamma(4));
    EXPECT_EQ(closed_form_bound(256), gamma(44));
    EXPECT_EQ(closed_form_bound(1024), gamma(59));                   // 3 more in each lane
    EXPECT_EQ(closed_form_bound(1025), gamma(5 * (2 + 8 + 1) + 4));  // two blocks: 3 in a lane, one level more
    EXPECT_EQ(closed_form_bound(std::uint64_t{1} << 30U, 1), HUGE_VAL);
}

TEST(NormBound, BadElementsAndNothingAtAllHaveNoError) {
    const Gradient bad = f32({std::nanf(""), HUGE_VALF, 3.0F});
    EXPECT_EQ(tree_bound(bad.view(), 1.0F).sum, 9.0);
    EXPECT_EQ(tree_bound(bad.view(), 1.0F).error, 0.0);
    EXPECT_EQ(tree_bound(f32({}).view(), 1.0F).sum, 0.0);
    EXPECT_EQ(norm_error_bound({}), 0.0);
}

TEST(NormBound, AnyOrderOfAScaledSumIsWithinItsBound) {
    Words words(4);
    for (int i = 0; i < 300; ++i) {
        const std::size_t n = 1 + words.next() % 3000U;
        const std::vector<float> values = drawn(words, n, i % 2 == 0 ? 0 : 3);
        GradientSummary running;
        for (const float value : values) running = reference::merge_summaries(running, {std::fabs(value), 1.0F, 0.0F});
        const double sequential = static_cast<float>(reference::tensor_norm(running));
        const Gradient gradient = f32(values);
        const double exact = reference::exact_scan(gradient.view(), 1.0F).sum.root();
        ASSERT_LE(std::fabs(sequential - exact), any_order_bound(exact, n, 1, 1.0F, false)) << i;
    }
}

}  // namespace
}  // namespace gradguard::harness
