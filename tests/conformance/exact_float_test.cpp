// SPDX-License-Identifier: Apache-2.0
// The integer model against this processor's floating-point unit, in all four rounding modes.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <vector>

#include "tests/conformance/exact_convert.h"
#include "tests/conformance/operands.h"

namespace gradguard::conformance {
namespace {

constexpr int kTuples = 300'000;
constexpr Rounding kRoundings[] = {Rounding::NearestEven, Rounding::TowardZero, Rounding::Down, Rounding::Up};

int fe_mode(Rounding rounding) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    return kModes[static_cast<int>(rounding)];
}

template <class T>
constexpr Format kFormat = sizeof(T) == 4 ? Format::F32 : Format::F64;
template <class T>
T value(Bits bits) {
    if constexpr (sizeof(T) == 4) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    } else {
        return std::bit_cast<double>(bits);
    }
}
template <class T>
Bits pattern(T x) {
    if (std::isnan(x)) return canonical_nan(kFormat<T>);
    if constexpr (sizeof(T) == 4) {
        return std::bit_cast<std::uint32_t>(x);
    } else {
        return std::bit_cast<Bits>(x);
    }
}

template <class T>
using Native = T (*)(const volatile T*);
using Model = std::function<Bits(const Bits*, Mode)>;

template <class T>
void compare_with_fpu(const char* what, int operands, Relation relation, Native<T> native, const Model& model) {
    const Format format = kFormat<T>;
    const std::vector<OperandKind> kinds(static_cast<std::size_t>(operands), float_operand(format));
    for (const Rounding rounding : kRoundings) {
        OperandGenerator generator(kinds, relation, 0x5EED + static_cast<unsigned>(rounding), format);
        std::fesetround(fe_mode(rounding));
        int failures = 0;
        for (int i = 0; i < kTuples && failures < 5; ++i) {
            Bits tuple[3] = {};
            generator.next({tuple, static_cast<std::size_t>(operands)});
            volatile T in[3] = {value<T>(tuple[0]), value<T>(tuple[1]), value<T>(tuple[2])};
            volatile T out = native(in);
            const Bits want = pattern<T>(out);
            const Bits got = model(tuple, {.rounding = rounding});
            if (got == want) continue;
            ++failures;
            ADD_FAILURE() << what << " mode " << static_cast<int>(rounding) << std::hex << " (" << tuple[0] << ", "
                          << tuple[1] << ", " << tuple[2] << "): model " << got << ", processor " << want;
        }
        std::fesetround(FE_TONEAREST);
        EXPECT_TRUE(generator.coverage().missing(kinds).empty()) << generator.coverage().missing(kinds).front();
    }
}

template <class T>
void compare_all() {
    constexpr Format f = kFormat<T>;
    compare_with_fpu<T>(
        "add", 2, Relation::Sum, [](const volatile T* x) -> T { return x[0] + x[1]; },
        [](const Bits* x, Mode m) { return add(f, x[0], x[1], m); });
    compare_with_fpu<T>(
        "sub", 2, Relation::Sum, [](const volatile T* x) -> T { return x[0] - x[1]; },
        [](const Bits* x, Mode m) { return sub(f, x[0], x[1], m); });
    compare_with_fpu<T>(
        "mul", 2, Relation::Product, [](const volatile T* x) -> T { return x[0] * x[1]; },
        [](const Bits* x, Mode m) { return mul(f, x[0], x[1], m); });
    compare_with_fpu<T>(
        "div", 2, Relation::Quotient, [](const volatile T* x) -> T { return x[0] / x[1]; },
        [](const Bits* x, Mode m) { return div(f, x[0], x[1], m); });
    compare_with_fpu<T>(
        "sqrt", 1, Relation::Root, [](const volatile T* x) -> T { return std::sqrt(x[0]); },
        [](const Bits* x, Mode m) { return sqrt(f, x[0], m); });
    compare_with_fpu<T>(
        "fma", 3, Relation::Fused, [](const volatile T* x) -> T { return std::fma(x[0], x[1], x[2]); },
        [](const Bits* x, Mode m) { return fma(f, x[0], x[1], x[2], m); });
    compare_with_fpu<T>(
        "rint", 1, Relation::Narrow, [](const volatile T* x) -> T { return std::rint(x[0]); },
        [](const Bits* x, Mode m) { return float_to_integral(f, x[0], m); });
}

TEST(ExactFloat, F32AgreesWithTheProcessorInAllRoundingModes) { compare_all<float>(); }
TEST(ExactFloat, F64AgreesWithTheProcessorInAllRoundingModes) { compare_all<double>(); }

TEST(ExactFloat, FmaOfTwoHundredAndFiftyBitsIsRoundedOnce) {
    // 257 * 2^50 x 65281 * 2^50 + 2^-149 = 2^124 (1 + 2^-24) + 2^-149: above the tie.
    const Bits a = 0x5C808000;  // 257 * 2^50 = 0x1.01p58
    const Bits b = 0x607F0100;  // 65281 * 2^50 = 0x1.fe02p65
    EXPECT_EQ(value<float>(a), 0x1.01p58F);
    EXPECT_EQ(value<float>(b), 0x1.fe02p65F);
    EXPECT_EQ(fma(Format::F32, a, b, 1, Mode{}), std::bit_cast<std::uint32_t>(0x1.000002p+124F));
    EXPECT_EQ(fma(Format::F32, a, b, 0, Mode{}), std::bit_cast<std::uint32_t>(0x1p+124F));
    EXPECT_EQ(fma(Format::F32, a, b, 0x80000001, Mode{}), std::bit_cast<std::uint32_t>(0x1p+124F));
    const Bits x = std::bit_cast<std::uint32_t>(0x1.001p0F);
    EXPECT_EQ(fma(Format::F32, x, x, std::bit_cast<std::uint32_t>(0x1p-60F), Mode{}),
              std::bit_cast<std::uint32_t>(0x1.002002p+0F));
}

TEST(ExactFloat, NarrowingF64ToF32AgreesWithTheProcessorInAllRoundingModes) {
    for (const Rounding rounding : kRoundings) {
        OperandGenerator generator({float_operand(Format::F64)}, Relation::Narrow, 7, Format::F32);
        std::fesetround(fe_mode(rounding));
        int failures = 0;
        for (int i = 0; i < kTuples && failures < 5; ++i) {
            Bits bits = 0;
            generator.next({&bits, 1});
            volatile double in = value<double>(bits);
            volatile float out = static_cast<float>(in);
            const Bits got = float_to_float(Format::F64, Format::F32, bits, {.rounding = rounding});
            if (got != pattern<float>(out)) ++failures, ADD_FAILURE() << std::hex << bits << ": " << got;
        }
        std::fesetround(FE_TONEAREST);
    }
}

template <class I, class T>
void integers_agree() {
    const IntFormat format{static_cast<int>(8 * sizeof(I)), std::is_signed_v<I>};
    for (const Rounding rounding : kRoundings) {
        OperandGenerator generator({int_operand(format.bits, format.is_signed)}, Relation::Narrow, 11, kFormat<T>);
        OperandGenerator floats({float_operand(kFormat<T>)}, Relation::Narrow, 13, Format::F32);
        std::fesetround(fe_mode(rounding));
        int failures = 0;
        for (int i = 0; i < kTuples / 4 && failures < 5; ++i) {
            Bits bits = 0;
            generator.next({&bits, 1});
            volatile I in = static_cast<I>(bits);
            volatile T out = static_cast<T>(in);
            const Bits got = int_to_float(format, kFormat<T>, bits, {.rounding = rounding});
            if (got != pattern<T>(out)) ++failures, ADD_FAILURE() << std::hex << bits << ": " << got;
            floats.next({&bits, 1});
            volatile T x = value<T>(bits);
            volatile T whole = std::rint(x);
            const Bits integer = float_to_int(kFormat<T>, format, bits, rounding, false);
            const T limit = std::ldexp(T{1}, format.bits - (format.is_signed ? 1 : 0));
            if (!(whole >= (format.is_signed ? -limit : T{0}) && whole < limit)) continue;
            if (integer != pattern_of(format, static_cast<SignedWide>(static_cast<I>(whole)))) {
                ++failures, ADD_FAILURE() << std::hex << bits << ": to integer " << integer;
            }
        }
        std::fesetround(FE_TONEAREST);
    }
}

TEST(ExactFloat, IntegerConversionsAgreeWithTheProcessorInAllRoundingModes) {
    integers_agree<std::int32_t, float>();
    integers_agree<std::uint32_t, float>();
    integers_agree<std::int64_t, float>();
    integers_agree<std::int32_t, double>();
    integers_agree<std::int64_t, double>();
}

TEST(ExactFloat, FloatToIntClampsAndNaNFollowsTheManual) {
    const Bits inf = infinity(Format::F32);
    const Bits nan = canonical_nan(Format::F32);
    const auto zero = Rounding::TowardZero;
    EXPECT_EQ(float_to_int(Format::F32, {32, true}, inf, zero, false), 0x7fffffffU);
    EXPECT_EQ(float_to_int(Format::F32, {32, true}, inf | 0x80000000U, zero, false), 0x80000000U);
    EXPECT_EQ(float_to_int(Format::F32, {8, false}, std::bit_cast<std::uint32_t>(-1.0F), zero, false), 0U);
    EXPECT_EQ(float_to_int(Format::F32, {8, false}, std::bit_cast<std::uint32_t>(300.0F), zero, false), 255U);
    EXPECT_EQ(float_to_int(Format::F32, {32, true}, nan, zero, false), 0U);
    EXPECT_EQ(float_to_int(Format::F32, {64, true}, nan, zero, false), Bits{1} << 63);
    EXPECT_EQ(float_to_int(Format::F64, {32, false}, canonical_nan(Format::F64), zero, false), Bits{1} << 31);
    EXPECT_EQ(float_to_int(Format::F32, {32, true}, std::bit_cast<std::uint32_t>(2.5F), Rounding::NearestEven, false),
              2U);
    EXPECT_EQ(float_to_int(Format::F32, {32, true}, std::bit_cast<std::uint32_t>(3.5F), Rounding::NearestEven, false),
              4U);
    EXPECT_EQ(float_to_int(Format::F32, {32, true}, 1, Rounding::Up, false), 1U);
    EXPECT_EQ(float_to_int(Format::F32, {32, true}, 1, Rounding::Up, true), 0U);
}

/// Widened to FP32, computed there and rounded again: right for +, -, *, / and sqrt, as 24 >= 2 * 11 + 2.
TEST(ExactFloat, HalfPrecisionAgreesWithDoubleRoundingThroughF32) {
    for (const Format f : {Format::F16, Format::BF16}) {
        OperandGenerator sums({float_operand(f), float_operand(f)}, Relation::Sum, 17);
        OperandGenerator products({float_operand(f), float_operand(f)}, Relation::Product, 19);
        const auto wide = [&](Bits x) { return float_to_float(f, Format::F32, x, Mode{}); };
        const auto narrow = [&](Bits x) { return float_to_float(Format::F32, f, x, Mode{}); };
        for (int i = 0; i < kTuples; ++i) {
            Bits t[2];
            sums.next(t);
            // BF16 has FP32's range, so its sums can need more than 24 bits; where FP32 is exact they must agree.
            volatile float sum = value<float>(wide(t[0])) + value<float>(wide(t[1]));
            volatile double exact = double{value<float>(wide(t[0]))} + double{value<float>(wide(t[1]))};
            if (f == Format::F16 || double{sum} == exact || std::isnan(sum)) {
                ASSERT_EQ(add(f, t[0], t[1], Mode{}), narrow(pattern<float>(sum))) << std::hex << t[0] << " + " << t[1];
            }
            products.next(t);
            volatile float product = value<float>(wide(t[0])) * value<float>(wide(t[1]));
            if (f == Format::F16 || product == 0 || std::fabs(product) >= 0x1p-120F) {
                ASSERT_EQ(mul(f, t[0], t[1], Mode{}), narrow(pattern<float>(product)))
                    << std::hex << t[0] << " * " << t[1];
            }
        }
    }
}

TEST(ExactFloat, EveryF16AndBf16SurvivesWideningAndNarrowing) {
    for (const Format f : {Format::F16, Format::BF16}) {
        for (Bits bits = 0; bits < 65536; ++bits) {
            const Bits want = is_nan(f, bits) ? canonical_nan(f) : bits;
            EXPECT_EQ(float_to_float(Format::F32, f, float_to_float(f, Format::F32, bits, Mode{}), Mode{}), want);
            EXPECT_EQ(float_to_float(Format::F64, f, float_to_float(f, Format::F64, bits, Mode{}), Mode{}), want);
            if (f == Format::BF16 && !is_nan(f, bits)) {
                EXPECT_EQ(float_to_float(f, Format::F32, bits, Mode{}), bits << 16);
            }
        }
    }
}

TEST(ExactFloat, MinMaxAndComparisonsFollowTheNaNAndZeroRules) {
    const Format f = Format::F32;
    const Bits nan = 0x7F800001;
    const Bits two = 0x40000000;
    EXPECT_EQ(min(f, 0, 0x80000000, {}), 0x80000000U);
    EXPECT_EQ(max(f, 0x80000000, 0, {}), 0U);
    EXPECT_EQ(min(f, nan, two, {}), two);
    EXPECT_EQ(max(f, two, nan, {}), two);
    EXPECT_EQ(max(f, nan, nan, {}), 0x7FFFFFFFU);
    EXPECT_EQ(max(f, nan, two, {.nan = true}), 0x7FFFFFFFU);
    EXPECT_EQ(min(f, 1, two, {.ftz = true}), 0U);
    EXPECT_EQ(min(f, two | 0x80000000, 0x3F800000, {.xorsign_abs = true}), 0xBF800000U);
    EXPECT_TRUE(compare(f, CompareOp::Eq, 0, 0x80000000, false));
    EXPECT_TRUE(compare(f, CompareOp::Eq, 1, 0, true));
    EXPECT_FALSE(compare(f, CompareOp::Ne, nan, two, false));
    EXPECT_TRUE(compare(f, CompareOp::Neu, nan, two, false));
    EXPECT_TRUE(compare(f, CompareOp::Ltu, nan, two, false));
    EXPECT_FALSE(compare(f, CompareOp::Ge, nan, two, false));
    EXPECT_TRUE(testp(f, TestOp::Normal, 0));
    EXPECT_TRUE(testp(f, TestOp::Subnormal, 1));
    EXPECT_FALSE(testp(f, TestOp::Normal, nan));
    EXPECT_EQ(add(f, nan, two, {.saturate = true}), 0U);
    EXPECT_EQ(add(f, two, two, {.saturate = true}), 0x3F800000U);
    EXPECT_EQ(mul(f, 0x00400000, 0x3F800000, {.ftz = true}), 0U);
}

}  // namespace
}  // namespace gradguard::conformance
