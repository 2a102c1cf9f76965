// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <bit>
#include <cmath>

#include "reference/fp64/fp64_norm.h"
#include "reference/model/statistics.h"
#include "tests/reference/literal_tree.h"
#include "tests/support/property.h"
#include "tests/support/values.h"

namespace gradguard::reference {
namespace {

const gradguard::testing::FixedRapidCheckSeed kSeed;

using gradguard::testing::any_word;

/// A valid pair: scale 0 with sumsq 0, or scale > 0 with sumsq >= 1.
GradientSummary any_summary() {
    const float scale = std::fabs(gradguard::testing::spread_float(any_word()));
    const float sumsq = scale == 0.0F ? 0.0F : float_of(0x3F800000U + any_word() % 0x0F000000U);
    return {scale, sumsq, any_word() % 4U == 0 ? 1.0F : 0.0F};
}

std::vector<float> any_values(bool with_bad) {
    const std::size_t n = *rc::gen::element<std::size_t>(0, 1, 2, 31, 33, 64, 255, 257, 1023, 1025, 3000);
    std::vector<float> values(n);
    std::uint32_t word = any_word();
    for (auto& value : values) {
        word = word * 1664525U + 1013904223U;
        value = with_bad ? gradguard::testing::any_float(word) : gradguard::testing::spread_float(word);
    }
    return values;
}

bool same(const GradientSummary& a, const GradientSummary& b) {
    return bits_of(a.scale) == bits_of(b.scale) && bits_of(a.sumsq) == bits_of(b.sumsq) &&
           bits_of(a.bad) == bits_of(b.bad);
}

RC_GTEST_PROP(StatisticsProperty, TheMergeIsCommutativeBitForBit, ()) {
    const GradientSummary a = any_summary();
    const GradientSummary b = any_summary();
    RC_ASSERT(same(merge_summaries(a, b), merge_summaries(b, a)));
    RC_ASSERT(same(merge_summaries(a, b), gradguard::testing::literal_merge(a, b)));
    RC_ASSERT(same(merge_summaries(a, {}), a));
}

RC_GTEST_PROP(StatisticsProperty, TheTreeIsTheLiteralTreeWithBadValuesToo, ()) {
    const auto gradient = gradguard::testing::f32(any_values(true));
    const float r = 1.0F / *rc::gen::element(1.0F, 3.0F, 65536.0F, 0x1p-100F);
    const auto limit = *rc::gen::element<std::uint32_t>(1, 2, 1024);
    RC_ASSERT(
        same(tree_summary(gradient.view(), r, limit), gradguard::testing::literal_tree(gradient.view(), r, limit)));
}

RC_GTEST_PROP(StatisticsProperty, TheTreesNormStaysWithinTheClosedBound, ()) {
    const auto gradient = gradguard::testing::f32(any_values(false));
    const GradientView view = gradient.view();
    const double exact = exact_norm({&view, 1}, 1.0F);
    const double got = group_statistics({&view, 1}, 1.0F).stats.total_norm;
    const double n = static_cast<double>(gradient.elements);
    if (gradient.elements == 0) {
        RC_ASSERT(got == 0.0);
    } else {
        const double blocks = reduction_blocks(gradient.elements);
        double depth = std::ceil(n / (256 * blocks)) - 1 + std::min(8.0, std::ceil(std::log2(n)));
        if (blocks > 1) depth += std::ceil(blocks / 256) - 1 + std::min(8.0, std::ceil(std::log2(blocks)));
        const double k = (5 * depth + 4) * 0x1p-24;
        RC_ASSERT(std::fabs(got - exact) <= (k / (1 - k) / 2 + 0x1p-50) * exact);
    }
}

RC_GTEST_PROP(StatisticsProperty, MaximumFlagAndFirstBadAreThoseOfTheFp64Scan, ()) {
    const auto values = any_values(true);
    const float r = 1.0F / *rc::gen::element(1.0F, 3.0F, 65536.0F, 0x1p-100F);
    const auto gradient = gradguard::testing::f32(values);
    const Fp64Scan scan = scan_gradients(values, r);
    const GradientSummary summary = tree_summary(gradient.view(), r);
    RC_ASSERT(bits_of(summary.scale) == bits_of(scan.max_finite_abs));
    RC_ASSERT((summary.bad == 1.0F) == scan.bad);
    RC_ASSERT(first_bad(gradient.view(), r) == scan.first_bad);
}

RC_GTEST_PROP(StatisticsProperty, APowerOfTwoMovesTheScaleAndKeepsTheSum, ()) {
    std::vector<float> values(*rc::gen::inRange<std::size_t>(1, 600));
    for (auto& value : values) value = float_of(0x30000000U + any_word() % 0x20000000U);
    const int exponent = *rc::gen::inRange(-20, 20);
    std::vector<float> moved = values;
    for (auto& value : moved) value = std::ldexp(value, exponent);
    const auto before = tree_summary(gradguard::testing::f32(values).view(), 1.0F);
    const auto after = tree_summary(gradguard::testing::f32(moved).view(), 1.0F);
    RC_ASSERT(after.scale == std::ldexp(before.scale, exponent));
    RC_ASSERT(bits_of(after.sumsq) == bits_of(before.sumsq));
}

RC_GTEST_PROP(StatisticsProperty, SignsAndAppendedZerosChangeNothing, ()) {
    auto values = any_values(false);
    const auto before = tree_summary(gradguard::testing::f32(values).view(), 1.0F);
    const std::size_t room = reduction_blocks(std::max<std::size_t>(values.size(), 1)) * 1024 - values.size();
    for (auto& value : values) value = any_word() % 2U == 0 ? -value : value;
    values.resize(values.size() + *rc::gen::inRange<std::size_t>(0, room + 1), 0.0F);
    RC_ASSERT(same(tree_summary(gradguard::testing::f32(values).view(), 1.0F), before));
}

RC_GTEST_PROP(StatisticsProperty, HalvesAndTheSameValuesInFp32GiveTheSameBits, ()) {
    const DType dtype = *rc::gen::element(DType::kF16, DType::kBF16);
    std::vector<std::uint16_t> words(*rc::gen::inRange<std::size_t>(0, 1500));
    std::uint32_t word = any_word();
    std::vector<float> wide;
    for (auto& half : words) {
        word = word * 1664525U + 1013904223U;
        half = static_cast<std::uint16_t>(word >> 16U);
        wide.push_back(dtype == DType::kF16 ? widen_f16(half) : widen_bf16(half));
    }
    const auto halves = gradguard::testing::gradient_of_words(dtype, words);
    RC_ASSERT(same(tree_summary(halves.view(), 0.25F), tree_summary(gradguard::testing::f32(wide).view(), 0.25F)));
}

}  // namespace
}  // namespace gradguard::reference
