// SPDX-License-Identifier: Apache-2.0
// Rows N* and G* of cases.csv: inputs taken from public bug reports, with the value that is right under the contract.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>

#include "reference/fp64/decision.h"
#include "reference/model/statistics.h"
#include "tests/support/values.h"

namespace gradguard::reference {
namespace {

using gradguard::testing::bf16;
using gradguard::testing::f16;
using gradguard::testing::f32;
using gradguard::testing::Gradient;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

GradientStatsReport report_of(const std::vector<Gradient>& gradients, float scale = 1.0F) {
    std::vector<GradientView> views;
    for (const auto& gradient : gradients) views.push_back(gradient.view());
    return group_statistics(views, scale);
}

double exact_norm_of(const std::vector<Gradient>& gradients, float scale = 1.0F) {
    std::vector<GradientView> views;
    for (const auto& gradient : gradients) views.push_back(gradient.view());
    return exact_norm(views, scale);
}

/// The exact norm is `norm`, the contract's norm lies within the closed bound of a tensor this small, and the clip is
/// the row's (`clip_bits` assumes an exact norm).
void expect_norm(const std::vector<Gradient>& gradients, double norm, std::uint32_t clip_bits = 0x3F800000U,
                 float max_norm = 1.0F, float scale = 1.0F) {
    const GradientStatsReport report = report_of(gradients, scale);
    EXPECT_TRUE(report.stats.all_finite);
    EXPECT_EQ(exact_norm_of(gradients, scale), norm);
    // One block, at most 128 elements: D = 8, k = 5 * 8 + 4, half of gamma_k; 2^-50 for the FP64 combination.
    const double gamma = 44 * 0x1p-24 / (1 - 44 * 0x1p-24);
    EXPECT_LE(std::fabs(report.stats.total_norm - norm), (gamma / 2 + 0x1p-50) * norm);
    EXPECT_EQ(bits_of(clip_multiplier(norm, {.max_norm = max_norm})), clip_bits);
}

void expect_bad(const std::vector<Gradient>& gradients, float max_finite_abs = 0.0F, float scale = 1.0F) {
    const GradientStatsReport report = report_of(gradients, scale);
    EXPECT_FALSE(report.stats.all_finite);
    EXPECT_EQ(report.stats.total_norm, HUGE_VAL);
    EXPECT_EQ(report.stats.max_finite_abs, max_finite_abs);
    EXPECT_EQ(exact_norm_of(gradients, scale), HUGE_VAL);
    EXPECT_TRUE(decide(report.stats, {}).skip_update);
}

TEST(StatisticsCases, N01_F16NormAboveTheRootOfItsRange) {
    expect_norm({f16({300.0F})}, 300.0, 0x3B5A740EU);
    EXPECT_EQ(report_of({f16({300.0F})}).stats.total_norm, 300.0);
}
TEST(StatisticsCases, N03_F16NormOfOrdinaryData) {
    expect_norm({f16({1000.0F})}, 1000.0, 0x3A83126FU);
    expect_norm({f16({600.0F, 800.0F})}, 1000.0, 0x3A83126FU);
}
TEST(StatisticsCases, N04_F16NormThatIsRepresentable) {
    expect_norm({f16({200.0F, 200.0F, 200.0F})}, 346.41016151377545, 0x3B3D2FA7U);
}
TEST(StatisticsCases, N05_NormLargerThanTheStorageType) {
    expect_norm({f16(std::vector<float>(4, 65504.0F))}, 131008.0, 0x37001002U);
    EXPECT_EQ(report_of({f16(std::vector<float>(4, 65504.0F))}).stats.total_norm, 131008.0);
}
TEST(StatisticsCases, N07_HugeFiniteGradientsAreNotErased) {
    expect_norm({f32(std::vector<float>(100, 1e20F))}, 1.0000000200408773e21, 0x1C971DA0U);
    expect_bad({f32(std::vector<float>(100, kInfinity))});
}
TEST(StatisticsCases, N08_OneLargeValue) {
    expect_norm({f32({1e20F, 1.0F, 1.0F})}, 1.0000000200408773e20, 0x1E3CE508U);
    EXPECT_EQ(report_of({f32({1e20F, 1.0F, 1.0F})}).stats.max_finite_abs, 1e20F);
}
TEST(StatisticsCases, N09_OneElement) {
    expect_norm({f32({2e20F})}, 2.0000000400817547e20, bits_of(clip_multiplier(2.0000000400817547e20, {})));
    expect_norm({f32({2e-28F})}, 2.0000000063421537e-28);
}
TEST(StatisticsCases, N10_TinyVector) { expect_norm({f32({1e-20F})}, 9.999999682655225e-21); }
TEST(StatisticsCases, N11_TinyAndZero) { expect_norm({f32({1e-23F, 0.0F})}, 9.999999998199587e-24); }
TEST(StatisticsCases, N13_HugeGradientsClipped) {
    expect_norm({f32(std::vector<float>(128, 1e19F))}, 1.1313708476930323e20, 0x1EA6F5FBU, 2.0F);
}
TEST(StatisticsCases, N15_AnInfinityIsNeverReplacedByANumber) { expect_bad({f32({kInfinity, 1.0F})}, 1.0F); }

TEST(StatisticsCases, N16_ManyOnesAreAddedExactly) {
    const std::vector<std::uint16_t> ones(1U << 26U, 0x3F80);  // BF16
    for (const auto& [n, norm] : {std::pair{1U << 24U, 4096.0}, {1U << 25U, 5792.618751480198}, {1U << 26U, 8192.0}}) {
        const GradientView view{DType::kBF16, ones.data(), n};
        EXPECT_EQ(tensor_norm(tree_summary(view, 1.0F)), norm);
    }
}
TEST(StatisticsCases, N18_LeastNormalBesideZeros) {
    expect_norm({f32({0x1p-126F}), f32({0.0F})}, 1.1754943508222875e-38);
    std::vector<float> blocks(2048, 0.0F);
    blocks[300] = 0x1p-126F;
    EXPECT_EQ(report_of({f32(blocks)}).stats.total_norm, 1.1754943508222875e-38);
}
TEST(StatisticsCases, N19_TheFlagMergesIndependentlyOfTheScale) {
    std::vector<float> zeros(5000, 0.0F);
    zeros[256 * 3 + 7] = kNaN;
    expect_bad({f32(zeros)});
    expect_bad({f32({0.0F, 0.0F}), f32({kNaN})});
}
TEST(StatisticsCases, N22_N23_Subnormals) {
    expect_norm({f32({5 * 0x1p-149F})}, 7.006492321624085e-45);
    expect_norm({f32(std::vector<float>(128, 0x1p-149F))}, 1.5853882345445977e-44);
    expect_norm({f32({0x1p-148F, 0x1p-149F})}, 3.133398622996355e-45);
    EXPECT_EQ(report_of({f32(std::vector<float>(128, 0x1p-149F))}).stats.total_norm, 1.5853882345445977e-44);
}
TEST(StatisticsCases, N25_NaNAnywhere) {
    expect_bad({f32({0.0F, kNaN})});
    expect_bad({f32({kNaN, 0.0F})});
    std::vector<float> last(1025, 1.0F);
    last.back() = kNaN;
    expect_bad({f32(last)}, 1.0F);
}
TEST(StatisticsCases, N26_InfinitiesStayOutOfThePair) {
    for (const auto& values : {std::vector{kInfinity}, {-kInfinity}, {kInfinity, -kInfinity}}) {
        const GradientStatsReport report = report_of({f32(values)});
        EXPECT_EQ(report.stats.total_norm, HUGE_VAL);
        EXPECT_EQ(report.summaries[0].scale, 0.0F);
        EXPECT_EQ(report.summaries[0].sumsq, 0.0F);
        EXPECT_EQ(report.summaries[0].bad, 1.0F);
    }
}
TEST(StatisticsCases, N27_ZerosBesideOne) {
    EXPECT_EQ(report_of({f32({0.0F, 1.0F})}).stats.total_norm, 1.0);
    EXPECT_EQ(report_of({f32({-0.0F, 1.0F})}).stats.total_norm, 1.0);
    const GradientStatsReport zeros = report_of({f32({0.0F, 0.0F, 0.0F})});
    EXPECT_EQ(zeros.stats.total_norm, 0.0);
    EXPECT_EQ(bits_of(zeros.summaries[0].scale), 0U);
    EXPECT_EQ(bits_of(zeros.summaries[0].sumsq), 0U);
}
TEST(StatisticsCases, N31_SubnormalsAreKept) {
    EXPECT_EQ(report_of({f32({0x1p-149F})}).stats.total_norm, 1.401298464324817e-45);
    EXPECT_EQ(report_of({f32({0x1p-127F})}).stats.total_norm, 5.877471754111438e-39);
}
TEST(StatisticsCases, N32_TheMaximumOfABadTensorIsThatOfItsGoodElements) {
    for (const std::size_t place : {0U, 255U, 256U, 1023U, 1024U}) {
        std::vector<float> values(1025);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F + static_cast<float>(i % 900);
        values[899] = -5000.0F;
        values[place] = kNaN;
        expect_bad({f32(values)}, 5000.0F);
    }
}
TEST(StatisticsCases, N33_OneHotIsSeenExactlyOnceAtEveryBlockEdge) {
    for (const std::size_t n :
         {1U, 2U, 255U, 256U, 257U, 1023U, 1024U, 1025U, 262143U, 262144U, 262145U, 1048575U, 1048576U, 1048577U}) {
        for (const std::size_t place : {std::size_t{0}, std::size_t{255}, std::size_t{256}, std::size_t{1023},
                                        std::size_t{1024}, std::size_t{262143}, std::size_t{262144}, n - 1}) {
            if (place >= n) continue;
            std::vector<std::uint16_t> words(n, 0);
            words[place] = 0x4040;  // 3 in BF16
            const GradientView view{DType::kBF16, words.data(), n};
            const GradientStatsReport report = group_statistics({&view, 1}, 1.0F);
            ASSERT_EQ(report.stats.total_norm, 3.0) << n << " " << place;
            ASSERT_EQ(report.stats.elements, n);
        }
    }
}
TEST(StatisticsCases, N38_MillionsOfF16Values) {
    const std::vector<std::uint16_t> words(4194304, 0x3E00);  // 1.5
    const GradientView view{DType::kF16, words.data(), words.size()};
    EXPECT_EQ(tensor_norm(tree_summary(view, 1.0F)), 3072.0);
}
TEST(StatisticsCases, C09_C10_OneNormForTheGroupWithoutDeduplication) {
    EXPECT_EQ(report_of({f32({3.0F}), f32({4.0F})}).stats.total_norm, 5.0);
    EXPECT_EQ(report_of({f32({5.0F})}).stats.total_norm, 5.0);
    EXPECT_EQ(report_of({f32({5.0F}), f32({5.0F})}).stats.total_norm, 7.0710678118654755);
}
TEST(StatisticsCases, C12_C13_TheNormIsThatOfUnscaledGradients) {
    EXPECT_EQ(report_of({f32({4.0F})}, 4.0F).stats.total_norm, 1.0);
    EXPECT_EQ(report_of({f32({65536.0F})}, 65536.0F).stats.total_norm, 1.0);
}
TEST(StatisticsCases, G01_OverflowOnUnscalingIsBad) {
    expect_bad({f32({3e38F})}, 0.0F, 0.5F);
    expect_bad({bf16({float_of(0x7F7F0000U)})}, 0.0F, 0.5F);
    expect_bad({f16({65504.0F})}, 0.0F, 0x1p-113F);
    expect_norm({f16({65504.0F})}, 3.4011621342146535e38, bits_of(clip_multiplier(3.4011621342146535e38, {})), 1.0F,
                0x1p-112F);
}
TEST(StatisticsCases, G05_UnderflowOnUnscalingIsNotBad) {
    const GradientStatsReport report = report_of({f32({0x1p-126F})}, 0x1p30F);
    EXPECT_TRUE(report.stats.all_finite);
    EXPECT_EQ(report.stats.total_norm, 0.0);
    EXPECT_EQ(decide(report.stats, {}).clip_multiplier, 1.0F);
}
TEST(StatisticsCases, G09_EveryTensorIsLookedAt) {
    expect_bad({f32({1.0F}), f32({2.0F}), f32({kNaN})}, 2.0F);
    expect_bad({f32({1.0F}), f32({2.0F}), f32({3.0F, kNaN})}, 3.0F);
}
TEST(StatisticsCases, G15_UnscalingMultipliesByTheReciprocal) {
    EXPECT_EQ(bits_of(report_of({f32({5.0F})}, 3.0F).stats.max_finite_abs), 0x3FD55556U);
    EXPECT_EQ(bits_of(report_of({f32({9.0F})}, 10.0F).stats.max_finite_abs), 0x3F666667U);
}
TEST(StatisticsCases, M13_M14_EmptyTensorsDoNotShiftTheOthers) {
    const std::vector<Gradient> gradients = {f32({}), f16({3.0F, 4.0F}), bf16({}), f32({}), f32({12.0F}), f32({})};
    const GradientStatsReport report = report_of(gradients);
    EXPECT_EQ(report.stats.total_norm, 13.0);
    EXPECT_EQ(report.stats.tensors, 6U);
    EXPECT_EQ(report.stats.elements, 3U);
    EXPECT_EQ(report.readback_bytes, 24U);
    EXPECT_EQ(report.reduction_launches, 2U);
    EXPECT_EQ(report.summaries[1].scale, 4.0F);
    EXPECT_EQ(report.summaries[4].scale, 12.0F);
}
TEST(StatisticsCases, NoTensorsAndOnlyEmptyTensors) {
    for (const auto& gradients : {std::vector<Gradient>{}, {f32({}), f16({})}}) {
        const GradientStatsReport report = report_of(gradients);
        EXPECT_EQ(report.stats.total_norm, 0.0);
        EXPECT_EQ(report.stats.max_finite_abs, 0.0F);
        EXPECT_TRUE(report.stats.all_finite);
        EXPECT_EQ(report.reduction_launches + report.readback_bytes + report.scratch_bytes, 0U);
    }
}
TEST(StatisticsCases, ValuesWhoseSquaresLeaveFp32) {
    expect_norm({f32({1e30F, -1e30F})}, exact_norm_of({f32({1e30F, 1e30F})}),
                bits_of(clip_multiplier(exact_norm_of({f32({1e30F, 1e30F})}), {})));
    EXPECT_EQ(report_of({f32({3e38F, 3e38F})}).stats.total_norm, std::sqrt(2.0 * double(3e38F) * double(3e38F)));
    EXPECT_EQ(report_of({f32({1e-30F, -1e-30F})}).stats.total_norm, std::sqrt(2.0 * double(1e-30F) * double(1e-30F)));
    EXPECT_EQ(report_of({f32(std::vector<float>(16, kMax))}).stats.total_norm, 4.0 * double(kMax));
}

}  // namespace
}  // namespace gradguard::reference
