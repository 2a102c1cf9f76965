// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "reference/model/statistics.h"
#include "tests/host/values.h"

namespace gradguard {
namespace {

using testing::bits;
using testing::from_bits;
using testing::ordinary;
using testing::RecordedDevice;
using testing::stored;
constexpr double kInfiniteNorm = std::numeric_limits<double>::infinity();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor gradient(const RecordedDevice& gpu, const std::vector<float>& values, DType dtype = DType::kF32) {
    Tensor tensor = Tensor::allocate(gpu.queue, dtype, {values.size()});
    tensor.upload(stored(values, dtype));
    return tensor;
}

GradientStatsReport scan(const RecordedDevice& gpu, const std::vector<float>& values, DType dtype = DType::kF32,
                         float scale = 1.0F) {
    const std::vector<Tensor> group = {gradient(gpu, values, dtype)};
    return gradient_stats_sync(group, scale);
}

double norm(const std::vector<float>& values) { return scan(RecordedDevice(), values).stats.total_norm; }

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 65537, 1048575, 1048576, 1048577};

class StatisticsOfSize : public ::testing::TestWithParam<std::tuple<std::size_t, DType>> {};

TEST_P(StatisticsOfSize, HasTheTreesBitsAndTheContractsAccounting) {
    const auto [size, dtype] = GetParam();
    const RecordedDevice gpu;
    const std::vector<float> values = ordinary(size, 17 + size);
    const std::vector<std::byte> bytes = stored(values, dtype);
    const reference::GradientView view = {dtype, bytes.data(), size};
    const std::vector<Tensor> group = {gradient(gpu, values, dtype)};
    gpu.forget_calls();
    const GradientStatsReport got = gradient_stats_sync(group, 3.0F);
    const GradientStatsReport want = reference::group_statistics(std::span(&view, 1), 3.0F);

    EXPECT_EQ(bits(got.summaries[0].scale), bits(want.summaries[0].scale));
    EXPECT_EQ(bits(got.summaries[0].sumsq), bits(want.summaries[0].sumsq));
    EXPECT_EQ(bits(got.summaries[0].bad), bits(want.summaries[0].bad));
    EXPECT_EQ(got.stats.total_norm, want.stats.total_norm);
    EXPECT_EQ(bits(got.stats.max_finite_abs), bits(want.stats.max_finite_abs));
    EXPECT_TRUE(got.stats.all_finite);
    EXPECT_EQ(got.stats.elements, size);
    EXPECT_EQ(got.stats.tensors, 1U);
    EXPECT_EQ(got.stats.gradient_scale, 3.0F);

    // The accounting once more as literals, and as the device saw it.
    const std::uint64_t blocks = std::min<std::uint64_t>((size + 1023) / 1024, 1024);
    const std::uint64_t launches = size == 0 ? 0 : blocks == 1 ? 1 : 2;
    EXPECT_EQ(got.reduction_launches, launches);
    EXPECT_EQ(got.readback_bytes, size == 0 ? 0U : 12U);
    EXPECT_EQ(got.scratch_bytes, size == 0 ? 0U : 12 * blocks + (blocks > 1 ? 12 : 0));
    using harness::DeviceCall;
    EXPECT_EQ(gpu.log->count(DeviceCall::kLaunch), launches);
    EXPECT_EQ(gpu.log->bytes(DeviceCall::kReadback), got.readback_bytes);
    EXPECT_EQ(gpu.log->count(DeviceCall::kReadback), size == 0 ? 0U : 1U);
    EXPECT_EQ(gpu.log->bytes(DeviceCall::kAllocate), got.scratch_bytes);
}

std::string size_and_dtype(const ::testing::TestParamInfo<StatisticsOfSize::ParamType>& info) {
    return std::to_string(std::get<0>(info.param)) + "_" + std::string(to_string(std::get<1>(info.param)));
}
INSTANTIATE_TEST_SUITE_P(Sizes, StatisticsOfSize,
                         ::testing::Combine(::testing::ValuesIn(kSizes), ::testing::ValuesIn(kAllDTypes)),
                         size_and_dtype);

TEST(Statistics, EveryElementIsSeenExactlyOnce) {
    const RecordedDevice gpu;
    for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{255}, std::size_t{256}, std::size_t{257},
                                   std::size_t{1023}, std::size_t{1024}, std::size_t{1025}, std::size_t{5000}}) {
        std::vector<std::size_t> places = {0, size - 1, size / 2};
        for (std::size_t edge = 255; edge + 2 < size; edge += 256) {
            places.insert(places.end(), {edge, edge + 1});
        }
        for (const std::size_t place : places) {
            std::vector<float> values(size, 0.0F);
            values[place] = 3.0F;
            const GradientStatsReport report = scan(gpu, values);
            ASSERT_EQ(report.stats.total_norm, 3.0) << "size " << size << ", place " << place;
            ASSERT_EQ(report.stats.max_finite_abs, 3.0F);
            ASSERT_EQ(report.stats.elements, size);
        }
    }
}

TEST(Statistics, OneHugeFiniteValueDoesNotOverflow) {
    EXPECT_EQ(norm({1e20F, 1.0F, 1.0F}), 1.0000000200408773e20);
    EXPECT_EQ(norm({2e20F}), 2.0000000400817547e20);
    EXPECT_EQ(norm(std::vector<float>(100, 1e20F)), 1.0000000200408773e21);
    EXPECT_EQ(norm(std::vector<float>(128, 1e19F)), 1.1313708476930323e20);
}

TEST(Statistics, ExtremePairsGiveFiniteRightNorms) {
    EXPECT_EQ(norm({1e30F, -1e30F}), std::sqrt(2.0 * (double{1e30F} * double{1e30F})));
    EXPECT_EQ(norm({1e-30F, -1e-30F}), std::sqrt(2.0 * (double{1e-30F} * double{1e-30F})));
    EXPECT_EQ(norm({3e38F, 3e38F}), std::sqrt(2.0 * (double{3e38F} * double{3e38F})));
}

TEST(Statistics, SubnormalsAreNotZero) {
    EXPECT_EQ(norm({0x1p-149F}), 1.401298464324817e-45);
    EXPECT_EQ(norm({0x1p-127F}), 5.877471754111438e-39);
    EXPECT_EQ(norm({from_bits(5)}), 7.006492321624085e-45);
    EXPECT_EQ(norm({0x1p-148F, 0x1p-149F}), 3.133398622996355e-45);
    EXPECT_EQ(norm(std::vector<float>(128, 0x1p-149F)), 1.5853882345445977e-44);
    EXPECT_EQ(norm({1e-23F, 0.0F}), 9.999999998199587e-24);
}

TEST(Statistics, ZerosOfEitherSignCountAsNothing) {
    const GradientStatsReport report = scan(RecordedDevice(), {0.0F, -0.0F, 0.0F});
    EXPECT_EQ(bits(report.summaries[0].scale), 0U);
    EXPECT_EQ(bits(report.summaries[0].sumsq), 0U);
    EXPECT_EQ(report.stats.total_norm, 0.0);
    EXPECT_EQ(norm({-0.0F, 1.0F}), 1.0);
}

TEST(Statistics, HalfPrecisionNormIsNotTakenInHalfPrecision) {
    const RecordedDevice gpu;
    EXPECT_EQ(scan(gpu, {300.0F}, DType::kF16).stats.total_norm, 300.0);
    EXPECT_EQ(scan(gpu, {600.0F, 800.0F}, DType::kF16).stats.total_norm, 1000.0);
    EXPECT_EQ(scan(gpu, {65504.0F, 65504.0F, 65504.0F, 65504.0F}, DType::kF16).stats.total_norm, 131008.0);
}

TEST(Statistics, BadElementsAreFlaggedAndEnterNothingElse) {
    const RecordedDevice gpu;
    for (const float bad : {kNan, kInfinity, -kInfinity, from_bits(0x7F800001), from_bits(0xFFFFFFFF)}) {
        for (const std::size_t place : {0U, 255U, 256U, 1023U, 1024U}) {
            std::vector<float> values(1025, 0.5F);
            values[3] = -2.0F;
            values[place] = bad;
            const GradientStatsReport report = scan(gpu, values);
            EXPECT_FALSE(report.stats.all_finite);
            EXPECT_EQ(report.stats.total_norm, kInfiniteNorm);
            EXPECT_EQ(report.stats.max_finite_abs, 2.0F);
            EXPECT_EQ(report.summaries[0].bad, 1.0F);
            EXPECT_EQ(report.summaries[0].scale, 2.0F);
            EXPECT_TRUE(std::isfinite(report.summaries[0].sumsq));
            EXPECT_EQ(report.stats.elements, 1025U);
        }
    }
}

TEST(Statistics, TheFlagSurvivesZeroScales) {
    const RecordedDevice gpu;
    std::vector<float> values(5000, 0.0F);
    values[4000] = kNan;
    const GradientStatsReport report = scan(gpu, values);
    EXPECT_FALSE(report.stats.all_finite);
    EXPECT_EQ(report.stats.max_finite_abs, 0.0F);
}

TEST(Statistics, TwoBadElementsDoNotCancel) {
    // In lanes and blocks whose flags meet at each level of both trees, and in one lane's own elements.
    const RecordedDevice gpu;
    for (const DType dtype : kAllDTypes) {
        for (const std::size_t distance : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1280}) {
            std::vector<float> values(5000, 0.0F);
            values[0] = values[distance] = kNan;
            EXPECT_FALSE(scan(gpu, values, dtype).stats.all_finite) << to_string(dtype) << ", distance " << distance;
        }
    }
    std::vector<float> values(300 * 1024, 0.0F);
    values[0] = values[256 * 256] = kNan;  // of blocks 0 and 256, which one lane of the second stage merges
    EXPECT_FALSE(scan(gpu, values).stats.all_finite);
}

TEST(Statistics, TheGreatestFiniteValueIsGoodInEachType) {
    const RecordedDevice gpu;
    const float greatest = from_bits(0x7F7FFFFF);
    for (const auto& [dtype, raw, scale] :
         {std::tuple(DType::kF32, greatest, 1.0F), std::tuple(DType::kF16, 33344.0F, from_bits(0x07024001)),
          std::tuple(DType::kBF16, 0x86p120F, from_bits(0x3F060001))}) {
        const GradientStatsReport report = scan(gpu, {raw}, dtype, scale);
        EXPECT_TRUE(report.stats.all_finite) << to_string(dtype);
        EXPECT_EQ(report.stats.max_finite_abs, greatest) << to_string(dtype);
    }
}

TEST(Statistics, AFiniteValueThatOverflowsOnUnscalingIsBad) {
    const RecordedDevice gpu;
    EXPECT_FALSE(scan(gpu, {3e38F}, DType::kF32, 0.5F).stats.all_finite);
    EXPECT_FALSE(scan(gpu, {from_bits(0x7F7F0000)}, DType::kBF16, 0.5F).stats.all_finite);
    EXPECT_FALSE(scan(gpu, {65504.0F}, DType::kF16, 0x1p-113F).stats.all_finite);
    EXPECT_EQ(scan(gpu, {65504.0F}, DType::kF16, 0x1p-112F).stats.total_norm, 3.4011621342146535e38);
}

TEST(Statistics, UnscalingMultipliesByTheReciprocal) {
    const RecordedDevice gpu;
    EXPECT_EQ(bits(scan(gpu, {5.0F}, DType::kF32, 3.0F).stats.max_finite_abs), 0x3FD55556U);
    EXPECT_EQ(bits(scan(gpu, {9.0F}, DType::kF32, 10.0F).stats.max_finite_abs), 0x3F666667U);
    EXPECT_EQ(scan(gpu, {0x1p-126F}, DType::kF32, 0x1p30F).stats.total_norm, 0.0);
}

TEST(Statistics, TheGroupIsMeasuredAsOneVectorWithEmptyTensorsAnywhere) {
    const RecordedDevice gpu;
    const std::vector<Tensor> group = {gradient(gpu, {}),
                                       gradient(gpu, {3.0F}),
                                       gradient(gpu, {}),
                                       gradient(gpu, {}),
                                       gradient(gpu, {4.0F}, DType::kBF16),
                                       gradient(gpu, {})};
    gpu.forget_calls();
    const GradientStatsReport report = gradient_stats_sync(group);
    EXPECT_EQ(report.stats.total_norm, 5.0);
    EXPECT_EQ(report.stats.tensors, 6U);
    EXPECT_EQ(report.stats.elements, 2U);
    EXPECT_EQ(report.reduction_launches, 2U);
    EXPECT_EQ(report.readback_bytes, 24U);
    EXPECT_EQ(report.scratch_bytes, 24U);
    EXPECT_EQ(report.summaries[1].scale, 3.0F);
    EXPECT_EQ(report.summaries[4].scale, 4.0F);
    EXPECT_EQ(gpu.log->count(harness::DeviceCall::kReadback), 1U);
}

TEST(Statistics, OfNothingMakesNoCall) {
    const RecordedDevice gpu;
    const std::vector<Tensor> empty = {gradient(gpu, {}), gradient(gpu, {})};
    gpu.forget_calls();
    for (const auto& group : {std::vector<Tensor>{}, empty}) {
        const GradientStatsReport report = gradient_stats_sync(group);
        EXPECT_EQ(report.stats.total_norm, 0.0);
        EXPECT_EQ(report.stats.max_finite_abs, 0.0F);
        EXPECT_TRUE(report.stats.all_finite);
        EXPECT_EQ(report.stats.tensors, group.size());
        EXPECT_EQ(report.reduction_launches + report.readback_bytes + report.scratch_bytes, 0U);
    }
    EXPECT_TRUE(gpu.log->calls.empty());
}

TEST(Statistics, ScheduleAndBuildDoNotChangeABit) {
    const std::vector<float> values = ordinary(70000, 5);
    const GradientSummary first = scan(RecordedDevice(), values).summaries[0];
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const GradientSummary again = scan(RecordedDevice(seed % 2 == 0, seed), values).summaries[0];
        EXPECT_EQ(bits(again.scale), bits(first.scale));
        EXPECT_EQ(bits(again.sumsq), bits(first.sumsq));
    }
}

TEST(Statistics, ATensorsSummaryDoesNotDependOnItsNeighbours) {
    const RecordedDevice gpu;
    const std::vector<float> values = ordinary(3000, 9);
    const GradientSummary alone = scan(gpu, values).summaries[0];
    const std::vector<Tensor> group = {gradient(gpu, ordinary(2000, 1)), gradient(gpu, values), gradient(gpu, {kNan})};
    const GradientSummary among = gradient_stats_sync(group).summaries[1];
    EXPECT_EQ(bits(among.scale), bits(alone.scale));
    EXPECT_EQ(bits(among.sumsq), bits(alone.sumsq));
    EXPECT_EQ(among.bad, 0.0F);
}

TEST(Statistics, AViewMayStartInsideItsAllocation) {
    const RecordedDevice gpu;
    Tensor tensor = gradient(gpu, {100.0F, 3.0F, 4.0F, 100.0F});
    tensor.layout.shape = {2};
    tensor.layout.byte_offset = 4;
    const std::vector<Tensor> group = {tensor};
    EXPECT_EQ(gradient_stats_sync(group).stats.total_norm, 5.0);
}

TEST(Statistics, ASmallerGridFollowsTheSameRule) {
    DeviceProperties narrow = RecordedDevice().device->properties();
    narrow.max_blocks_in_x = 3;
    const RecordedDevice gpu(false, 1, {}, narrow);
    const std::vector<float> values = ordinary(10000, 3);
    const reference::GradientView view = {DType::kF32, values.data(), values.size()};
    const GradientStatsReport got = scan(gpu, values);
    const GradientSummary want = reference::tree_summary(view, 1.0F, 3);
    EXPECT_EQ(bits(got.summaries[0].sumsq), bits(want.sumsq));
    EXPECT_EQ(got.scratch_bytes, 48U);
}

TEST(Statistics, ForeignMemoryIsScannedInPlace) {
    const RecordedDevice gpu;
    std::vector<float> values = ordinary(1500, 11);
    const std::vector<float> before = values;
    const Buffer foreign = gpu.inner->map(values.data(), values.size() * sizeof(float));
    const std::vector<Tensor> group = {
        Tensor::over(gpu.queue, DType::kF32, {1500}, Buffer::borrowed(foreign.address, foreign.bytes))};
    const reference::GradientView view = {DType::kF32, before.data(), before.size()};
    EXPECT_EQ(bits(gradient_stats_sync(group).summaries[0].sumsq), bits(reference::tree_summary(view, 1.0F).sumsq));
    EXPECT_EQ(values, before);
}

}  // namespace
}  // namespace gradguard
