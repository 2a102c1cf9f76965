// SPDX-License-Identifier: Apache-2.0
// Rows M* of cases.csv: layouts, element counts and groups with empty tensors. Hexadecimal values are FP32 bit
// patterns.
#include <gtest/gtest.h>

#include <limits>

#include "harness/devices/virtual_device.h"
#include "kernels/host/guarded_adamw.h"
#include "property_tests/reported/reported_case.h"
#include "reference/model/validation.h"

namespace gradguard::testing {
namespace {

using harness::Outcome;
using reference::bits_of;
using Shape = std::vector<std::uint64_t>;

harness::CaseEntry empty_entry() { return entry_of(f32({})); }
harness::CaseEntry empty_entry_after(std::uint64_t step) { return entry_of({}, f32({}), step, {}, {}); }

void expect_empty_and_unchanged(const harness::OutcomeEntry& entry, std::optional<std::uint64_t> step) {
    EXPECT_FALSE(entry.updated);
    EXPECT_TRUE(entry.parameters.empty());
    ASSERT_EQ(entry.state.has_value(), step.has_value());
    if (step) {
        EXPECT_EQ(entry.state->step, *step);
    }
}

TEST(Reported, M01_AnEmptyTensorAfterAFullOneDoesNotStopItsUpdate) {
    const auto full = entry_of(f32({0.5F, 0.5F, 0.5F, 0.5F}));
    on_every_subject(guarded({full, empty_entry_after(7)}), [](const Outcome& outcome) {
        const auto& entries = outcome.steps[0].entries;
        EXPECT_TRUE(entries[0].updated);
        EXPECT_EQ(entries[0].parameters, std::vector<float>(4, reference::float_of(0x3F7FBE75)));
        expect_empty_and_unchanged(entries[1], 7);
    });
    on_every_subject(guarded({full, empty_entry()}), [](const Outcome& outcome) {
        expect_empty_and_unchanged(outcome.steps[0].entries[1], std::nullopt);
    });
}

TEST(Reported, M02_AListThatEndsWithAnEmptyTensorIsUpdatedWhole) {
    const auto one = entry_of(f32({0.5F}));
    on_every_subject(guarded({one, one, empty_entry(), one, empty_entry()}), [](const Outcome& outcome) {
        const harness::StepOutcome& step = outcome.steps[0];
        for (const std::size_t i : {0U, 1U, 3U}) {
            EXPECT_TRUE(step.entries[i].updated);
            EXPECT_EQ(bits_of(step.entries[i].parameters[0]), 0x3F7FBE75U);
        }
        for (const std::size_t i : {2U, 4U}) expect_empty_and_unchanged(step.entries[i], std::nullopt);
        EXPECT_EQ(step.report.value().stats.tensors, 5U);
        EXPECT_EQ(step.report.value().stats.elements, 3U);
    });
}

TEST(Reported, M04_TheStepOfAnEmptyEntryInALiveGroupStays) {
    on_every_subject(guarded({empty_entry_after(7), entry_of(f32({0.5F}))}), [](const Outcome& outcome) {
        expect_empty_and_unchanged(outcome.steps[0].entries[0], 7);
        EXPECT_TRUE(outcome.steps[0].entries[1].updated);
    });
}

/// A dense tensor without values: only its description is ever looked at.
harness::CaseTensor described(const Shape& shape) {
    harness::CaseTensor tensor;
    tensor.layout = {DType::kF32, shape, dense_strides(shape), 0};
    tensor.storage_bytes = std::uint64_t{1} << 36U;
    return tensor;
}

/// Refused as parameter of a step, and as gradient of a scan.
void expect_shape_refused(const Shape& shape) {
    SCOPED_TRACE(list_to_string(shape));
    expect_refused(guarded({{described(shape), described(shape), std::nullopt}}), ErrorKind::kInvalidTensor, 0,
                   "parameters");
    harness::Case scan = guarded({{ones(0), described(shape), std::nullopt}});
    scan.operation = harness::Operation::kStatistics;
    expect_refused(scan, ErrorKind::kInvalidTensor, 0, "gradients");
}

TEST(Reported, M06_CountsFrom2To30UpAreRefusedAndNeverWrapped) {
    for (const std::uint64_t count : {std::uint64_t{1} << 30U, std::uint64_t{1} << 31U, std::uint64_t{1} << 32U}) {
        expect_shape_refused({count});
    }
    // 2^30 - 1 passes. A requested skip validates everything and touches nothing, so no storage is needed.
    const std::uint64_t most = (std::uint64_t{1} << 30U) - 1;
    const auto device = harness::VirtualDevice::create();
    const std::shared_ptr<Queue> queue = device->create_queue();
    const Tensor tensor = Tensor::over(queue, DType::kF32, {most}, Buffer::borrowed(std::uint64_t{1} << 35U, 4 * most));
    const std::vector<AdamWEntry> entries = {{tensor, tensor, std::nullopt}};
    EXPECT_EQ(guarded_adamw_step(entries, {}, {.skip_update = true}).skip_reason, SkipReason::kRequested);
    const reference::TensorDescription described_tensor = {tensor.layout, 4 * most, 0, 0};
    EXPECT_FALSE(reference::check_tensor(described_tensor, true, 0, "gradients"));
}

TEST(Reported, M07_ProductsOfDimensionsDoNotWrap) {
    expect_shape_refused({46341, 46341});
    expect_shape_refused({65536, 65536});
    expect_shape_refused({4294967296, 0});
    const harness::CaseTensor empty = described({4294967295, 0});
    on_every_subject(guarded({{empty, empty, std::nullopt}}), [](const Outcome& outcome) {
        ASSERT_FALSE(outcome.steps[0].error);
        EXPECT_EQ(outcome.steps[0].skip_reason, SkipReason::kEmpty);
        expect_empty_and_unchanged(outcome.steps[0].entries[0], std::nullopt);
    });
}

TEST(Reported, M08_FourTimesTheCountFitsIn32Bits) {
    expect_shape_refused({std::uint64_t{1} << 16U, std::uint64_t{1} << 14U});
}

TEST(Reported, M11_TheStrideOfADimensionOfSizeOneIsIrrelevant) {
    for (const std::int64_t stride : {1, 7}) {
        harness::CaseEntry entry = entry_of(f32(std::vector<float>(200, 0.5F)));
        for (harness::CaseTensor* const tensor : {&entry.parameters, &entry.gradients}) {
            tensor->layout.shape = {2, 1, 100};
            tensor->layout.strides = {100, stride, 1};
        }
        on_every_subject(guarded({entry}), [](const Outcome& outcome) {
            ASSERT_FALSE(outcome.steps[0].error);
            EXPECT_TRUE(outcome.steps[0].entries[0].updated);
            EXPECT_EQ(outcome.steps[0].report.value().stats.elements, 200U);
        });
    }
}

TEST(Reported, M12_ATransposedViewIsRefusedByNameAsAnyOperand) {
    const auto six = [](const std::vector<std::int64_t>& strides) {
        harness::CaseTensor tensor = ones(6);
        tensor.layout.shape = {2, 3};
        tensor.layout.strides = strides;
        return tensor;
    };
    const std::pair<const char*, harness::CaseTensor& (*)(harness::CaseEntry&)> operands[] = {
        {"parameters", [](harness::CaseEntry& entry) -> harness::CaseTensor& { return entry.parameters; }},
        {"gradients", [](harness::CaseEntry& entry) -> harness::CaseTensor& { return entry.gradients; }},
        {"first_moment", [](harness::CaseEntry& entry) -> harness::CaseTensor& { return entry.state->first_moment; }},
        {"second_moment", [](harness::CaseEntry& entry) -> harness::CaseTensor& { return entry.state->second_moment; }},
    };
    for (const auto& [name, operand] : operands) {
        SCOPED_TRACE(name);
        const std::vector<std::int64_t> dense = {3, 1};
        harness::CaseEntry entry = {six(dense), six(dense),
                                    harness::CaseState{3, six(dense), six(dense), std::nullopt}};
        harness::Case c = guarded({entry, entry});
        on_every_subject(c, [](const Outcome& outcome) { EXPECT_FALSE(outcome.steps[0].error); });
        operand(c.entries[1]).layout.strides = {1, 2};
        operand(c.entries[1]).values.clear();
        expect_refused(c, ErrorKind::kInvalidTensor, 1, name);
    }
}

TEST(Reported, M13_ManyEmptyTensorsDoNotBreakTheNorm) {
    std::vector<Gradient> gradients(40, f32({}));
    gradients[23] = f32({3.0F, 4.0F});
    on_every_subject(shows_gradients(gradients), [](const Outcome& outcome) {
        const GradientStatsReport& report = outcome.steps[0].report.value();
        EXPECT_EQ(report.stats.total_norm, 5.0);
        EXPECT_EQ(report.readback_bytes, 12U);
        EXPECT_EQ(report.reduction_launches, 1U);
    });
}

TEST(Reported, M14_AnEmptyFirstTensorIsUnchangedAndTheSecondHasItsNorm) {
    on_every_subject(guarded({empty_entry(), entry_of(f32({3.0F, 4.0F}))}), [](const Outcome& outcome) {
        EXPECT_EQ(outcome.steps[0].report.value().stats.total_norm, 5.0);
        expect_empty_and_unchanged(outcome.steps[0].entries[0], std::nullopt);
        EXPECT_TRUE(outcome.steps[0].entries[1].updated);
    });
}

}  // namespace
}  // namespace gradguard::testing
