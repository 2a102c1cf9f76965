// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

constexpr std::uint64_t kNan = 0x7FFFFFFF;

/// The value of a 16-bit float by its definition.
double value_of(std::uint32_t pattern, int exponent_bits, int fraction_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const std::uint32_t fraction = pattern & ((1U << fraction_bits) - 1);
    const int exponent = static_cast<int>(pattern >> fraction_bits) & ((1 << exponent_bits) - 1);
    double value = 0;
    if (exponent == (1 << exponent_bits) - 1)
        value = fraction ? std::nan("") : std::numeric_limits<double>::infinity();
    else if (exponent == 0)
        value = std::ldexp(fraction, 1 - bias - fraction_bits);
    else
        value = std::ldexp(fraction + (1U << fraction_bits), exponent - bias - fraction_bits);
    return pattern & 0x8000U ? -value : value;
}

std::vector<Operands> all_16_bit_patterns() {
    std::vector<Operands> inputs;
    for (std::uint32_t i = 0; i < 65536; ++i) inputs.push_back({i, 0, 0});
    return inputs;
}

TEST(Conversion, F16WidensExactlyForEveryPattern) {
    const auto results = evaluate("cvt.f32.f16 %d_f, %a_h;", all_16_bit_patterns());
    for (std::uint32_t i = 0; i < 65536; ++i) {
        const double value = value_of(i, 5, 10);
        const std::uint64_t wanted = std::isnan(value) ? kNan : bits(static_cast<float>(value));
        ASSERT_EQ(results[i], wanted) << std::hex << i;
    }
}

TEST(Conversion, Bf16WidensToItsUpperHalfForEveryPattern) {
    const auto results = evaluate("cvt.f32.bf16 %d_f, %a_h;", all_16_bit_patterns());
    for (std::uint32_t i = 0; i < 65536; ++i) {
        ASSERT_EQ(results[i], std::uint64_t{i} << 16) << std::hex << i;
        const double value = value_of(i, 8, 7);
        if (!std::isnan(value)) {
            ASSERT_EQ(results[i], bits(static_cast<float>(value)));
        }
    }
}

TEST(Conversion, NarrowingAndWideningReturnsEveryNumber) {
    const auto f16 = evaluate("cvt.f32.f16 %d_f, %a_h;\ncvt.rn.f16.f32 %d_h, %d_f;\nmov.f32 %d_f, 0f00000000;",
                              all_16_bit_patterns());
    const auto bf16 = evaluate("cvt.f32.bf16 %d_f, %a_h;\ncvt.rn.bf16.f32 %d_h, %d_f;\nmov.f32 %d_f, 0f00000000;",
                               all_16_bit_patterns());
    for (std::uint32_t i = 0; i < 65536; ++i) {
        ASSERT_EQ(f16[i], std::isnan(value_of(i, 5, 10)) ? 0x7FFF : i);
        ASSERT_EQ(bf16[i], std::isnan(value_of(i, 8, 7)) ? 0x7FFF : i);
    }
}

TEST(Conversion, NarrowingRoundsHalfWayCasesToEven) {
    const auto f16 = [](double value) {
        return evaluate_one("cvt.rn.f16.f32 %d_h, %a_f;", bits(static_cast<float>(value)));
    };
    EXPECT_EQ(f16(1 + 0x1p-11), 0x3C00U);
    EXPECT_EQ(f16(1 + 3 * 0x1p-11), 0x3C02U);
    EXPECT_EQ(f16(65519), 0x7BFFU);
    EXPECT_EQ(f16(65520), 0x7C00U);
    EXPECT_EQ(f16(0x1p-25), 0U);
    EXPECT_EQ(f16(0x1.000002p-25), 1U);
    EXPECT_EQ(f16(-0x1.8p-24), 0x8002U);
    EXPECT_EQ(f16(0x1.ffcp-15), 0x03FFU + 0x0001U) << "rounds up to the least normal";
    // From FP64 there is one rounding: this lies above a half-way point by less than FP32 can see.
    EXPECT_EQ(evaluate_one("cvt.rn.f16.f64 %d_h, %a_g;", bits(1 + 0x1p-11 + 0x1p-40)), 0x3C01U);
    EXPECT_EQ(evaluate_one("cvt.rn.bf16.f32 %d_h, %a_f;", 0x3F808000), 0x3F80U);
    EXPECT_EQ(evaluate_one("cvt.rn.bf16.f32 %d_h, %a_f;", 0x3F808001), 0x3F81U);
    EXPECT_EQ(evaluate_one("cvt.rz.bf16.f32 %d_h, %a_f;", 0x3F80FFFF), 0x3F80U);
    EXPECT_EQ(evaluate_one("cvt.rz.f16.f32 %d_h, %a_f;", bits(1e30F)), 0x7BFFU);
    EXPECT_EQ(evaluate_one("cvt.rn.f16x2.f32 %d_r, %a_f, %b_f;", bits(1.0F), bits(2.0F)), 0x3C004000U);
    EXPECT_EQ(evaluate_one("cvt.rn.bf16x2.f32 %d_r, %a_f, %b_f;", bits(1.0F), bits(2.0F)), 0x3F804000U);
}

TEST(Conversion, FloatToIntegerRoundsAsNamedAndClamps) {
    const auto to_s32 = [](const char* mode, float value) {
        return static_cast<std::int32_t>(
            evaluate_one(std::string("cvt.") + mode + ".s32.f32 %d_r, %a_f;", bits(value)));
    };
    EXPECT_EQ(to_s32("rni", 2.5F), 2);
    EXPECT_EQ(to_s32("rni", 3.5F), 4);
    EXPECT_EQ(to_s32("rzi", -2.75F), -2);
    EXPECT_EQ(to_s32("rmi", -2.25F), -3);
    EXPECT_EQ(to_s32("rpi", 2.25F), 3);
    EXPECT_EQ(to_s32("rzi", 1e20F), std::numeric_limits<std::int32_t>::max());
    EXPECT_EQ(to_s32("rzi", -1e20F), std::numeric_limits<std::int32_t>::min());
    EXPECT_EQ(to_s32("rzi", std::nanf("")), 0);
    EXPECT_EQ(evaluate_one("cvt.rzi.u32.f32 %d_r, %a_f;", bits(-5.0F)), 0U);
    EXPECT_EQ(evaluate_one("cvt.rzi.u32.f32 %d_r, %a_f;", bits(4e9F)), 4000000000U);
    EXPECT_EQ(evaluate_one("cvt.rzi.u64.f64 %d_d, %a_g;", bits(0x1.fffffffffffffp+63)), 0xFFFFFFFFFFFFF800U);
    EXPECT_EQ(evaluate_one("cvt.rzi.s64.f64 %d_d, %a_g;", bits(std::nan(""))), std::uint64_t{1} << 63);
    EXPECT_EQ(evaluate_one("cvt.rzi.s64.f32 %d_d, %a_f;", bits(std::nanf(""))), std::uint64_t{1} << 63);
    EXPECT_EQ(evaluate_one("cvt.rzi.s32.f64 %d_r, %a_g;", bits(std::nan(""))), 0x80000000U);
    EXPECT_EQ(evaluate_one("cvt.rzi.s8.f32 %d_r, %a_f;", bits(-300.0F)), 0xFFFFFF80U);
    EXPECT_EQ(evaluate_one("cvt.rni.f32.f32 %d_f, %a_f;", bits(-0.25F)), 0x80000000U);
    EXPECT_EQ(evaluate_one("cvt.rmi.f64.f64 %d_g, %a_g;", bits(-0.25)), bits(-1.0));
}

TEST(Conversion, IntegerToFloatRoundsToNearestEven) {
    EXPECT_EQ(evaluate_one("cvt.rn.f32.s32 %d_f, %a_r;", 0xFFFFFFFF), bits(-1.0F));
    EXPECT_EQ(evaluate_one("cvt.rn.f32.u32 %d_f, %a_r;", 0xFFFFFFFF), bits(0x1p32F));
    EXPECT_EQ(evaluate_one("cvt.rn.f32.u32 %d_f, %a_r;", 0x01000001), bits(0x1p24F));
    EXPECT_EQ(evaluate_one("cvt.rn.f32.u32 %d_f, %a_r;", 0x01000003), bits(0x1.000004p24F));
    EXPECT_EQ(evaluate_one("cvt.rn.f32.u64 %d_f, %a_d;", 0x8000008000000001U), bits(0x1.000002p63F));
    EXPECT_EQ(evaluate_one("cvt.rn.f64.u64 %d_g, %a_d;", ~std::uint64_t{0}), bits(0x1p64));
    EXPECT_EQ(evaluate_one("cvt.rn.f64.s32 %d_g, %a_r;", 0x80000000), bits(-0x1p31));
    EXPECT_EQ(evaluate_one("cvt.rn.f32.s16 %d_f, %a_h;", 0xFFFE), bits(-2.0F));
}

TEST(Conversion, FloatWidths) {
    EXPECT_EQ(evaluate_one("cvt.f64.f32 %d_g, %a_f;", 1), bits(0x1p-149));
    EXPECT_EQ(evaluate_one("cvt.rn.f32.f64 %d_f, %a_g;", bits(0x1.000001p+0)), bits(1.0F));
    EXPECT_EQ(evaluate_one("cvt.rn.f32.f64 %d_f, %a_g;", bits(0x1p-150)), 0U);
    EXPECT_EQ(evaluate_one("cvt.rn.f32.f64 %d_f, %a_g;", bits(std::nan("7"))), kNan);
    EXPECT_EQ(evaluate_one("cvt.rn.ftz.f32.f64 %d_f, %a_g;", bits(-0x1p-140)), 0x80000000U);
    EXPECT_EQ(evaluate_one("cvt.sat.f32.f32 %d_f, %a_f;", bits(3.0F)), bits(1.0F));
}

TEST(Conversion, IntegersExtendByTheSourcesSignAndTruncate) {
    EXPECT_EQ(evaluate_one("cvt.s64.s32 %d_d, %a_r;", 0xFFFFFFFE), ~std::uint64_t{1});
    EXPECT_EQ(evaluate_one("cvt.u64.u32 %d_d, %a_r;", 0xFFFFFFFE), 0xFFFFFFFEU);
    EXPECT_EQ(evaluate_one("cvt.u32.u64 %d_r, %a_d;", 0x1234567890ABCDEFU), 0x90ABCDEFU);
    EXPECT_EQ(evaluate_one("cvt.s32.s8 %d_r, %a_r;", 0x1FF), 0xFFFFFFFFU);
    EXPECT_EQ(evaluate_one("cvt.u32.u8 %d_r, %a_r;", 0x1FF), 0xFFU);
    EXPECT_EQ(evaluate_one("cvt.u16.u32 %d_h, %a_r;", 0x12345678), 0x5678U);
    EXPECT_EQ(evaluate_one("cvt.sat.u8.s32 %d_r, %a_r;", 300), 255U);
    EXPECT_EQ(evaluate_one("cvt.sat.u8.s32 %d_r, %a_r;", 0xFFFFFFFF), 0U);
    EXPECT_EQ(evaluate_one("cvt.sat.s32.s64 %d_r, %a_d;", std::uint64_t{1} << 40), 0x7FFFFFFFU);
}

TEST(Conversion, WiderRegistersThanTheTypeAreLegal) {
    EXPECT_EQ(evaluate_one("cvt.s16.s32 %d_d, %a_r;", 0xFFFF8000), 0xFFFFFFFFFFFF8000U)
        << "sign-extended to the register";
    EXPECT_EQ(evaluate_one("cvt.u8.u32 %d_d, %a_r;", 0x1FF), 0xFFU);
    EXPECT_EQ(evaluate_one("cvt.u32.u16 %d_r, %a_r;", 0x12345678), 0x5678U) << "the low half of the source";
    EXPECT_EQ(evaluate_one("cvt.s64.s32 %d_d, %a_d;", 0x00000001FFFFFFFFU), ~std::uint64_t{0});
}

}  // namespace
}  // namespace gradguard::vgpu::test
