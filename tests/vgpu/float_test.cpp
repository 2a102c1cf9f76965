// SPDX-License-Identifier: Apache-2.0
// FP32 and FP64 instructions against exact values worked out by hand, and against the host's own IEEE arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

constexpr std::uint32_t kNan = 0x7FFFFFFF;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kQuiet = std::bit_cast<float>(0xFFC12345U);
constexpr float kLeastNormal = 0x1p-126F;

std::uint32_t word(float value) { return std::bit_cast<std::uint32_t>(value); }

/// Bit patterns of every class, and their neighbours.
std::vector<std::uint32_t> patterns() {
    std::vector<std::uint32_t> result;
    for (const std::uint32_t magnitude :
         {0x00000000U, 0x00000001U, 0x00000002U, 0x00400000U, 0x007FFFFFU, 0x00800000U, 0x00800001U,
          0x1F800000U, 0x20000000U, 0x3F7FFFFFU, 0x3F800000U, 0x3F800001U, 0x40490FDBU, 0x4B000001U,
          0x5F800000U, 0x7F000000U, 0x7F7FFFFFU, 0x7F800000U, 0x7F800001U, 0x7FC00000U}) {
        result.push_back(magnitude);
        result.push_back(magnitude | 0x80000000U);
    }
    std::mt19937 random(1);
    for (int i = 0; i < 24; ++i) result.push_back(static_cast<std::uint32_t>(random()));
    return result;
}

std::vector<Operands> pairs() {
    std::vector<Operands> result;
    const auto values = patterns();
    std::mt19937 random(2);
    for (const std::uint32_t a : values) {
        for (const std::uint32_t b : values) result.push_back({a, b, values[random() % values.size()]});
    }
    return result;
}

float as_float(std::uint64_t operand) { return std::bit_cast<float>(static_cast<std::uint32_t>(operand)); }

template <class F>
void expect_f32(const std::string& snippet, F&& expected) {
    const auto inputs = pairs();
    const auto results = evaluate(snippet, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const volatile float value = expected(as_float(inputs[i][0]), as_float(inputs[i][1]), as_float(inputs[i][2]));
        const std::uint32_t wanted = std::isnan(value) ? kNan : word(value);
        ASSERT_EQ(results[i], wanted) << snippet << std::hex << " of 0x" << inputs[i][0] << ", 0x" << inputs[i][1]
                                      << ", 0x" << inputs[i][2];
    }
}

TEST(Float, FmaRoundsOnce) {
    const float a = 1 + 0x1p-12F;
    EXPECT_EQ(evaluate_f32("fma.rn.f32 %d_f, %a_f, %b_f, %c_f;", a, a, 0x1p-60F), word(0x1.002002p+0F));
    EXPECT_EQ(evaluate_f32("fma.rn.f32 %d_f, %a_f, %b_f, %c_f;", a, a, -0x1p-60F), word(0x1.002p+0F));
    // Two significands of 16 bits above a single unit far below: 200 bits apart.
    EXPECT_EQ(evaluate_f32("fma.rn.f32 %d_f, %a_f, %b_f, %c_f;", 257 * 0x1p50F, 65281 * 0x1p50F, 0x1p-149F),
              word(0x1.000002p+124F));
    EXPECT_EQ(evaluate_f32("fma.rn.f32 %d_f, %a_f, %b_f, %c_f;", a, a, 0), word(0x1.002p+0F));
    EXPECT_EQ(evaluate_f32("fma.rn.f32 %d_f, %a_f, %b_f, %c_f;", 3, 5, -15), word(0.0F));
    EXPECT_EQ(evaluate_f32("fma.rn.f32 %d_f, %a_f, %b_f, %c_f;", kInfinity, 0, 1), kNan);
}

TEST(Float, ArithmeticIsTheHostsIeeeArithmetic) {
    expect_f32("add.f32 %d_f, %a_f, %b_f;", [](float a, float b, float) { return a + b; });
    expect_f32("sub.rn.f32 %d_f, %a_f, %b_f;", [](float a, float b, float) { return a - b; });
    expect_f32("mul.rn.f32 %d_f, %a_f, %b_f;", [](float a, float b, float) { return a * b; });
    expect_f32("div.rn.f32 %d_f, %a_f, %b_f;", [](float a, float b, float) { return a / b; });
    expect_f32("fma.rn.f32 %d_f, %a_f, %b_f, %c_f;", [](float a, float b, float c) { return std::fma(a, b, c); });
    expect_f32("sqrt.rn.f32 %d_f, %a_f;", [](float a, float, float) { return std::sqrt(a); });
    expect_f32("rcp.rn.f32 %d_f, %a_f;", [](float a, float, float) { return 1 / a; });
}

TEST(Float, NanResultsAreCanonical) {
    EXPECT_EQ(evaluate_f32("add.f32 %d_f, %a_f, %b_f;", kQuiet, 1), kNan);
    EXPECT_EQ(evaluate_f32("sub.f32 %d_f, %a_f, %b_f;", kInfinity, kInfinity), kNan);
    EXPECT_EQ(evaluate_f32("div.rn.f32 %d_f, %a_f, %b_f;", 0, -0.0F), kNan);
    EXPECT_EQ(evaluate_f32("sqrt.rn.f32 %d_f, %a_f;", -1), kNan);
    EXPECT_EQ(evaluate_f32("max.f32 %d_f, %a_f, %b_f;", kQuiet, kQuiet), kNan);
}

TEST(Float, SubnormalsAreKept) {
    EXPECT_EQ(evaluate_f32("mul.f32 %d_f, %a_f, %b_f;", 0x1p-126F, 0x1p-23F), 1U);
    EXPECT_EQ(evaluate_f32("div.rn.f32 %d_f, %a_f, %b_f;", 0x1p-149F, 0.5F), 2U);
    EXPECT_EQ(evaluate_f32("div.rn.f32 %d_f, %a_f, %b_f;", 0x1p-126F, 3), 0x002AAAABU);
    EXPECT_EQ(evaluate_f32("sqrt.rn.f32 %d_f, %a_f;", 0x1p-148F), word(0x1p-74F));
    EXPECT_EQ(evaluate_f32("rcp.rn.f32 %d_f, %a_f;", 0x1p-128F), 0x7F800000U) << "2^128 is infinity";
    EXPECT_EQ(evaluate_f32("rcp.rn.f32 %d_f, %a_f;", 0x1p+127F), word(0x1p-127F));
}

TEST(Float, FtzFlushesOperandsAndResultsAndKeepsTheSign) {
    EXPECT_EQ(evaluate_f32("mul.ftz.f32 %d_f, %a_f, %b_f;", -kLeastNormal, 0.5F), 0x80000000U);
    EXPECT_EQ(evaluate_f32("add.ftz.f32 %d_f, %a_f, %b_f;", 0x1p-127F, 0x1p-127F), 0U);
    EXPECT_EQ(evaluate_f32("mul.ftz.f32 %d_f, %a_f, %b_f;", 0x1p-127F, 0x1p100F), 0U);
    EXPECT_EQ(evaluate_f32("fma.rn.ftz.f32 %d_f, %a_f, %b_f, %c_f;", 0x1p-127F, 0x1p120F, 1), word(1.0F));
    EXPECT_EQ(evaluate_f32("div.rn.ftz.f32 %d_f, %a_f, %b_f;", 1, 0x1p-127F), word(kInfinity));
    EXPECT_EQ(evaluate_f32("sqrt.rn.ftz.f32 %d_f, %a_f;", 0x1p-140F), 0U);
    EXPECT_EQ(evaluate_f32("abs.ftz.f32 %d_f, %a_f;", -0x1p-140F), 0U);
    EXPECT_EQ(evaluate_one("setp.gt.ftz.f32 %d_p, %a_f, %b_f;", bits(0x1p-140F), bits(0.0F)), 0U);
    EXPECT_EQ(evaluate_one("setp.gt.f32 %d_p, %a_f, %b_f;", bits(0x1p-140F), bits(0.0F)), 1U);
}

TEST(Float, FlushingOnRequestTreatsEveryFp32InstructionAsFtz) {
    MachineOptions options;
    options.flush_subnormals = true;
    EXPECT_EQ(evaluate_f32("mul.rn.f32 %d_f, %a_f, %b_f;", -kLeastNormal, 0.5F, 0, options), 0x80000000U);
    EXPECT_EQ(evaluate_f32("fma.rn.f32 %d_f, %a_f, %b_f, %c_f;", 0x1p-127F, 0x1p120F, 1, options), word(1.0F));
    EXPECT_EQ(evaluate_f32("max.NaN.f32 %d_f, %a_f, %b_f;", 0x1p-140F, -1, 0, options), 0U);
    EXPECT_EQ(evaluate_f32("mul.rn.f32 %d_f, %a_f, %b_f;", 3, 0.5F, 0, options), word(1.5F));
}

TEST(Float, SaturationClampsToUnitIntervalAndTurnsNanIntoZero) {
    EXPECT_EQ(evaluate_f32("add.sat.f32 %d_f, %a_f, %b_f;", 0.75F, 0.5F), word(1.0F));
    EXPECT_EQ(evaluate_f32("sub.sat.f32 %d_f, %a_f, %b_f;", 0.25F, 0.5F), 0U);
    EXPECT_EQ(evaluate_f32("mul.sat.f32 %d_f, %a_f, %b_f;", kQuiet, 0.5F), 0U);
    EXPECT_EQ(evaluate_f32("fma.rn.sat.f32 %d_f, %a_f, %b_f, %c_f;", 0.5F, 0.5F, 0.125F), word(0.375F));
    EXPECT_EQ(evaluate_f32("mul.sat.f32 %d_f, %a_f, %b_f;", -0.0F, 0.5F), 0U);
}

TEST(Float, MinAndMaxOrderZerosAndDropOneNan) {
    EXPECT_EQ(evaluate_f32("min.f32 %d_f, %a_f, %b_f;", 0.0F, -0.0F), 0x80000000U);
    EXPECT_EQ(evaluate_f32("min.f32 %d_f, %a_f, %b_f;", -0.0F, 0.0F), 0x80000000U);
    EXPECT_EQ(evaluate_f32("max.f32 %d_f, %a_f, %b_f;", 0.0F, -0.0F), 0U);
    EXPECT_EQ(evaluate_f32("max.f32 %d_f, %a_f, %b_f;", -0.0F, 0.0F), 0U);
    EXPECT_EQ(evaluate_f32("max.f32 %d_f, %a_f, %b_f;", kQuiet, -3), word(-3.0F));
    EXPECT_EQ(evaluate_f32("min.f32 %d_f, %a_f, %b_f;", -3, kQuiet), word(-3.0F));
    EXPECT_EQ(evaluate_f32("max.NaN.f32 %d_f, %a_f, %b_f;", kQuiet, -3), kNan);
    EXPECT_EQ(evaluate_f32("min.NaN.f32 %d_f, %a_f, %b_f;", -3, kQuiet), kNan);
    EXPECT_EQ(evaluate_f32("max.NaN.f32 %d_f, %a_f, %b_f;", -0.0F, 0.0F), 0U);
    EXPECT_EQ(evaluate_f32("max.NaN.f32 %d_f, %a_f, %b_f;", -kInfinity, 2), word(2.0F));
    EXPECT_EQ(evaluate_f32("min.f32 %d_f, %a_f, %b_f;", -7, 2), word(-7.0F));
}

TEST(Float, PlainComparisonsAreFalseAndUnorderedOnesTrueWithNan) {
    const std::string kinds[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    for (const std::string& kind : kinds) {
        EXPECT_EQ(evaluate_one("setp." + kind + ".f32 %d_p, %a_f, %b_f;", bits(kQuiet), bits(1.0F)), 0U) << kind;
        EXPECT_EQ(evaluate_one("setp." + kind + "u.f32 %d_p, %a_f, %b_f;", bits(1.0F), bits(kQuiet)), 1U) << kind;
    }
    EXPECT_EQ(evaluate_one("setp.num.f32 %d_p, %a_f, %b_f;", bits(kQuiet), bits(1.0F)), 0U);
    EXPECT_EQ(evaluate_one("setp.nan.f32 %d_p, %a_f, %b_f;", bits(kQuiet), bits(1.0F)), 1U);
    EXPECT_EQ(evaluate_one("setp.num.f64 %d_p, %a_g, %b_g;", bits(2.0), bits(1.0)), 1U);
}

TEST(Float, ComparisonsOrderNumbersAndTreatZerosAsEqual) {
    const float values[] = {-kInfinity, -2, -0.0F, 0.0F, 0x1p-149F, 1, kInfinity};
    std::vector<Operands> inputs;
    for (const float a : values) {
        for (const float b : values) inputs.push_back({bits(a), bits(b), 0});
    }
    struct Case {
        const char* name;
        bool (*holds)(float, float);
    };
    const Case cases[] = {
        {"eq", [](float a, float b) { return a == b; }}, {"ne", [](float a, float b) { return a != b; }},
        {"lt", [](float a, float b) { return a < b; }},  {"le", [](float a, float b) { return a <= b; }},
        {"gt", [](float a, float b) { return a > b; }},  {"ge", [](float a, float b) { return a >= b; }}};
    for (const Case& one : cases) {
        for (const char* suffix : {"", "u"}) {
            const auto results = evaluate(std::string("setp.") + one.name + suffix + ".f32 %d_p, %a_f, %b_f;", inputs);
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                EXPECT_EQ(results[i], one.holds(as_float(inputs[i][0]), as_float(inputs[i][1])) ? 1U : 0U)
                    << one.name << suffix;
            }
        }
    }
}

TEST(Float, SignOperationsTouchOnlyTheSign) {
    EXPECT_EQ(evaluate_f32("neg.f32 %d_f, %a_f;", 0), 0x80000000U);
    EXPECT_EQ(evaluate_f32("abs.f32 %d_f, %a_f;", -kInfinity), 0x7F800000U);
    EXPECT_EQ(evaluate_f32("copysign.f32 %d_f, %a_f, %b_f;", -1, 3), word(-3.0F));
    EXPECT_EQ(evaluate_f32("copysign.f32 %d_f, %a_f, %b_f;", 1, -3), word(3.0F));
}

TEST(Float, TestpClassifies) {
    const auto test = [](const char* name, float value) {
        return evaluate_one(std::string("testp.") + name + ".f32 %d_p, %a_f;", bits(value));
    };
    EXPECT_EQ(test("finite", 3), 1U);
    EXPECT_EQ(test("finite", kInfinity), 0U);
    EXPECT_EQ(test("infinite", -kInfinity), 1U);
    EXPECT_EQ(test("number", kInfinity), 1U);
    EXPECT_EQ(test("notanumber", kQuiet), 1U);
    EXPECT_EQ(test("normal", 0x1p-126F), 1U);
    EXPECT_EQ(test("normal", 0), 1U) << "zeros count as normal";
    EXPECT_EQ(test("subnormal", 0x1p-149F), 1U);
    EXPECT_EQ(test("subnormal", 0), 0U);
}

TEST(Float, DirectedRoundingsBracketTheExactResult) {
    // 1 + 2^-24 is no FP32 number.
    EXPECT_EQ(evaluate_f32("add.rz.f32 %d_f, %a_f, %b_f;", 1, 0x1p-24F), word(1.0F));
    EXPECT_EQ(evaluate_f32("add.rp.f32 %d_f, %a_f, %b_f;", 1, 0x1p-24F), word(0x1.000002p+0F));
    EXPECT_EQ(evaluate_f32("add.rm.f32 %d_f, %a_f, %b_f;", -1, -0x1p-24F), word(-0x1.000002p+0F));
    EXPECT_EQ(evaluate_f32("mul.rz.f32 %d_f, %a_f, %b_f;", 0x1p127F, 2), 0x7F7FFFFFU);
    EXPECT_EQ(evaluate_f32("mul.rp.f32 %d_f, %a_f, %b_f;", 0x1p127F, 2), 0x7F800000U);
    EXPECT_EQ(evaluate_f32("fma.rm.f32 %d_f, %a_f, %b_f, %c_f;", 1, 1, -0x1p-149F), word(0x1.fffffep-1F));
    EXPECT_EQ(evaluate_f32("fma.rp.f32 %d_f, %a_f, %b_f, %c_f;", 1, 1, 0x1p-149F), word(0x1.000002p+0F));
    EXPECT_EQ(evaluate_f32("div.rz.f32 %d_f, %a_f, %b_f;", 1, 3), 0x3EAAAAAAU);
    EXPECT_EQ(evaluate_f32("div.rn.f32 %d_f, %a_f, %b_f;", 1, 3), 0x3EAAAAABU);
    EXPECT_EQ(evaluate_f32("sqrt.rp.f32 %d_f, %a_f;", 2), 0x3FB504F4U);
    EXPECT_EQ(evaluate_f32("sqrt.rm.f32 %d_f, %a_f;", 2), 0x3FB504F3U);
    EXPECT_EQ(evaluate_f32("rcp.rm.f32 %d_f, %a_f;", 3), 0x3EAAAAAAU);
    EXPECT_EQ(evaluate_f32("sub.rm.f32 %d_f, %a_f, %b_f;", 1, 1), 0x80000000U);
    EXPECT_EQ(evaluate_one("cvt.rz.f32.f64 %d_f, %a_g;", bits(1 + 0x1p-24)), bits(1.0F));
    EXPECT_EQ(evaluate_one("cvt.rp.f32.u32 %d_f, %a_r;", 0x01000001), bits(0x1.000002p+24F));
}

TEST(Float, DoubleArithmeticIsIeee) {
    const double third = 1.0 / 3;
    EXPECT_EQ(evaluate_one("div.rn.f64 %d_g, %a_g, %b_g;", bits(1.0), bits(3.0)), bits(third));
    EXPECT_EQ(evaluate_one("sqrt.rn.f64 %d_g, %a_g;", bits(2.0)), bits(std::sqrt(2.0)));
    const double a = 1 + 0x1p-27;
    EXPECT_EQ(evaluate_one("fma.rn.f64 %d_g, %a_g, %b_g, %c_g;", bits(a), bits(a), bits(-1.0)),
              bits(0x1p-26 + 0x1p-54));
    EXPECT_EQ(evaluate_one("add.f64 %d_g, %a_g, %b_g;", bits(0.1), bits(0.2)), bits(0.1 + 0.2));
    EXPECT_EQ(evaluate_one("mul.rz.f64 %d_g, %a_g, %b_g;", bits(a), bits(a)), bits(1 + 0x1p-26));
    EXPECT_EQ(evaluate_one("max.f64 %d_g, %a_g, %b_g;", bits(-0.0), bits(0.0)), 0U);
    EXPECT_EQ(evaluate_one("neg.f64 %d_g, %a_g;", bits(0.0)), std::uint64_t{1} << 63);
    EXPECT_EQ(evaluate_one("rcp.rn.f64 %d_g, %a_g;", bits(0x1p-1074)), bits(std::numeric_limits<double>::infinity()));
}

}  // namespace
}  // namespace gradguard::vgpu::test
