// SPDX-License-Identifier: Apache-2.0
// Every row of contract section 3 that speaks of tensors, accepted and refused on every operand.
#include <gtest/gtest.h>

#include "tests/reference/descriptions.h"

namespace gradguard::reference {
namespace {

using gradguard::testing::dense;
using gradguard::testing::entry;
using gradguard::testing::kOperandNames;
using gradguard::testing::operand;
using gradguard::testing::Shape;

AdamWOptions amsgrad() {
    AdamWOptions options;
    options.amsgrad = true;
    return options;
}

std::optional<Violation> validate(const std::vector<EntryDescription>& entries,
                                  const AdamWOptions& options = amsgrad()) {
    return validate_step(entries, options, {}, GradientGuardOptions{});
}

/// A valid group in which `change` is made to one operand of the second entry; for each operand in turn.
template <class Change>
void expect_refused_on_each_operand(const Shape& shape, ErrorKind kind, Change change, std::size_t first_operand = 0) {
    for (std::size_t i = first_operand; i < 5; ++i) {
        std::vector<EntryDescription> entries = {entry({2}, true), entry(shape, true), entry({3}, true)};
        ASSERT_FALSE(validate(entries).has_value());
        change(operand(entries[1], i));
        const auto violation = validate(entries);
        ASSERT_TRUE(violation.has_value()) << kOperandNames[i];
        EXPECT_EQ(violation->kind, kind) << kOperandNames[i] << ": " << violation->message;
        EXPECT_EQ(violation->site.entry, 1U);
        EXPECT_EQ(violation->site.operand, kOperandNames[i]);
        EXPECT_NE(violation->message.find("want"), std::string::npos);
        EXPECT_NE(violation->message.find("got"), std::string::npos);
    }
}

/// The change is made to all operands of the entry, so that their shapes stay equal; it must be accepted.
template <class Change>
void expect_accepted_on_all_operands(const Shape& shape, Change change) {
    for (std::size_t i = 0; i < 5; ++i) {
        std::vector<EntryDescription> entries = {entry({2}, true), entry(shape, true)};
        change(operand(entries[1], i));
        const auto violation = validate(entries);
        EXPECT_FALSE(violation.has_value()) << kOperandNames[i] << ": " << violation->message;
    }
}

std::optional<Violation> of_shape(const Shape& shape, std::vector<std::int64_t> strides) {
    TensorDescription tensor;
    tensor.layout = {DType::kF32, shape, std::move(strides), 0};
    tensor.storage_bytes = ~0ULL;
    return check_tensor(tensor, false, 0, "parameters");
}
std::optional<Violation> of_shape(const Shape& shape) { return of_shape(shape, dense(shape).layout.strides); }

TEST(TensorRules, GradientsMayBeHalvesAndNothingElseMay) {
    for (const DType dtype : kAllDTypes) {
        EXPECT_FALSE(validate({entry({4}, true, false, dtype)}));
        EXPECT_FALSE(validate({entry({4}, true, true, dtype)}));
    }
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
        const auto change = [&](TensorDescription& t) { t.layout.dtype = dtype; };
        expect_refused_on_each_operand({4}, ErrorKind::kInvalidTensor, change, 2);
        auto parameters = entry({4}, true);
        change(parameters.parameters);
        EXPECT_EQ(validate({parameters})->site.operand, "parameters");
    }
    const auto unknown = [](TensorDescription& t) { t.layout.dtype = static_cast<DType>(7); };
    expect_refused_on_each_operand({4}, ErrorKind::kInvalidTensor, unknown);
}

// cases.csv M06, M07, M08
TEST(TensorRules, DimensionsAndCounts) {
    EXPECT_FALSE(of_shape({(1ULL << 30U) - 1}));
    for (const std::uint64_t count : {1ULL << 30U, 1ULL << 31U, 1ULL << 32U}) EXPECT_TRUE(of_shape({count})) << count;
    EXPECT_TRUE(of_shape({46341, 46341}));
    EXPECT_TRUE(of_shape({65536, 65536}));
    EXPECT_TRUE(of_shape({65536, 16384}));
    EXPECT_FALSE(of_shape({32768, 32767}));
    EXPECT_FALSE(of_shape({4294967295ULL, 0}));
    EXPECT_TRUE(of_shape({4294967296ULL, 0}));
    EXPECT_TRUE(of_shape({0, 4294967296ULL}));
    EXPECT_FALSE(of_shape({0, 4294967295ULL, 4294967295ULL, 4294967295ULL}));
}

TEST(TensorRules, TheProductMustNotOverflowEvenBeforeAZero) {
    EXPECT_FALSE(of_shape({4294967295ULL, 4294967295ULL, 0}));
    EXPECT_TRUE(of_shape({4294967295ULL, 4294967295ULL, 2, 0}));
    EXPECT_EQ(element_count(Shape{4294967295ULL, 4294967295ULL}), 18446744065119617025ULL);
    EXPECT_FALSE(element_count(Shape{4294967295ULL, 4294967295ULL, 2, 0}).has_value());
    EXPECT_EQ(element_count(Shape{}), 1U);
}

TEST(TensorRules, OversizeIsRefusedOnEachOperand) {
    const auto set_shape = [](Shape shape) {
        return [shape](TensorDescription& t) {
            t.layout.shape = shape;
            t.layout.strides = dense(shape).layout.strides;
            t.storage_bytes = ~0ULL;
        };
    };
    expect_refused_on_each_operand({0}, ErrorKind::kInvalidTensor, set_shape({4294967296ULL, 0}));
    expect_refused_on_each_operand({4}, ErrorKind::kInvalidTensor, set_shape({1ULL << 30U}));
    expect_refused_on_each_operand({0}, ErrorKind::kInvalidTensor, set_shape({4294967295ULL, 4294967295ULL, 2, 0}));
}

TEST(TensorRules, AsManyStridesAsDimensions) {
    for (const auto& strides : {std::vector<std::int64_t>{}, {3}, {3, 1, 1}}) {
        const auto change = [&](TensorDescription& t) { t.layout.strides = strides; };
        expect_refused_on_each_operand({2, 3}, ErrorKind::kInvalidTensor, change);
    }
    expect_refused_on_each_operand({0, 3}, ErrorKind::kInvalidTensor,
                                   [](TensorDescription& t) { t.layout.strides = {1}; });
}

// cases.csv N29, M12
TEST(TensorRules, NonEmptyTensorsAreDense) {
    for (const auto& strides : {std::vector<std::int64_t>{1, 2}, {6, 2}, {0, 1}, {3, 0}, {-3, 1}, {3, -1}, {4, 1}}) {
        const auto change = [&](TensorDescription& t) {
            t.layout.strides = strides;
            t.storage_bytes = 1 << 10;
        };
        expect_refused_on_each_operand({2, 3}, ErrorKind::kInvalidTensor, change);
    }
    expect_refused_on_each_operand({4}, ErrorKind::kInvalidTensor,
                                   [](TensorDescription& t) { t.layout.strides = {0}; });
}

TEST(TensorRules, EmptyTensorsMayHaveAnyStrides) {
    expect_accepted_on_all_operands({2, 0}, [](TensorDescription& t) { t.layout.strides = {-7, 99}; });
}

// cases.csv M11
TEST(TensorRules, TheStrideOfADimensionOfSizeOneIsIrrelevant) {
    for (const auto& strides : {std::vector<std::int64_t>{100, 1, 1}, {100, 7, 1}, {100, 0, 1}, {100, -5, 1}}) {
        expect_accepted_on_all_operands({2, 1, 100}, [&](TensorDescription& t) { t.layout.strides = strides; });
    }
    expect_accepted_on_all_operands({1}, [](TensorDescription& t) { t.layout.strides = {-3}; });
}

TEST(TensorRules, RankZeroIsOneElement) {
    EXPECT_FALSE(validate({entry({}, true)}));
    expect_refused_on_each_operand({}, ErrorKind::kInvalidTensor, [](TensorDescription& t) { t.storage_bytes = 1; });
}

TEST(TensorRules, TheByteOffsetIsAMultipleOfTheElementSize) {
    for (const std::uint64_t offset : {1U, 2U, 3U, 5U}) {
        expect_refused_on_each_operand({4}, ErrorKind::kInvalidTensor, [&](TensorDescription& t) {
            t.layout.byte_offset = offset;
            t.storage_bytes = 64;
        });
    }
    expect_accepted_on_all_operands({4}, [](TensorDescription& t) {
        t.layout.byte_offset = 4;
        t.storage_bytes = 20;
    });
    auto half = entry({4}, true, false, DType::kF16);
    half.gradients.layout.byte_offset = 2;
    half.gradients.storage_bytes = 10;
    EXPECT_FALSE(validate({half}));
    half.gradients.layout.byte_offset = 1;
    EXPECT_TRUE(validate({half}));
}

TEST(TensorRules, AllBytesLieInsideTheAllocation) {
    const auto with = [](std::uint64_t offset, std::uint64_t bytes) {
        return [=](TensorDescription& t) {
            t.layout.byte_offset = offset;
            t.storage_bytes = bytes;
        };
    };
    expect_accepted_on_all_operands({4}, with(8, 24));
    expect_refused_on_each_operand({4}, ErrorKind::kInvalidTensor, with(8, 23));
    expect_refused_on_each_operand({4}, ErrorKind::kInvalidTensor, with(0, 15));
    // offset + bytes wraps to 0 in 64 bits
    expect_refused_on_each_operand({4}, ErrorKind::kInvalidTensor, with(~0ULL - 15, 64));
    expect_refused_on_each_operand({0}, ErrorKind::kInvalidTensor, with(8, 4));
    expect_accepted_on_all_operands({0}, with(8, 8));
}

TEST(TensorRules, ShapesEqualTheParametersWithoutBroadcasting) {
    for (const Shape& shape : {Shape{3, 2}, {6}, {2, 3, 1}, {1, 3}, {1}, {}}) {
        expect_refused_on_each_operand(
            {2, 3}, ErrorKind::kShapeMismatch, [&](TensorDescription& t) { t = dense(shape); }, 1);
    }
    expect_refused_on_each_operand(
        {0, 3}, ErrorKind::kShapeMismatch,
        [](TensorDescription& t) {
            t = dense({3, 0});
        },
        1);
}

TEST(TensorRules, AllOperandsShareOneDeviceAndQueue) {
    expect_refused_on_each_operand({4}, ErrorKind::kDifferentExecutionQueue,
                                   [](TensorDescription& t) { t.device = 1; });
    expect_refused_on_each_operand({4}, ErrorKind::kDifferentExecutionQueue, [](TensorDescription& t) { t.queue = 1; });
    expect_refused_on_each_operand({0}, ErrorKind::kDifferentExecutionQueue, [](TensorDescription& t) { t.queue = 1; });
    std::vector<EntryDescription> elsewhere = {entry({2}, true), entry({3}, true)};
    for (auto& e : elsewhere) {
        for (std::size_t i = 0; i < 5; ++i) operand(e, i).queue = 9;
    }
    EXPECT_FALSE(validate(elsewhere));
}

TEST(TensorRules, StatisticsCheckTheScaleAndEachGradient) {
    const std::vector<TensorDescription> good = {dense({4}, DType::kF16), dense({0}), dense({2, 2}, DType::kBF16)};
    EXPECT_FALSE(validate_statistics(good, 1.0F));
    EXPECT_FALSE(validate_statistics({}, 1.0F));
    EXPECT_EQ(validate_statistics(good, 0.0F)->site.operand, "gradient_scale");
    auto bad = good;
    bad[2].layout.strides = {1, 2};
    EXPECT_EQ(validate_statistics(bad, 1.0F)->kind, ErrorKind::kInvalidTensor);
    EXPECT_EQ(validate_statistics(bad, 1.0F)->site.entry, 2U);
    bad = good;
    bad[1].queue = 5;
    EXPECT_EQ(validate_statistics(bad, 1.0F)->kind, ErrorKind::kDifferentExecutionQueue);
    EXPECT_EQ(validate_statistics(bad, 1.0F)->site.entry, 1U);
}

}  // namespace
}  // namespace gradguard::reference
