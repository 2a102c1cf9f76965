// SPDX-License-Identifier: Apache-2.0
// Contract section 3, the rules for tensors: each on every operand it applies to, through every operation that checks
// it.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "kernels/host/guarded_adamw.h"
#include "tests/host/group.h"

namespace gradguard {
namespace {

using testing::error_of;
using testing::expect_error;
using testing::RecordedDevice;

/// A group of two entries with state; the second one is what a test breaks.
struct Group {
    explicit Group(const RecordedDevice& gpu, bool amsgrad = true) {
        for (int i = 0; i < 2; ++i) {
            const std::vector<float> values = {1, 2, 3, 4, 5, 6};
            const auto tensor = [&] { return gpu.tensor(values, DType::kF32, {{2, 3}}); };
            AdamWState state = {3, tensor(), tensor(), std::nullopt};
            if (amsgrad) state.max_second_moment = tensor();
            entries.push_back({tensor(), tensor(), state});
        }
        options.amsgrad = amsgrad;
        gpu.forget_calls();
    }

    Tensor& operand(const std::string& name) {
        AdamWEntry& entry = entries[1];
        if (name == "parameters") return entry.parameters;
        if (name == "gradients") return entry.gradients;
        if (name == "first_moment") return entry.state->first_moment;
        if (name == "second_moment") return entry.state->second_moment;
        return *entry.state->max_second_moment;
    }

    std::vector<AdamWEntry> entries;
    AdamWOptions options;
    StepControl control;
    GradientGuardOptions guard;
};

const std::vector<std::string> kOperands = {"parameters", "gradients", "first_moment", "second_moment",
                                            "max_second_moment"};

/// Breaks each operand in turn: every operation must refuse it by name, and without any device call.
void expect_refused(ErrorKind kind, const std::vector<std::string>& operands,
                    const std::function<void(const RecordedDevice&, Tensor&)>& damage) {
    for (const std::string& operand : operands) {
        SCOPED_TRACE(operand);
        const RecordedDevice gpu;
        Group group(gpu);
        damage(gpu, group.operand(operand));
        gpu.forget_calls();
        expect_error(kind, 1, operand,
                     [&] { guarded_adamw_step(group.entries, group.options, group.control, group.guard); });
        expect_error(kind, 1, operand, [&] { clipped_adamw_step({}, group.entries, group.options, group.control); });
        const AdamWEntry& entry = group.entries[1];
        // Alone, an entry is on the queue of its parameters, and it is the next operand that differs.
        const bool leads =
            kind == ErrorKind::kDifferentExecutionQueue && operand == "parameters" && entry.parameters.queue != nullptr;
        expect_error(kind, 0, leads ? "gradients" : operand,
                     [&] { adamw_step(entry.parameters, entry.gradients, entry.state, group.options, group.control); });
        // Validation comes before the request to skip.
        expect_error(kind, 1, operand,
                     [&] { guarded_adamw_step(group.entries, group.options, {.skip_update = true}, group.guard); });
        if (operand == "gradients" && kind == ErrorKind::kInvalidTensor) {
            const std::vector<Tensor> gradients = {group.entries[0].gradients, entry.gradients};
            expect_error(kind, 1, operand, [&] { gradient_stats_sync(gradients); });
        }
        EXPECT_TRUE(gpu.log->calls.empty()) << gpu.log->calls.size() << " device calls were made";
    }
}

void expect_accepted(const std::vector<std::string>& operands,
                     const std::function<void(const RecordedDevice&, Tensor&)>& change) {
    for (const std::string& operand : operands) {
        SCOPED_TRACE(operand);
        const RecordedDevice gpu;
        Group group(gpu);
        change(gpu, group.operand(operand));
        const auto result = guarded_adamw_step(group.entries, group.options, group.control, group.guard);
        result.wait();
        EXPECT_TRUE(result.entries[1].updated);
    }
}

TEST(TensorRules, IntactGroupIsAccepted) {
    expect_accepted(kOperands, [](const RecordedDevice&, Tensor&) {});
}

TEST(TensorRules, ParametersAndMomentsMustBeF32) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
        expect_refused(ErrorKind::kInvalidTensor, {"parameters", "first_moment", "second_moment", "max_second_moment"},
                       [&](const RecordedDevice&, Tensor& tensor) { tensor.layout.dtype = dtype; });
    }
}

TEST(TensorRules, GradientsMayBeAnyOfTheThree) {
    for (const DType dtype : kAllDTypes) {
        expect_accepted({"gradients"}, [&](const RecordedDevice&, Tensor& tensor) { tensor.layout.dtype = dtype; });
    }
}

TEST(TensorRules, ADimensionMustFitIn32BitsEvenAfterAZero) {
    for (const std::vector<std::uint64_t>& shape :
         {std::vector<std::uint64_t>{0, 0x100000000}, std::vector<std::uint64_t>{0x100000000, 0}}) {
        expect_refused(ErrorKind::kInvalidTensor, kOperands, [&](const RecordedDevice&, Tensor& tensor) {
            tensor.layout.shape = shape;
            tensor.layout.strides = {1, 1};
        });
    }
}

TEST(TensorRules, TheCountMustNotOverflowEvenBeforeAZero) {
    expect_refused(ErrorKind::kInvalidTensor, kOperands, [](const RecordedDevice&, Tensor& tensor) {
        tensor.layout.shape = {0xFFFFFFFF, 0xFFFFFFFF, 2, 0};
        tensor.layout.strides = {1, 1, 1, 1};
    });
}

TEST(TensorRules, FourTimesTheCountMustFitIn32Bits) {
    for (const std::vector<std::uint64_t>& shape :
         {std::vector<std::uint64_t>{1U << 30U}, std::vector<std::uint64_t>{1U << 16U, 1U << 14U},
          std::vector<std::uint64_t>{46341, 46341}, std::vector<std::uint64_t>{65536, 65536}}) {
        expect_refused(ErrorKind::kInvalidTensor, kOperands, [&](const RecordedDevice&, Tensor& tensor) {
            tensor.layout.shape = shape;
            tensor.layout.strides = dense_strides(shape);
        });
    }
}

TEST(TensorRules, CountRuleAtItsEdge) {
    EXPECT_FALSE(count_elements({(1U << 30U) - 1}).problem);
    EXPECT_EQ(count_elements({(1U << 30U) - 1}).count, (1U << 30U) - 1);
    EXPECT_TRUE(count_elements({1U << 30U}).problem);
    EXPECT_TRUE(count_elements({std::uint64_t{1} << 31U}).problem);
    EXPECT_TRUE(count_elements({std::uint64_t{1} << 32U}).problem);
    EXPECT_FALSE(count_elements({0xFFFFFFFF, 0}).problem);
    EXPECT_EQ(count_elements({0xFFFFFFFF, 0}).count, 0U);
    EXPECT_TRUE(count_elements({0x100000000, 0}).problem);
    EXPECT_EQ(count_elements({}).count, 1U);
}

TEST(TensorRules, OneStrideForEachDimension) {
    expect_refused(ErrorKind::kInvalidTensor, kOperands,
                   [](const RecordedDevice&, Tensor& tensor) { tensor.layout.strides = {1}; });
}

TEST(TensorRules, OnlyDenseContiguousLayouts) {
    for (const std::vector<std::int64_t>& strides :
         {std::vector<std::int64_t>{1, 2}, std::vector<std::int64_t>{0, 0}, std::vector<std::int64_t>{3, -1},
          std::vector<std::int64_t>{4, 1}, std::vector<std::int64_t>{3, 0}}) {
        expect_refused(ErrorKind::kInvalidTensor, kOperands,
                       [&](const RecordedDevice&, Tensor& tensor) { tensor.layout.strides = strides; });
    }
}

TEST(TensorRules, TheStrideOfASizeOneDimensionIsIrrelevant) {
    for (const std::int64_t stride : {std::int64_t{0}, std::int64_t{-7}, std::int64_t{1000}}) {
        const RecordedDevice gpu;
        Group group(gpu);
        for (const std::string& operand : kOperands) {
            group.operand(operand).layout.shape = {2, 1, 3};
            group.operand(operand).layout.strides = {3, stride, 1};
        }
        guarded_adamw_step(group.entries, group.options).wait();
    }
}

TEST(TensorRules, TheLayoutOfAnEmptyTensorIsIrrelevantButForItsRank) {
    const RecordedDevice gpu;
    Group group(gpu);
    for (const std::string& operand : kOperands) {
        group.operand(operand).layout.shape = {2, 0};
        group.operand(operand).layout.strides = {-5, 17};
    }
    const auto result = guarded_adamw_step(group.entries, group.options);
    EXPECT_FALSE(result.entries[1].updated);
    group.operand("gradients").layout.strides = {1};
    expect_error(ErrorKind::kInvalidTensor, 1, "gradients", [&] { guarded_adamw_step(group.entries, group.options); });
}

TEST(TensorRules, RankZeroIsOneElement) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {{gpu.tensor(std::vector<float>{1.0F}, DType::kF32, {{}}),
                                              gpu.tensor(std::vector<float>{0.5F}, DType::kF32, {{}}),
                                              {}}};
    const auto result = guarded_adamw_step(entries);
    EXPECT_EQ(result.report->stats.elements, 1U);
    EXPECT_EQ(testing::bits(gpu.read(result.entries[0].parameters)[0]), 0x3F7FBE75U);
}

TEST(TensorRules, ByteOffsetIsAMultipleOfTheElementSize) {
    for (const std::uint64_t offset : {1U, 2U, 3U}) {
        expect_refused(ErrorKind::kInvalidTensor, kOperands, [&](const RecordedDevice& gpu, Tensor& tensor) {
            tensor = gpu.tensor(std::vector<float>(7), DType::kF32);
            tensor.layout.shape = {2, 3};
            tensor.layout.strides = {3, 1};
            tensor.layout.byte_offset = offset;
        });
    }
    expect_accepted(kOperands, [](const RecordedDevice& gpu, Tensor& tensor) {
        tensor = gpu.tensor(std::vector<float>(7), DType::kF32);
        tensor.layout.shape = {2, 3};
        tensor.layout.strides = {3, 1};
        tensor.layout.byte_offset = 4;
    });
}

TEST(TensorRules, TheTensorMustLieInsideItsAllocation) {
    for (const std::uint64_t offset :
         {std::uint64_t{4}, std::uint64_t{24}, std::uint64_t{28}, std::numeric_limits<std::uint64_t>::max() - 3}) {
        expect_refused(ErrorKind::kInvalidTensor, kOperands,
                       [&](const RecordedDevice&, Tensor& tensor) { tensor.layout.byte_offset = offset; });
    }
    expect_refused(ErrorKind::kInvalidTensor, kOperands,
                   [](const RecordedDevice&, Tensor& tensor) { tensor.storage.bytes = 23; });
}

TEST(TensorRules, GradientAndMomentShapesEqualTheParameters) {
    for (const std::vector<std::uint64_t>& shape :
         {std::vector<std::uint64_t>{3, 2}, std::vector<std::uint64_t>{6}, std::vector<std::uint64_t>{2, 1, 3},
          std::vector<std::uint64_t>{1, 3}}) {
        expect_refused(ErrorKind::kShapeMismatch, {"gradients", "first_moment", "second_moment", "max_second_moment"},
                       [&](const RecordedDevice&, Tensor& tensor) {
                           tensor.layout.shape = shape;
                           tensor.layout.strides = dense_strides(shape);
                       });
    }
}

TEST(TensorRules, OneQueueForTheWholeGroup) {
    expect_refused(ErrorKind::kDifferentExecutionQueue, kOperands,
                   [](const RecordedDevice& gpu, Tensor& tensor) { tensor.queue = gpu.device->create_queue(); });
    expect_refused(ErrorKind::kDifferentExecutionQueue, {"gradients"},
                   [](const RecordedDevice&, Tensor& tensor) { tensor.queue = RecordedDevice().queue; });
}

TEST(TensorRules, ATensorNeedsAQueue) {
    expect_refused(ErrorKind::kDifferentExecutionQueue, kOperands,
                   [](const RecordedDevice&, Tensor& tensor) { tensor.queue = nullptr; });
}

TEST(TensorRules, TheQueueOfAScanIsOneToo) {
    const RecordedDevice gpu;
    std::vector<Tensor> gradients = {gpu.tensor(std::vector<float>{3}), gpu.tensor(std::vector<float>{4})};
    gradients[1].queue = gpu.device->create_queue();
    gpu.forget_calls();
    expect_error(ErrorKind::kDifferentExecutionQueue, 1, "gradients", [&] { gradient_stats_sync(gradients); });
    EXPECT_TRUE(gpu.log->calls.empty());
}

TEST(TensorRules, HostMemoryOfAnotherSizeIsRefusedAndTheDeviceGoesOn) {
    const RecordedDevice gpu;
    const Tensor tensor = gpu.tensor(std::vector<float>{1.0F, 2.0F});
    gpu.forget_calls();
    std::vector<std::byte> bytes(12);
    expect_error(ErrorKind::kInvalidTensor, std::nullopt, "host memory", [&] { tensor.upload(bytes); });
    expect_error(ErrorKind::kInvalidTensor, std::nullopt, "host memory", [&] { tensor.download(bytes); });
    EXPECT_TRUE(gpu.log->calls.empty());
    EXPECT_EQ(gpu.read(tensor), (std::vector<float>{1.0F, 2.0F}));
}

TEST(TensorRules, TheMessageSaysWhatWasWantedAndWhatCame) {
    const RecordedDevice gpu;
    Group group(gpu);
    Tensor& tensor = group.operand("gradients");
    tensor.layout.shape = {3, 2};
    tensor.layout.strides = {2, 1};
    const auto error = error_of([&] { guarded_adamw_step(group.entries, group.options); });
    EXPECT_STREQ(error->what(), "ShapeMismatch: entry 1 gradients: want the parameters' shape [2,3], got [3,2]");
}

}  // namespace
}  // namespace gradguard
