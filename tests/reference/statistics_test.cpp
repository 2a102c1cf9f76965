// SPDX-License-Identifier: Apache-2.0
#include "reference/model/statistics.h"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

#include "reference/contract/error.h"
#include "tests/reference/literal_tree.h"
#include "tests/support/values.h"

namespace gradguard::reference {
namespace {

using gradguard::testing::Gradient;
using gradguard::testing::literal_tree;

/// Words that give a wide spread of finite FP32, F16 or BF16 values.
Gradient spread_gradient(DType dtype, std::size_t n, std::uint32_t seed) {
    std::uint32_t word = seed * 2654435761U + 1U;
    const auto next = [&] { return word = word * 1664525U + 1013904223U; };
    if (dtype == DType::kF32) {
        std::vector<float> values(n);
        for (auto& value : values) value = gradguard::testing::spread_float(next());
        return gradguard::testing::f32(values);
    }
    std::vector<std::uint16_t> words(n);
    const std::uint32_t mask = dtype == DType::kF16 ? 0xBBFFU : 0xBF7FU;  // clears a bit of the exponent: all finite
    for (auto& w : words) w = static_cast<std::uint16_t>((next() >> 12U) & mask);
    return gradguard::testing::gradient_of_words(dtype, words);
}

void expect_same(const GradientSummary& got, const GradientSummary& want) {
    ASSERT_EQ(bits_of(got.scale), bits_of(want.scale));
    ASSERT_EQ(bits_of(got.sumsq), bits_of(want.sumsq));
    ASSERT_EQ(bits_of(got.bad), bits_of(want.bad));
}

TEST(Statistics, TheTreeIsTheContractsTextReadLiterally) {
    for (const DType dtype : kAllDTypes) {
        for (const std::size_t n : {1U, 31U, 32U, 33U, 255U, 256U, 257U, 1023U, 1024U, 1025U, 2048U, 2049U, 65537U}) {
            const Gradient gradient = spread_gradient(dtype, n, static_cast<std::uint32_t>(n));
            for (const float r : {1.0F, 1.0F / 3.0F, 0x1p-10F}) {
                expect_same(tree_summary(gradient.view(), r), literal_tree(gradient.view(), r, 1024));
            }
        }
    }
}

TEST(Statistics, TheTreeOfMoreThanATripleForEveryLane) {
    for (const std::size_t n : {262145U, 1048575U, 1048576U, 1048577U}) {
        const Gradient gradient = spread_gradient(DType::kF32, n, 7);
        expect_same(tree_summary(gradient.view(), 1.0F), literal_tree(gradient.view(), 1.0F, 1024));
    }
}

TEST(Statistics, ADeviceThatGrantsFewerBlocksHasATreeOfItsOwn) {
    const Gradient gradient = spread_gradient(DType::kF32, 5000, 3);
    for (const std::uint32_t limit : {1U, 2U, 3U, 4U, 5U, 1024U}) {
        EXPECT_EQ(reduction_blocks(5000, limit), std::min(limit, 5U));
        expect_same(tree_summary(gradient.view(), 1.0F, limit), literal_tree(gradient.view(), 1.0F, limit));
    }
}

TEST(Statistics, AViewAtAnyByteOffsetGivesTheSameBits) {
    const Gradient gradient = spread_gradient(DType::kF32, 1500, 5);
    std::vector<std::byte> moved(gradient.bytes.size() + 3);
    for (std::size_t offset = 0; offset < 4; ++offset) {
        std::copy(gradient.bytes.begin(), gradient.bytes.end(), moved.begin() + static_cast<std::ptrdiff_t>(offset));
        const GradientView view{DType::kF32, moved.data() + offset, gradient.elements};
        expect_same(tree_summary(view, 1.0F), tree_summary(gradient.view(), 1.0F));
    }
}

TEST(Statistics, BlocksFollowTheGeometry) {
    EXPECT_EQ(reduction_blocks(1), 1U);
    EXPECT_EQ(reduction_blocks(1024), 1U);
    EXPECT_EQ(reduction_blocks(1025), 2U);
    EXPECT_EQ(reduction_blocks(65537), 65U);
    EXPECT_EQ(reduction_blocks(1048576), 1024U);
    EXPECT_EQ(reduction_blocks(1048577), 1024U);
    EXPECT_EQ(reduction_blocks((1ULL << 30U) - 1), 1024U);
}

TEST(Statistics, TheAccountingIsExact) {
    const struct {
        std::size_t n;
        std::uint64_t launches, readback, scratch;
    } rows[] = {{0, 0, 0, 0},
                {1, 1, 12, 12},
                {1023, 1, 12, 12},
                {1024, 1, 12, 12},
                {1025, 2, 12, 36},
                {65537, 2, 12, 12 * 66},
                {1048575, 2, 12, 12 * 1025},
                {1048576, 2, 12, 12 * 1025},
                {1048577, 2, 12, 12 * 1025}};
    for (const auto& row : rows) {
        const std::vector<std::uint16_t> words(row.n, 0);
        const GradientView view{DType::kF16, words.data(), row.n};
        const GradientStatsReport report = group_statistics({&view, 1}, 1.0F);
        EXPECT_EQ(report.reduction_launches, row.launches) << row.n;
        EXPECT_EQ(report.readback_bytes, row.readback) << row.n;
        EXPECT_EQ(report.scratch_bytes, row.scratch) << row.n;
        EXPECT_EQ(report.stats.elements, row.n);
    }
}

TEST(Statistics, TheFirstBadElementIsFoundBeforeAndAfterUnscaling) {
    std::vector<float> values(3000, 1.0F);
    const auto first = [&](float r) { return first_bad(gradguard::testing::f32(values).view(), r); };
    EXPECT_FALSE(first(1.0F).has_value());
    values[2999] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(first(1.0F), 2999U);
    values[1700] = 3e38F;
    EXPECT_EQ(first(1.0F), 2999U);
    EXPECT_EQ(first(2.0F), 1700U);
    const ExactScan scan = exact_scan(gradguard::testing::f32(values).view(), 2.0F);
    EXPECT_EQ(scan.bad_elements, 2U);
    EXPECT_EQ(scan.first_bad, 1700U);
    EXPECT_EQ(scan.max_finite_abs, 2.0F);
}

TEST(ExactScan, TheLeastMagnitudeIsThatOfTheGoodElementsThatAreNotZero) {
    const auto least = [](const std::vector<float>& values, float r) {
        return exact_scan(gradguard::testing::f32(values).view(), r).least_nonzero_abs;
    };
    EXPECT_EQ(least({4.0F, -0.5F, 0.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F}, 2.0F), 1.0F);
    EXPECT_EQ(least({0.0F, -0.0F, std::numeric_limits<float>::infinity()}, 1.0F), 0.0F);
    EXPECT_EQ(least({}, 1.0F), 0.0F);
    EXPECT_EQ(least({0x1p-149F, 1.0F}, 1.0F), 0x1p-149F);
}

TEST(Statistics, EveryHalfPatternGoesThroughLoadUnscaleAndFlag) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
        for (const float scale : {1.0F, 3.0F, 65536.0F, 0x1p-112F, 0x1p-113F, 0x1.fffffep127F}) {
            const float r = 1.0F / scale;
            for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
                const auto word = static_cast<std::uint16_t>(bits);
                const float raw = dtype == DType::kF16 ? widen_f16(word) : widen_bf16(word);
                const float value = raw * r;
                const bool bad = !std::isfinite(raw) || !std::isfinite(value);
                const GradientSummary want = bad ? GradientSummary{0.0F, 0.0F, 1.0F}
                                                 : GradientSummary{std::fabs(value), value == 0.0F ? 0.0F : 1.0F, 0.0F};
                // One element through the loader and the merge; the tree above it is tested by itself.
                const ExactScan scan = exact_scan({dtype, &word, 1}, r);
                ASSERT_EQ(scan.bad_elements, bad ? 1U : 0U) << bits;
                ASSERT_EQ(bits_of(scan.max_finite_abs), bits_of(want.scale)) << bits;
                if (bits % 257U == 0) expect_same(tree_summary({dtype, &word, 1}, r), want);
            }
        }
    }
}

TEST(Statistics, ASummaryDoesNotDependOnItsNeighbours) {
    const Gradient a = spread_gradient(DType::kF32, 2000, 11);
    const Gradient b = spread_gradient(DType::kBF16, 300, 12);
    const GradientView both[] = {b.view(), a.view(), b.view()};
    expect_same(group_statistics(both, 1.0F).summaries[1], tree_summary(a.view(), 1.0F));
}

TEST(Statistics, ADamagedSummaryIsRefusedInTheCombination) {
    const std::uint64_t elements[] = {1, 1};
    const GradientSummary summaries[] = {{1.0F, 1.0F, 0.0F}, {-1.0F, 1.0F, 0.0F}};
    try {
        (void)combine_report(elements, summaries, 1.0F);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInvalidSummary);
        EXPECT_EQ(error.site().entry, 1U);
    }
}

}  // namespace
}  // namespace gradguard::reference
