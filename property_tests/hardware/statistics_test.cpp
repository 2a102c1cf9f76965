// SPDX-License-Identifier: Apache-2.0
// The scan (contract section 4): the tree's bits and the accounting, whatever the size, the type and the values.
#include "kernels/host/statistics.h"

#include <limits>

#include "property_tests/hardware/hardware_test.h"
#include "reference/contract/dtype.h"
#include "reference/model/statistics.h"
#include "tests/support/group_values.h"
#include "tests/support/values.h"

namespace gradguard::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class HardwareStatistics : public Hardware {
  protected:
    GradientStatsReport scan(const std::vector<Gradient>& group, float scale = 1.0F) const {
        std::vector<Tensor> tensors;
        for (const Gradient& one : group) tensors.push_back(upload(queue, one.dtype, one.bytes));
        return gradient_stats_sync(tensors, scale);
    }
    static GradientStatsReport oracle(const std::vector<Gradient>& group, float scale = 1.0F) {
        std::vector<reference::GradientView> views;
        for (const Gradient& one : group) views.push_back(one.view());
        return reference::group_statistics(views, scale);
    }
    void expect_oracles(const std::vector<Gradient>& group, float scale = 1.0F) const {
        EXPECT_EQ(difference(scan(group, scale), oracle(group, scale)), "");
    }
    static Gradient stored_as(DType dtype, const std::vector<float>& values) {
        return {dtype, stored(values, dtype), values.size()};
    }
};
GRADGUARD_ON_HARDWARE(HardwareStatistics);

// One block up to 1024 elements, then two launches; 1024 blocks from 1047553 on, and beyond 1048576 a thread's loop
// comes round once more.
TEST_P(HardwareStatistics, OfEverySizeAtAnEdgeOfTheGeometryHaveTheTreesBitsAndTheContractsAccounting) {
    for (const std::size_t size : {1,    2,    31,   32,   33,   255,   256,   257,   511,    512,    513,   1023,
                                   1024, 1025, 2047, 2048, 2049, 65535, 65536, 65537, 262143, 262144, 262145}) {
        for (const DType dtype : kAllDTypes) {
            SCOPED_TRACE(std::to_string(size) + " " + std::string(to_string(dtype)));
            const std::vector<Gradient> group = {stored_as(dtype, ordinary(size, 17 + size))};
            const GradientStatsReport got = scan(group, 3.0F);
            EXPECT_EQ(difference(got, oracle(group, 3.0F)), "");
            const std::uint64_t blocks = (size + 1023) / 1024;
            EXPECT_EQ(got.reduction_launches, blocks == 1 ? 1U : 2U);
            EXPECT_EQ(got.readback_bytes, 12U);
            EXPECT_EQ(got.scratch_bytes, 12 * blocks + (blocks > 1 ? 12 : 0));
        }
    }
}

TEST_P(HardwareStatistics, OfTheGreatestGridHaveTheTreesBits) {
    for (const std::size_t size : {1047552, 1048575, 1048576, 1048577}) {
        const std::vector<Gradient> group = {stored_as(DType::kF16, ordinary(size, size))};
        const GradientStatsReport got = scan(group);
        EXPECT_EQ(difference(got, oracle(group)), "") << size;
        EXPECT_EQ(got.scratch_bytes, 12 * (size == 1047552 ? 1023U : 1024U) + 12) << size;
    }
}

/// 3 at one place, 0 elsewhere, for each place: a tensor for each.
TEST_P(HardwareStatistics, SeeEachElementOnce) {
    for (const std::size_t size : {1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025}) {
        std::vector<Tensor> group;
        std::vector<float> values(2 * size - 1, 0.0F);
        values[size - 1] = 3.0F;
        const Tensor all = upload(queue, values);
        for (std::size_t i = 0; i < size; ++i) {  // a window over them that starts i places before the 3
            group.push_back(Tensor::over(queue, DType::kF32, {size}, all.storage, 4 * (size - 1 - i)));
        }
        const GradientStatsReport report = gradient_stats_sync(group);
        ASSERT_EQ(report.summaries.size(), size);
        for (std::size_t i = 0; i < size; ++i) {
            EXPECT_EQ(report.summaries[i].scale, 3.0F) << size << ", place " << i;
            EXPECT_EQ(report.summaries[i].sumsq, 1.0F) << size << ", place " << i;
            EXPECT_EQ(report.summaries[i].bad, 0.0F) << size << ", place " << i;
        }
    }
}

TEST_P(HardwareStatistics, SeeElementsAroundEveryConstantOnce) {
    for (const std::size_t size : {65537, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 1048577}) {
        for (const std::size_t place :
             {std::size_t{0}, std::size_t{255}, std::size_t{256}, size / 2, size - 257, size - 256, size - 1}) {
            std::vector<float> values(size, 0.0F);
            values[place] = 3.0F;
            const GradientStatsReport report = scan({f32(values)});
            EXPECT_EQ(report.stats.total_norm, 3.0) << size << ", place " << place;
            EXPECT_EQ(report.stats.max_finite_abs, 3.0F) << size << ", place " << place;
        }
    }
}

TEST_P(HardwareStatistics, HaveTheSameBitsTwentyTimesAndInBothBuilds) {
    for (const bool contracted : {false, true}) {
        device->set_kernel_source(kernels(contracted));
        const std::vector<Gradient> group = {stored_as(DType::kF32, ordinary(100000, 1)),
                                             stored_as(DType::kF16, ordinary(3000, 2)),
                                             stored_as(DType::kBF16, ordinary(1000, 3))};
        const GradientStatsReport want = oracle(group, 128.0F);
        std::vector<Tensor> tensors;
        for (const Gradient& one : group) tensors.push_back(upload(queue, one.dtype, one.bytes));
        for (int again = 0; again < 20; ++again) {
            ASSERT_EQ(difference(gradient_stats_sync(tensors, 128.0F), want), "") << again;
        }
    }
}

TEST_P(HardwareStatistics, OfValuesOfEveryClassAreTheOracles) {
    for (const float scale : {1.0F, 3.0F, 0x1p-112F, 0x1p-127F, 0x1.fffffep127F}) {
        std::vector<float> finite;
        std::vector<float> any;
        for (std::uint32_t i = 0; i < 5000; ++i) {
            finite.push_back(spread_float(i * 2654435761U));
            any.push_back(any_float(i * 2246822519U));
        }
        SCOPED_TRACE(scale);
        expect_oracles({f32(finite)}, scale);
        expect_oracles({f32(any), f32(finite)}, scale);
    }
}

TEST_P(HardwareStatistics, KeepSubnormals) {
    for (const float value : {0x1p-149F, 0x1.8p-130F, 0x1p-127F, -0x1p-149F}) {
        const GradientStatsReport report = scan({f32({0.0F, value, -0.0F})});
        EXPECT_EQ(bits(report.stats.max_finite_abs), bits(std::fabs(value)));
        EXPECT_EQ(report.stats.total_norm, std::fabs(static_cast<double>(value)));
        expect_oracles({f32({value, 2 * value, value})}, 0.5F);
    }
    // Subnormal only after unscaling, and of the stored type.
    expect_oracles({f32(std::vector<float>(300, 0x1p-120F))}, 0x1p20F);
    expect_oracles({gradient_of_words(DType::kF16, std::vector<std::uint16_t>{1, 0x3FF, 0x8001}),
                    gradient_of_words(DType::kBF16, std::vector<std::uint16_t>{1, 0x7F, 0x8001})});
}

TEST_P(HardwareStatistics, FlagBadElementsWhereverTheyAreAndLetThemEnterNothingElse) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
        for (const std::size_t size : {std::size_t{1}, std::size_t{1024}, std::size_t{1025}, std::size_t{5000}}) {
            for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
                std::vector<float> values = ordinary(size, size);
                values[place] = bad;
                const std::vector<Gradient> group = {f32({1.0F}), f32(values)};
                const GradientStatsReport got = scan(group);
                EXPECT_EQ(difference(got, oracle(group)), "") << size << ", place " << place;
                EXPECT_FALSE(got.stats.all_finite);
                EXPECT_EQ(got.stats.total_norm, std::numeric_limits<double>::infinity());
                EXPECT_EQ(got.summaries[0].bad, 0.0F);
                EXPECT_EQ(got.summaries[1].bad, 1.0F);
            }
        }
    }
}

TEST_P(HardwareStatistics, AFiniteValueThatOverflowsOnUnscalingIsBad) {
    expect_oracles({f32({1e30F, 2.0F})}, 1e-10F);
    EXPECT_FALSE(scan({f32({1e30F, 2.0F})}, 1e-10F).stats.all_finite);
}

TEST_P(HardwareStatistics, LargeAndSmallValuesNeitherOverflowNorVanish) {
    EXPECT_EQ(scan({f32({3e30F, 4e30F})}).stats.all_finite, true);
    for (const float value : {3e38F, 1e30F, 1e-30F, 1e-38F})
        expect_oracles({f32({value, value, -value, 0.5F * value})});
    expect_oracles({f32({3e38F, 1e-45F}), f32({1e-45F, 3e38F})});
}

TEST_P(HardwareStatistics, OfAGroupAreThoseOfItsTensorsWithEmptyOnesAnywhere) {
    const Gradient none = f32({});
    expect_oracles({none, stored_as(DType::kF32, ordinary(1500, 1)), none, stored_as(DType::kBF16, ordinary(40, 2)),
                    stored_as(DType::kF16, ordinary(1025, 3)), none},
                   7.0F);
    const GradientStatsReport empty = scan({none, none});
    EXPECT_EQ(empty.stats.total_norm, 0.0);
    EXPECT_EQ(empty.reduction_launches + empty.readback_bytes + empty.scratch_bytes, 0U);
}

TEST_P(HardwareStatistics, OfManyTensorsComeInOneReadbackInTheirOrder) {
    std::vector<Gradient> group;
    for (std::size_t i = 0; i < 500; ++i) group.push_back(stored_as(kAllDTypes[i % 3], ordinary(1 + i % 40, i)));
    expect_oracles(group, 2.0F);
}

TEST_P(HardwareStatistics, AViewMayStartAnywhereInItsAllocation) {
    for (const DType dtype : kAllDTypes) {
        const std::vector<float> values = ordinary(1100, 4);
        const Tensor whole = upload(queue, dtype, stored(values, dtype));
        for (const std::size_t first : {1, 2, 3, 5, 7}) {
            const std::vector<float> part(values.begin() + static_cast<std::ptrdiff_t>(first), values.end());
            const Tensor view = Tensor::over(queue, dtype, {part.size()}, whole.storage, first * element_bytes(dtype));
            EXPECT_EQ(difference(gradient_stats_sync(std::vector<Tensor>{view}), oracle({stored_as(dtype, part)})), "")
                << first;
        }
    }
}

}  // namespace
}  // namespace gradguard::testing
