// SPDX-License-Identifier: Apache-2.0
#include "reference/exact/exact_sum.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <vector>

#include "reference/exact/real.h"
#include "reference/fp64/fp64_norm.h"
#include "tests/support/property.h"
#include "tests/support/values.h"

namespace gradguard::reference {
namespace {

using boost::multiprecision::cpp_int;
const gradguard::testing::FixedRapidCheckSeed kSeed;

cpp_int integer_of(const ExactSumOfSquares& sum) {
    cpp_int result = 0;
    for (int i = ExactSumOfSquares::kLimbs - 1; i >= 0; --i) result = (result << 64) + sum.limbs()[i];
    return result;
}

/// value^2 in units of 2^-298, by Boost.
cpp_int square_of(float value) {
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(static_cast<double>(value)), &exponent);
    if (fraction == 0.0) return 0;
    const cpp_int whole(static_cast<std::uint64_t>(std::ldexp(fraction, 24)));
    const int shift = exponent - 24 + 149;
    const cpp_int units = shift >= 0 ? cpp_int(whole << shift) : cpp_int(whole >> -shift);
    return units * units;
}

ExactSumOfSquares sum_of(const std::vector<float>& values) {
    ExactSumOfSquares sum;
    for (const float value : values) sum.add(value);
    return sum;
}

TEST(ExactSum, ClosedForms) {
    EXPECT_EQ(sum_of({}).root(), 0.0);
    EXPECT_TRUE(sum_of({0.0F, -0.0F}).is_zero());
    EXPECT_EQ(sum_of({3.0F, -4.0F}).root(), 5.0);
    EXPECT_EQ(sum_of({0x1p-149F}).root(), 0x1p-149);
    EXPECT_EQ(sum_of(std::vector<float>(4, 0x1p127F)).root(), 0x1p128);
    EXPECT_EQ(sum_of({0x1.fffffep127F}).root(), double(0x1.fffffep127F));
    EXPECT_EQ(sum_of({3.0F, -4.0F}).value(), 25.0);
}

TEST(ExactSum, TheGreatestSumsFit) {
    // 2^32 times FLT_MAX^2, doubled up.
    ExactSumOfSquares sum = sum_of({0x1.fffffep127F});
    for (int i = 0; i < 64; ++i) sum += ExactSumOfSquares(sum);
    EXPECT_EQ(integer_of(sum), square_of(0x1.fffffep127F) << 64);
    EXPECT_EQ(sum.root(), std::ldexp(double(0x1.fffffep127F), 32));
}

TEST(ExactSum, CarriesRunThroughAllLimbs) {
    // (2^120 - 2^-149)^2 cannot be had from FP32; a run of ones is: 2^k for every k.
    ExactSumOfSquares sum;
    cpp_int want = 0;
    for (int round = 0; round < 3; ++round) {
        for (int exponent = -149; exponent <= 127; ++exponent) {
            const float value = std::ldexp(1.0F, exponent);
            sum.add(value);
            want += square_of(value);
            EXPECT_EQ(integer_of(sum), want);
        }
    }
    ExactSumOfSquares ones;
    for (int i = 0; i < 1 << 16; ++i) ones.add(0x1.fffffep0F);
    EXPECT_EQ(integer_of(ones), square_of(0x1.fffffep0F) << 16);
}

TEST(ExactSum, TiesOfTheRootGoToEven) {
    // (2^53 + 1)^2 needs 54 bits in the root: the sum of two squares of FP32 values that is (2^k + 1/2 ulp)^2 is rare,
    // so build the integer itself from powers of 4: n^2 with n = 2^53 + 1 is 2^106 + 2^54 + 1.
    ExactSumOfSquares sum = sum_of({0x1p53F, 0x1p27F, 1.0F});
    EXPECT_EQ(sum.root(), 0x1p53);  // the tie between 2^53 and 2^53 + 2
    sum += sum_of({0x1p-149F});
    EXPECT_EQ(sum.root(), 0x1p53 + 2.0);
    // n = 2^53 + 3: 2^106 + 6 * 2^53 + 9, and 6 * 2^53 = 2^55 + 2^54 with 2^55 two squares of 2^27.
    EXPECT_EQ(sum_of({0x1p53F, 0x1p27F, 0x1p27F, 0x1p27F, 3.0F}).root(), 0x1p53 + 4.0);
}

RC_GTEST_PROP(ExactSum, EqualsBoostsIntegersInAnyOrder, ()) {
    const auto words = *rc::gen::container<std::vector<std::uint32_t>>(gradguard::testing::words());
    ExactSumOfSquares forward;
    ExactSumOfSquares backward;
    cpp_int want = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const float value = gradguard::testing::spread_float(words[i]);
        forward.add(value);
        want += square_of(value);
        backward.add(-gradguard::testing::spread_float(words[words.size() - 1 - i]));
    }
    RC_ASSERT(integer_of(forward) == want);
    RC_ASSERT(forward == backward);
    RC_ASSERT((forward <=> backward) == std::strong_ordering::equal);
}

RC_GTEST_PROP(ExactSum, TheRootIsBoostsRootRoundedOnce, ()) {
    const auto words = *rc::gen::container<std::vector<std::uint32_t>>(gradguard::testing::words());
    ExactSumOfSquares sum;
    for (const std::uint32_t word : words) sum.add(gradguard::testing::spread_float(word));
    // 640 bits and more hold the sum exactly.
    using Wide =
        boost::multiprecision::number<boost::multiprecision::cpp_bin_float<1400, boost::multiprecision::digit_base_2>,
                                      boost::multiprecision::et_off>;
    const Wide exact = ldexp(Wide(integer_of(sum)), ExactSumOfSquares::kUnitExponent);
    const double root = sum.root();
    // |root - sqrt(exact)| <= half a unit in the last place: compare the squares of the midpoints with the exact sum.
    if (exact == 0) {
        RC_ASSERT(root == 0.0);
    } else {
        const Wide up = (Wide(root) + Wide(std::nextafter(root, HUGE_VAL))) / 2;
        const Wide down = (Wide(root) + Wide(std::nextafter(root, 0.0))) / 2;
        RC_ASSERT(down * down <= exact);
        RC_ASSERT(exact <= up * up);
    }
}

RC_GTEST_PROP(ExactSum, PlainAndScaledFp64StayWithinTheirBounds, ()) {
    const auto words = *rc::gen::container<std::vector<std::uint32_t>>(gradguard::testing::words());
    std::vector<float> values;
    for (const std::uint32_t word : words) values.push_back(gradguard::testing::spread_float(word));
    const double exact = sum_of(values).root();
    const double n = static_cast<double>(values.size());
    // Plain: n rounded additions of exact squares (all terms positive), halved by the root, and the root's own
    // rounding.
    RC_ASSERT(std::fabs(plain_norm(values) - exact) <= (n / 2 + 2) * 0x1p-53 * exact);
    // Scaled: four roundings for an element, the same halving, and three at the end.
    RC_ASSERT(std::fabs(scaled_norm(values) - exact) <= (4 * n / 2 + 4) * 0x1p-53 * exact);
}

}  // namespace
}  // namespace gradguard::reference
