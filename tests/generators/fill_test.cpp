// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "reference/exact/float_bits.h"
#include "reference/exact/widen.h"
#include "tests/generators/recipes.h"

namespace gradguard::harness {
namespace {

using reference::bits_of;
using reference::classify;
using reference::float_of;
using reference::FloatClass;

ArrayRecipe array_of(Fill fill, int exponent = 0, std::uint64_t seed = 1) {
    ArrayRecipe recipe;
    recipe.fill = fill;
    recipe.exponent = exponent;
    recipe.seed = seed;
    return recipe;
}

float value_of(std::uint32_t bits, DType dtype) {
    const auto half = static_cast<std::uint16_t>(bits);
    return dtype == DType::kF32   ? float_of(bits)
           : dtype == DType::kF16 ? reference::widen_f16(half)
                                  : reference::widen_bf16(half);
}

std::vector<float> values_of(const ArrayRecipe& recipe, DType dtype, std::uint64_t n) {
    std::vector<float> values;
    for (const std::uint32_t bits : filled(recipe, dtype, n)) values.push_back(value_of(bits, dtype));
    return values;
}

constexpr Fill kAllFills[] = {Fill::kZero,   Fill::kOrdinary,   Fill::kHeavyTailed, Fill::kMountain,
                              Fill::kOneHot, Fill::kThresholds, Fill::kCancelling,  Fill::kSubnormal,
                              Fill::kHuge,   Fill::kAnyBits,    Fill::kBalanced};

TEST(Fill, AnEmptyArrayHasNoElements) {
    for (const Fill fill : kAllFills) EXPECT_TRUE(filled(array_of(fill), DType::kF32, 0).empty());
}

TEST(Fill, TheSameRecipeGivesTheSameBits) {
    for (const Fill fill : kAllFills) {
        for (const DType dtype : kAllDTypes) {
            EXPECT_EQ(filled(array_of(fill), dtype, 100), filled(array_of(fill), dtype, 100));
        }
    }
}

TEST(Fill, NothingIsBadUnlessAskedFor) {
    for (const Fill fill : kAllFills) {
        for (const DType dtype : kAllDTypes) {
            for (const int exponent : {-200, -30, 0, 30, 200}) {
                for (const float x : values_of(array_of(fill, exponent), dtype, 2000)) {
                    ASSERT_TRUE(reference::is_finite_bits(x)) << to_string(fill) << ' ' << to_string(dtype);
                }
            }
        }
    }
}

TEST(Fill, AbsoluteClearsEverySign) {
    for (const Fill fill : kAllFills) {
        for (const DType dtype : kAllDTypes) {
            ArrayRecipe recipe = array_of(fill);
            recipe.absolute = true;
            for (const float x : values_of(recipe, dtype, 500)) ASSERT_FALSE(reference::sign_of(x)) << to_string(fill);
        }
    }
}

TEST(Fill, OverridesComeLastAndBeyondTheEndMeanNothing) {
    ArrayRecipe recipe = array_of(Fill::kOrdinary);
    recipe.absolute = true;
    recipe.overrides = {{1, 0xBC00}, {7, 0x1234}};
    const auto words = filled(recipe, DType::kF16, 3);
    EXPECT_EQ(words.size(), 3U);
    EXPECT_EQ(words[1], 0xBC00U);
}

TEST(Fill, OrdinaryHasTheDeviationOfItsExponent) {
    for (const DType dtype : kAllDTypes) {
        double sum = 0;
        int within = 0;
        for (const float x : values_of(array_of(Fill::kOrdinary, 3), dtype, 20000)) {
            sum += static_cast<double>(x) * x;
            within += x > -8 && x < 8 ? 1 : 0;
        }
        // Mean square 64; about two thirds within one deviation.
        EXPECT_GT(sum / 20000, 60);
        EXPECT_LT(sum / 20000, 68);
        EXPECT_GT(within, 12000);
        EXPECT_LT(within, 15000);
    }
}

TEST(Fill, OrdinaryIsTheSameInBF16CutFromF32) {
    const auto wide = filled(array_of(Fill::kOrdinary, -2), DType::kF32, 500);
    const auto half = filled(array_of(Fill::kOrdinary, -2), DType::kBF16, 500);
    for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(half[i], wide[i] >> 16U);
}

TEST(Fill, BothWaysToFillOrdinaryAgree) {
    // Exponent -100 is filled in floating point, -101 in integers: the same values one exponent apart.
    const auto fast = filled(array_of(Fill::kOrdinary, -100), DType::kF32, 2000);
    const auto slow = filled(array_of(Fill::kOrdinary, -101), DType::kF32, 2000);
    for (std::size_t i = 0; i < fast.size(); ++i) ASSERT_EQ(float_of(fast[i]), 2 * float_of(slow[i]));
}

TEST(Fill, HeavyTailedSpansManyBinades) {
    std::set<std::uint32_t> binades;
    for (const std::uint32_t bits : filled(array_of(Fill::kHeavyTailed), DType::kF32, 5000))
        binades.insert(bits >> 23U & 0xFFU);
    EXPECT_GE(binades.size(), 28U);
}

TEST(Fill, MountainRisesToTheMiddleAndFalls) {
    const auto words = filled(array_of(Fill::kMountain), DType::kF32, 1000);
    const auto exponent = [&](std::size_t i) { return words[i] >> 23U & 0xFFU; };
    for (std::size_t i = 1; i < 500; ++i) ASSERT_GE(exponent(i), exponent(i - 1));
    for (std::size_t i = 501; i < 1000; ++i) ASSERT_LE(exponent(i), exponent(i - 1));
    EXPECT_GE(exponent(500) - exponent(0), 20U);
}

TEST(Fill, OneHotHasOneValue) {
    std::set<std::size_t> places;
    bool three = false;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const auto values = values_of(array_of(Fill::kOneHot, 0, seed), DType::kF32, 10);
        EXPECT_EQ(std::ranges::count(values, 0.0F), 9);
        const auto hot = std::ranges::find_if(values, [](float x) { return x != 0; });
        places.insert(static_cast<std::size_t>(hot - values.begin()));
        three = three || *hot == 3.0F;
    }
    EXPECT_EQ(places.size(), 10U);
    EXPECT_TRUE(three);
}

TEST(Fill, ThresholdsAreHitOnBothSides) {
    const auto words = filled(array_of(Fill::kThresholds), DType::kF32, 5000);
    for (const std::uint32_t threshold : {0x20000000U, 0x59800000U, 0x5F7FFFFFU, 0x00800000U}) {
        for (const std::uint32_t near : {threshold - 1, threshold, threshold + 1}) {
            EXPECT_NE(std::ranges::find(words, near), words.end()) << std::hex << near;
            EXPECT_NE(std::ranges::find(words, near | reference::kSignBit), words.end()) << std::hex << near;
        }
    }
}

TEST(Fill, CancellingPairsAreNearlyOpposite) {
    const auto words = filled(array_of(Fill::kCancelling), DType::kF32, 1000);
    for (std::size_t i = 0; i < words.size(); i += 2) {
        ASSERT_NE(words[i] >> 31U, words[i + 1] >> 31U);
        const std::uint32_t a = words[i] & 0x7FFFFFFFU;
        const std::uint32_t b = words[i + 1] & 0x7FFFFFFFU;
        ASSERT_LE(a > b ? a - b : b - a, 1U);
    }
}

TEST(Fill, SubnormalsAreSubnormalOrZero) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
        std::uint32_t subnormals = 0;
        for (const float x : values_of(array_of(Fill::kSubnormal), dtype, 1000)) {
            const FloatClass c = classify(x);
            ASSERT_TRUE(c == FloatClass::kZero || c == FloatClass::kSubnormal);
            subnormals += c == FloatClass::kSubnormal ? 1 : 0;
        }
        EXPECT_GT(subnormals, 500U);
    }
    for (const std::uint32_t bits : filled(array_of(Fill::kSubnormal), DType::kF16, 1000))
        ASSERT_LT(bits & 0x7FFFU, 0x400U);
}

TEST(Fill, HugeSquaresOverflowAndTheGreatestNumberIsAmongThem) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
        const std::uint32_t greatest = dtype == DType::kF32 ? 0x7F7FFFFFU : 0x7F7FU;
        bool found = false;
        for (const std::uint32_t bits : filled(array_of(Fill::kHuge), dtype, 500)) {
            const float x = value_of(bits, dtype);
            ASSERT_FALSE(reference::is_finite_bits(x * x));
            found = found || bits == greatest;
        }
        EXPECT_TRUE(found);
    }
}

TEST(Fill, AnyBitsHasEveryClassAndNaNsOfBothKindsWhereBad) {
    for (const DType dtype : kAllDTypes) {
        ArrayRecipe recipe = array_of(Fill::kAnyBits);
        recipe.bad = true;
        std::set<FloatClass> classes;
        std::set<std::uint32_t> payloads;
        bool minus_zero = false;
        for (const std::uint32_t bits : filled(recipe, dtype, 4000)) {
            const float x = value_of(bits, dtype);
            classes.insert(classify(x));
            if (classify(x) == FloatClass::kNaN) payloads.insert(bits);
            minus_zero = minus_zero || bits_of(x) == reference::kSignBit;
        }
        EXPECT_EQ(classes.size(), dtype == DType::kF16 ? 4U : 5U);  // Widened, no F16 is an FP32 subnormal.
        EXPECT_GT(payloads.size(), 50U);
        EXPECT_TRUE(minus_zero);
    }
}

TEST(Fill, BalancedMagnitudesAreWithinAFactorOfThreeHalvesWithTheSignOfTheIndex) {
    const auto a = values_of(array_of(Fill::kBalanced, -3, 2), DType::kF32, 500);
    const auto b = values_of(array_of(Fill::kBalanced, 4, 8), DType::kBF16, 500);
    const auto turned = values_of(array_of(Fill::kBalanced, 4, 9), DType::kF16, 500);
    for (std::size_t i = 0; i < a.size(); ++i) {
        const float size = a[i] < 0 ? -a[i] : a[i];
        ASSERT_GE(size, 0.125F);
        ASSERT_LT(size, 0.1875F);
        ASSERT_EQ(a[i] < 0, b[i] < 0);
        ASSERT_NE(a[i] < 0, turned[i] < 0);
    }
}

TEST(Fill, ValuesBeyondADtypeSaturate) {
    for (const std::uint32_t bits : filled(array_of(Fill::kBalanced, 40), DType::kF16, 20))
        EXPECT_EQ(bits & 0x7FFFU, 0x7BFFU);
    for (const std::uint32_t bits : filled(array_of(Fill::kBalanced, -40), DType::kF16, 20))
        EXPECT_EQ(bits & 0x7FFFU, 0U);
}

}  // namespace
}  // namespace gradguard::harness
