// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparisons and conversions of 16-bit floats, one by one and in pairs. One form for all vector units.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "harness/vgpu/exec/op.h"

namespace gradguard::vgpu::exec {
namespace {

// clang-format off
#include "harness/vgpu/exec/lanes.inl"
#include "harness/vgpu/exec/float_functions.inl"
#include "harness/vgpu/exec/integer_functions.inl"
#include "harness/vgpu/exec/conversions.inl"
#include "harness/vgpu/exec/half_functions.inl"
// clang-format on

// ---- conversions
// -----------------------------------------------------------------------------------------------------

/// Integers of 64 bits keep 40 bits and whether there was more: exact in FP64, odd where inexact.
template <class H>
struct IntToHalf {
    template <class S>
    static H apply(S a) {
        const bool negative = a < S(0);
        u64 m = static_cast<u64>(static_cast<__int128>(a));
        if (negative) m = 0 - m;
        int shift = 0;
        if (m >> 40 != 0) {
            shift = 24 - __builtin_clzll(m);
            const u64 lost = m & ((u64{1} << shift) - 1);
            m = m >> shift | (lost != 0 ? 1 : 0);
        }
        const double magnitude = static_cast<double>(m) * static_cast<double>(u64{1} << shift);
        return narrow<H>(round_to_odd(negative ? -magnitude : magnitude));
    }
};
template <class D, class H, Integral kMode>
struct HalfToInt {
    static D apply(H a) { return FloatToInt<D, kMode, false>::apply(widen(a)); }
};
template <class H, Integral kMode>
struct HalfToIntegral {
    static H apply(H a) { return narrow<H>(to_integral<kMode>(widen(a))); }
};
template <class D, class S>
struct HalfToHalf {
    static D apply(S a) { return narrow<D>(widen(a)); }
};
template <class H>
struct DoubleToHalf {
    static H apply(double a) { return narrow<H>(round_to_odd(a)); }
};
struct Bf16ToDouble {
    static double apply(bf16 a) { return canonical(static_cast<double>(widen(a))); }
};
struct Bf16ToFlushedFloat {
    static float apply(bf16 a) { return finish<true, false>(widen(a)); }
};
/// Rounded towards zero.
bf16 cut_to_bf16(float a) { return {static_cast<u16>(a == a ? bits_of(a) >> 16 : 0x7FFFU)}; }
f16 cut_to_f16(float a) {
    const f16 r = narrow_to_f16(a);
    const float back = AbsoluteFloat::apply(widen(r));
    return back > AbsoluteFloat::apply(a) ? f16{static_cast<u16>(r.bits - 1)} : r;
}
template <class H, bool kZero, bool kFtz, bool kRelu>
struct FloatToHalf {
    static H apply(float x) {
        const float a = flush<kFtz>(x);
        H r = narrow<H>(a);
        if constexpr (kZero) {
            if constexpr (__is_same(H, f16))
                r = cut_to_f16(a);
            else
                r = cut_to_bf16(a);
        }
        return kRelu && a == a && (r.bits & 0x8000U) != 0 ? H{0} : r;
    }
};
template <class H, bool kZero, bool kRelu>
struct FloatsToPair {
    static u32 apply(float a, float b) {
        using One = FloatToHalf<H, kZero, false, kRelu>;
        return static_cast<u32>(One::apply(a).bits) << 16 | One::apply(b).bits;
    }
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments
#define ROW(name, format, ...) \
    { name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, kPlain }
#define ONE(op, modifiers, H, h, ...)                        \
    ROW(op modifiers "." h, "e=e", Map1<__VA_ARGS__, H, H>), \
        ROW(op modifiers "." h "x2", "x=x", Map1<Pair<__VA_ARGS__, H>, u32, u32>)
#define TWO(op, modifiers, H, h, ...)                         \
    ROW(op modifiers "." h, "e=ee", Map2<__VA_ARGS__, H, H>), \
        ROW(op modifiers "." h "x2", "x=xx", Map2<Pair<__VA_ARGS__, H>, u32, u32>)
#define THREE(op, modifiers, H, h, ...)                        \
    ROW(op modifiers "." h, "e=eee", Map3<__VA_ARGS__, H, H>), \
        ROW(op modifiers "." h "x2", "x=xxx", Map3<Pair<__VA_ARGS__, H>, u32, u32>)
#define F16_SUM(op, rnd, F)                                                                               \
    TWO(op, rnd, f16, "f16", F<f16, false, false>), TWO(op, rnd ".ftz", f16, "f16", F<f16, true, false>), \
        TWO(op, rnd ".sat", f16, "f16", F<f16, false, true>), TWO(op, rnd ".ftz.sat", f16, "f16", F<f16, true, true>)
#define HALF_SUM(op, F)                                                                          \
    F16_SUM(op, "", F), F16_SUM(op, ".rn", F), TWO(op, "", bf16, "bf16", F<bf16, false, false>), \
        TWO(op, ".rn", bf16, "bf16", F<bf16, false, false>)
#define HALF_EXTREMUM(op, maximum)                                                           \
    TWO(op, "", f16, "f16", HalfExtremum<f16, maximum, false, false, false>),                \
        TWO(op, ".ftz", f16, "f16", HalfExtremum<f16, maximum, true, false, false>),         \
        TWO(op, ".NaN", f16, "f16", HalfExtremum<f16, maximum, false, true, false>),         \
        TWO(op, ".ftz.NaN", f16, "f16", HalfExtremum<f16, maximum, true, true, false>),      \
        TWO(op, ".xorsign.abs", f16, "f16", HalfExtremum<f16, maximum, false, false, true>), \
        TWO(op, "", bf16, "bf16", HalfExtremum<bf16, maximum, false, false, false>),         \
        TWO(op, ".NaN", bf16, "bf16", HalfExtremum<bf16, maximum, false, true, false>),      \
        TWO(op, ".xorsign.abs", bf16, "bf16", HalfExtremum<bf16, maximum, false, false, true>)
#define XORSIGN(op, maximum)                                                                               \
    ROW(op ".xorsign.abs.f32", "f=ff", Map2<XorSignExtremum<maximum, false, false>, float, float>),        \
        ROW(op ".ftz.xorsign.abs.f32", "f=ff", Map2<XorSignExtremum<maximum, true, false>, float, float>), \
        ROW(op ".NaN.xorsign.abs.f32", "f=ff", Map2<XorSignExtremum<maximum, false, true>, float, float>), \
        ROW(op ".ftz.NaN.xorsign.abs.f32", "f=ff", Map2<XorSignExtremum<maximum, true, true>, float, float>)
#define SETP(op, ftz, kFtz, H, h, ...)                                             \
    ROW("setp." op ftz "." h, "p=ee", Compare<HalfCompare<__VA_ARGS__, kFtz>, H>), \
        ROW("setp." op ftz "." h "x2", "pp=xx", ComparePair<HalfCompare<__VA_ARGS__, kFtz>, H>)
#define COMPARE(op, ...)                                                                           \
    SETP(op, "", false, f16, "f16", __VA_ARGS__), SETP(op, ".ftz", true, f16, "f16", __VA_ARGS__), \
        SETP(op, "", false, bf16, "bf16", __VA_ARGS__)
// ptxas takes wider registers with f16, not with bf16.
#define WIDE_f16 "~"
#define WIDE_bf16 ""
#define FROM_INT(H, h, stype, S, sl) ROW("cvt.rn." h "." stype, WIDE_##H "e=" sl, Map1<IntToHalf<H>, H, S>)
#define FROM_INTS(H, h)                                                                                    \
    FROM_INT(H, h, "u8", u8, "b"), FROM_INT(H, h, "s8", s8, "b"), FROM_INT(H, h, "u16", u16, "h"),         \
        FROM_INT(H, h, "s16", s16, "h"), FROM_INT(H, h, "u32", u32, "w"), FROM_INT(H, h, "s32", s32, "w"), \
        FROM_INT(H, h, "u64", u64, "d"), FROM_INT(H, h, "s64", s64, "d")
#define TO_INT(H, h, mode, kMode, dtype, D, dl) \
    ROW("cvt." mode "." dtype "." h, WIDE_##H dl "=e", Map1<HalfToInt<D, H, Integral::kMode>, D, H>)
#define TO_INTS(H, h, mode, kMode)                                                              \
    TO_INT(H, h, mode, kMode, "u8", u8, "b"), TO_INT(H, h, mode, kMode, "s8", s8, "b"),         \
        TO_INT(H, h, mode, kMode, "u16", u16, "h"), TO_INT(H, h, mode, kMode, "s16", s16, "h"), \
        TO_INT(H, h, mode, kMode, "u32", u32, "w"), TO_INT(H, h, mode, kMode, "s32", s32, "w"), \
        TO_INT(H, h, mode, kMode, "u64", u64, "d"), TO_INT(H, h, mode, kMode, "s64", s64, "d"), \
        ROW("cvt." mode "." h "." h, "e=e", Map1<HalfToIntegral<H, Integral::kMode>, H, H>)
#define TO_ALL_INTS(H, h) \
    TO_INTS(H, h, "rni", Nearest), TO_INTS(H, h, "rzi", Zero), TO_INTS(H, h, "rmi", Down), TO_INTS(H, h, "rpi", Up)

const Row kRows[] = {
    HALF_SUM("add", HalfAdd),
    HALF_SUM("sub", HalfSubtract),
    HALF_SUM("mul", HalfMultiply),
    THREE("fma", ".rn", f16, "f16", HalfFma<f16, false, false>),
    THREE("fma", ".rn.ftz", f16, "f16", HalfFma<f16, true, false>),
    THREE("fma", ".rn.sat", f16, "f16", HalfFma<f16, false, true>),
    THREE("fma", ".rn.ftz.sat", f16, "f16", HalfFma<f16, true, true>),
    THREE("fma", ".rn.relu", f16, "f16", HalfFma<f16, false, false, true>),
    THREE("fma", ".rn.ftz.relu", f16, "f16", HalfFma<f16, true, false, true>),
    THREE("fma", ".rn", bf16, "bf16", HalfFma<bf16, false, false>),
    THREE("fma", ".rn.relu", bf16, "bf16", HalfFma<bf16, false, false, true>),
    ONE("neg", "", f16, "f16", HalfNegate<f16, false>),
    ONE("neg", ".ftz", f16, "f16", HalfNegate<f16, true>),
    ONE("neg", "", bf16, "bf16", HalfNegate<bf16, false>),
    ONE("abs", "", f16, "f16", HalfAbsolute<f16, false>),
    ONE("abs", ".ftz", f16, "f16", HalfAbsolute<f16, true>),
    ONE("abs", "", bf16, "bf16", HalfAbsolute<bf16, false>),
    HALF_EXTREMUM("min", false),
    HALF_EXTREMUM("max", true),
    XORSIGN("min", false),
    XORSIGN("max", true),
    COMPARE("eq", FloatEqual<false, false>),
    COMPARE("ne", FloatNotEqual<false, false>),
    COMPARE("lt", FloatLess<false, false>),
    COMPARE("le", FloatLessEqual<false, false>),
    COMPARE("gt", FloatGreater<false, false>),
    COMPARE("ge", FloatGreaterEqual<false, false>),
    COMPARE("equ", FloatEqual<true, false>),
    COMPARE("neu", FloatNotEqual<true, false>),
    COMPARE("ltu", FloatLess<true, false>),
    COMPARE("leu", FloatLessEqual<true, false>),
    COMPARE("gtu", FloatGreater<true, false>),
    COMPARE("geu", FloatGreaterEqual<true, false>),
    COMPARE("num", BothNumbers),
    COMPARE("nan", AnyNan),
    FROM_INTS(f16, "f16"),
    FROM_INTS(bf16, "bf16"),
    TO_ALL_INTS(f16, "f16"),
    TO_ALL_INTS(bf16, "bf16"),
    ROW("cvt.rn.bf16.f16", "e=e", Map1<HalfToHalf<bf16, f16>, bf16, f16>),
    ROW("cvt.rn.f16.bf16", "e=e", Map1<HalfToHalf<f16, bf16>, f16, bf16>),
    ROW("cvt.f64.bf16", "g=e", Map1<Bf16ToDouble, double, bf16>),
    ROW("cvt.rn.bf16.f64", "e=g", Map1<DoubleToHalf<bf16>, bf16, double>),
    ROW("cvt.ftz.f32.bf16", "f=e", Map1<Bf16ToFlushedFloat, float, bf16>),
    ROW("cvt.rn.ftz.bf16.f32", "e=f", Map1<FloatToHalf<bf16, false, true, false>, bf16, float>),
    ROW("cvt.rz.ftz.bf16.f32", "e=f", Map1<FloatToHalf<bf16, true, true, false>, bf16, float>),
    ROW("cvt.rz.ftz.f16.f32", "e=f", Map1<FloatToHalf<f16, true, true, false>, f16, float>),
    ROW("cvt.rn.ftz.relu.f16.f32", "e=f", Map1<FloatToHalf<f16, false, true, true>, f16, float>),
    ROW("cvt.rn.relu.f16.f32", "e=f", Map1<FloatToHalf<f16, false, false, true>, f16, float>),
    ROW("cvt.rn.ftz.relu.bf16.f32", "e=f", Map1<FloatToHalf<bf16, false, true, true>, bf16, float>),
    ROW("cvt.rn.relu.bf16.f32", "e=f", Map1<FloatToHalf<bf16, false, false, true>, bf16, float>),
    ROW("cvt.rz.ftz.relu.f16.f32", "e=f", Map1<FloatToHalf<f16, true, true, true>, f16, float>),
    ROW("cvt.rz.relu.f16.f32", "e=f", Map1<FloatToHalf<f16, true, false, true>, f16, float>),
    ROW("cvt.rz.ftz.relu.bf16.f32", "e=f", Map1<FloatToHalf<bf16, true, true, true>, bf16, float>),
    ROW("cvt.rz.relu.bf16.f32", "e=f", Map1<FloatToHalf<bf16, true, false, true>, bf16, float>),
    ROW("cvt.rz.f16x2.f32", "x=ff", Map2<FloatsToPair<f16, true, false>, u32, float>),
    ROW("cvt.rz.bf16x2.f32", "x=ff", Map2<FloatsToPair<bf16, true, false>, u32, float>),
    ROW("cvt.rn.relu.f16x2.f32", "x=ff", Map2<FloatsToPair<f16, false, true>, u32, float>),
    ROW("cvt.rn.relu.bf16x2.f32", "x=ff", Map2<FloatsToPair<bf16, false, true>, u32, float>),
    ROW("cvt.rz.relu.f16x2.f32", "x=ff", Map2<FloatsToPair<f16, true, true>, u32, float>),
    ROW("cvt.rz.relu.bf16x2.f32", "x=ff", Map2<FloatsToPair<bf16, true, true>, u32, float>),
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

RowSpan half_rows() { return {kRows, sizeof(kRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
