// SPDX-License-Identifier: Apache-2.0
// What property_tests/mutation/equivalent.json rests on where it calls a mutant of kernels/host equivalent.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/host/option_rules.h"
#include "kernels/host/tensor.h"
#include "tests/host/group.h"

namespace gradguard {
namespace {

using testing::bits;
using testing::from_bits;

/// Calls `action` with 4.2 million FP32 values: every 1021st bit pattern, all classes among them.
template <class Action>
void for_many_floats(Action action) {
    for (std::uint64_t word = 0; word <= 0xFFFFFFFF; word += 1021) action(from_bits(static_cast<std::uint32_t>(word)));
}

TEST(Premises, OneMinusAProductIsTheSameRoundedThroughFp64) {
    std::size_t different = 0;
    for_many_floats([&](float product) {
        const float direct = 1.0F - product;
        const auto through = static_cast<float>(1.0 - static_cast<double>(product));
        different += bits(direct) != bits(through) && !std::isnan(direct) ? 1 : 0;
    });
    EXPECT_EQ(different, 0U);
}

TEST(Premises, AValueInTheRangeOfABetaIsFinite) {
    std::size_t different = 0;
    for_many_floats([&](float value) { different += value >= 0.0F && value < 1.0F && !std::isfinite(value) ? 1 : 0; });
    EXPECT_EQ(different, 0U);
}

TEST(Premises, AnFp32LimitPlusZeroIsAnFp32Value) {
    std::size_t different = 0;
    for_many_floats([&](float limit) {
        const double sum = static_cast<double>(limit) + 0.0;
        const double narrowed = static_cast<float>(sum);
        different += std::bit_cast<std::uint64_t>(sum) != std::bit_cast<std::uint64_t>(narrowed) && sum == sum ? 1 : 0;
    });
    EXPECT_EQ(different, 0U);
}

TEST(Premises, AQuotientOfAdmissibleLimitAndNormIsANumber) {
    constexpr auto kMax = std::numeric_limits<float>::max();
    for (const float limit : {0.0F, from_bits(1), 1.0F, kMax}) {
        for (const double norm :
             {0.0, std::numeric_limits<double>::denorm_min(), 1.0, std::numeric_limits<double>::max()}) {
            for (const float epsilon : {from_bits(1), 1e-6F, kMax}) {
                EXPECT_GE(double{limit} / (norm + double{epsilon}), 0.0);
            }
        }
    }
}

TEST(Premises, ANumbersTextHasAtMost24Characters) {
    std::mt19937_64 random(7);
    std::size_t longest = kernels::number_to_string(-std::numeric_limits<double>::min()).size();
    for (int i = 0; i < 100000; ++i) {
        longest = std::max(longest, kernels::number_to_string(std::bit_cast<double>(random())).size());
    }
    EXPECT_EQ(longest, 24U);
}

TEST(Premises, AnAdmissibleTensorHasLessThan2To30Elements) {
    constexpr std::uint64_t kLimit = std::uint64_t{1} << 30U;
    EXPECT_TRUE(count_elements({kLimit}).problem);
    EXPECT_FALSE(count_elements({kLimit - 1}).problem);
    std::mt19937_64 random(7);
    for (int i = 0; i < 10000; ++i) {
        std::vector<std::uint64_t> shape(1 + random() % 4);
        for (auto& dimension : shape) dimension = random() >> (32U + random() % 32U);
        EXPECT_LT(count_elements(shape).count, kLimit) << list_to_string(shape);
    }
}

}  // namespace
}  // namespace gradguard
