// SPDX-License-Identifier: Apache-2.0
// Tensors by themselves: counting, strides, storage, copies. The rules that a step applies: tensor_rules_test.cpp.
#include "kernels/host/tensor.h"

#include <gtest/gtest.h>

#include "tests/host/group.h"

namespace gradguard {
namespace {

using harness::DeviceCall;
using testing::expect_error;
using testing::RecordedDevice;

TEST(Tensor, TheProductBeforeAZeroMayBeTheGreatestOf64Bits) {
    // 2^64 - 1 = (2^32 - 1) * 641 * 6700417
    const ElementCount count = count_elements({0xFFFFFFFF, 641, 6700417, 0});
    EXPECT_FALSE(count.problem);
    EXPECT_EQ(count.count, 0U);
    EXPECT_TRUE(count_elements({0xFFFFFFFF, 641, 6700418, 0}).problem);
}

TEST(Tensor, AShapeWithoutACountCountsNothing) {
    for (const std::vector<std::uint64_t>& shape :
         {std::vector<std::uint64_t>{0x100000000}, {0xFFFFFFFF, 0xFFFFFFFF, 2}, {0x40000000}}) {
        EXPECT_TRUE(count_elements(shape).problem);
        EXPECT_EQ(count_elements(shape).count, 0U);
    }
}

TEST(Tensor, StridesAreProductsIn64Bits) {
    EXPECT_EQ(dense_strides({2, 65536, 65536}), (std::vector<std::int64_t>{0x100000000, 65536, 1}));
    EXPECT_EQ(dense_strides({2, 3, 5}), (std::vector<std::int64_t>{15, 5, 1}));
    EXPECT_EQ(dense_strides({}), (std::vector<std::int64_t>{}));
}

TEST(Tensor, AnEmptyOneAllocatesAndCopiesNothing) {
    const RecordedDevice gpu;
    const Tensor tensor = Tensor::allocate(gpu.queue, DType::kF32, {3, 0});
    tensor.upload({});
    tensor.download({});
    EXPECT_TRUE(tensor.empty());
    EXPECT_EQ(tensor.storage.owner, nullptr);
    EXPECT_EQ(tensor.storage.bytes, 0U);
    EXPECT_TRUE(gpu.log->calls.empty());
}

TEST(Tensor, StorageHasAsManyBytesAsTheElements) {
    const RecordedDevice gpu;
    for (const auto& [dtype, bytes] : {std::pair(DType::kF32, 24U), {DType::kF16, 12U}, {DType::kBF16, 12U}}) {
        gpu.log->calls.clear();
        const Tensor tensor = Tensor::allocate(gpu.queue, dtype, {2, 3});
        EXPECT_EQ(gpu.log->bytes(DeviceCall::kAllocate), bytes);
        EXPECT_EQ(tensor.storage.bytes, bytes);
        EXPECT_EQ(tensor.bytes(), bytes);
    }
}

TEST(Tensor, AShapeWithoutACountIsNotAllocated) {
    const RecordedDevice gpu;
    expect_error(ErrorKind::kInvalidTensor, std::nullopt, "shape", [&] {
        Tensor::allocate(gpu.queue, DType::kF32, {0x100000000, 0});
    });
    EXPECT_TRUE(gpu.log->calls.empty());
}

TEST(Tensor, CopiesGoToAndFromItsPartOfTheStorage) {
    const RecordedDevice gpu;
    const Tensor whole = Tensor::allocate(gpu.queue, DType::kF32, {4});
    const std::vector<float> values = {1.0F, 2.0F, 3.0F, 4.0F};
    whole.upload(std::as_bytes(std::span(values)));
    const Tensor middle = Tensor::over(gpu.queue, DType::kF32, {2}, whole.storage, 4);
    EXPECT_EQ(gpu.read(middle), (std::vector<float>{2.0F, 3.0F}));
    const std::vector<float> changed = {7.0F, 8.0F};
    middle.upload(std::as_bytes(std::span(changed)));
    EXPECT_EQ(gpu.read(whole), (std::vector<float>{1.0F, 7.0F, 8.0F, 4.0F}));
}

TEST(Tensor, AnOffsetBeyond32BitsIsOutsideOfASmallAllocation) {
    const RecordedDevice gpu;
    AdamWEntry entry = gpu.entry({1.0F}, {0.5F});
    entry.gradients.layout.byte_offset = std::uint64_t{1} << 32U;
    expect_error(ErrorKind::kInvalidTensor, 0, "gradients",
                 [&] { adamw_step(entry.parameters, entry.gradients, std::nullopt); });
}

}  // namespace
}  // namespace gradguard
