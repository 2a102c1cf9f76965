// SPDX-License-Identifier: Apache-2.0
// Arithmetic and conversions with .rz, .rm and .rp. A file of its own, compiled with -frounding-math: it changes the
// rounding mode of the processor, which no other file expects. Rare in kernels, so one form for all vector units.
#include <cfenv>
#include <cmath>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "harness/vgpu/exec/op.h"

namespace gradguard::vgpu::exec {
namespace {

// clang-format off
#include "harness/vgpu/exec/lanes.inl"
#include "harness/vgpu/exec/float_functions.inl"
// clang-format on

/// Keeps the compiler from moving arithmetic across a change of the rounding mode.
template <class T>
T opaque(T value) {
    asm volatile("" : "+m"(value) : : "memory");
    return value;
}

template <int kMode>
class RoundingMode {
  public:
    RoundingMode() : old_(std::fegetround()) { std::fesetround(kMode); }
    ~RoundingMode() { std::fesetround(old_); }

  private:
    int old_;
};

struct RawAdd {
    template <class T>
    static T apply(T a, T b) {
        return a + b;
    }
};
struct RawSubtract {
    template <class T>
    static T apply(T a, T b) {
        return a - b;
    }
};
struct RawMultiply {
    template <class T>
    static T apply(T a, T b) {
        return a * b;
    }
};
struct RawDivide {
    template <class T>
    static T apply(T a, T b) {
        return a / b;
    }
};
struct RawFma {
    template <class T>
    static T apply(T a, T b, T c) {
        return std::fma(a, b, c);
    }
};
struct RawReciprocal {
    template <class T>
    static T apply(T a) {
        return T(1) / a;
    }
};
struct RawRoot {
    template <class T>
    static T apply(T a) {
        return std::sqrt(a);
    }
};
template <class D>
struct RawCast {
    template <class S>
    static D apply(S a) {
        return static_cast<D>(a);
    }
};

/// F under a rounding mode, operands and result flushed where asked for.
template <class F, int kMode, bool kFtz, bool kSat>
struct Directed {
    template <class... T>
    static auto apply(T... operands) {
        const RoundingMode<kMode> mode;
        return finish<kFtz, kSat>(opaque(F::apply(opaque(flush<kFtz>(operands))...)));
    }
};
/// Conversions: the operand may be an integer.
template <class D, int kMode, bool kFtz>
struct DirectedCast {
    template <class S>
    static D apply(S a) {
        const RoundingMode<kMode> mode;
        return finish<kFtz, false>(opaque(RawCast<D>::apply(opaque(a))));
    }
};
template <int kMode>
struct DirectedToF16 {
    static f16 apply(float a) {
        const u32 sign = bits_of(a) >> 16 & 0x8000U;
        const u32 m = bits_of(a) & 0x7FFFFFFFU;
        if (m > 0x7F800000U) return {0x7FFF};
        if (m == 0x7F800000U) return {static_cast<u16>(sign | 0x7C00U)};
        const bool away = (kMode == FE_UPWARD && !sign) || (kMode == FE_DOWNWARD && sign);
        // Steps of the result are 2^13 in FP32 bits, or 2^-24 below the least normal.
        u32 r;
        bool inexact;
        if (m < 0x38800000U) {
            const double scaled = static_cast<double>(float_of(m)) * 0x1p24;
            r = static_cast<u32>(scaled);
            inexact = static_cast<double>(r) != scaled;
        } else {
            r = (m - 0x38000000U) >> 13;
            inexact = (m & 0x1FFFU) != 0;
        }
        if (r >= 0x7C00U) return {static_cast<u16>(sign | (away ? 0x7C00U : 0x7BFFU))};
        return {static_cast<u16>(sign | (r + (inexact && away ? 1 : 0)))};
    }
};
template <int kMode>
struct DirectedToBf16 {
    static bf16 apply(float a) {
        const u32 bits = bits_of(a);
        if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {0x7FFF};
        const bool away = (kMode == FE_UPWARD && !(bits >> 31)) || (kMode == FE_DOWNWARD && (bits >> 31));
        return {static_cast<u16>((bits >> 16) + (away && (bits & 0xFFFFU) != 0 ? 1 : 0))};
    }
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments
#define ROW(name, format, ...) \
    { name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, kPlain }
#define ARITHMETIC(op, rnd, mode, f32_format, f64_format, Shape, F)                                 \
    ROW(op rnd ".f32", f32_format, Shape<Directed<F, mode, false, false>, float, float>),           \
        ROW(op rnd ".ftz.f32", f32_format, Shape<Directed<F, mode, true, false>, float, float>),    \
        ROW(op rnd ".sat.f32", f32_format, Shape<Directed<F, mode, false, true>, float, float>),    \
        ROW(op rnd ".ftz.sat.f32", f32_format, Shape<Directed<F, mode, true, true>, float, float>), \
        ROW(op rnd ".f64", f64_format, Shape<Directed<F, mode, false, false>, double, double>)
#define NO_SATURATION(op, rnd, mode, f32_format, f64_format, Shape, F)                           \
    ROW(op rnd ".f32", f32_format, Shape<Directed<F, mode, false, false>, float, float>),        \
        ROW(op rnd ".ftz.f32", f32_format, Shape<Directed<F, mode, true, false>, float, float>), \
        ROW(op rnd ".f64", f64_format, Shape<Directed<F, mode, false, false>, double, double>)
#define FROM_INT(rnd, mode, stype, S, sl)                                                     \
    ROW("cvt" rnd ".f32." stype, "~f=" sl, Map1<DirectedCast<float, mode, false>, float, S>), \
        ROW("cvt" rnd ".f64." stype, "~g=" sl, Map1<DirectedCast<double, mode, false>, double, S>)
#define ROUNDED(rnd, mode)                                                                                            \
    ARITHMETIC("add", rnd, mode, "f=ff", "g=gg", Map2, RawAdd),                                                       \
        ARITHMETIC("sub", rnd, mode, "f=ff", "g=gg", Map2, RawSubtract),                                              \
        ARITHMETIC("mul", rnd, mode, "f=ff", "g=gg", Map2, RawMultiply),                                              \
        ARITHMETIC("fma", rnd, mode, "f=fff", "g=ggg", Map3, RawFma),                                                 \
        ARITHMETIC("mad", rnd, mode, "f=fff", "g=ggg", Map3, RawFma),                                                 \
        NO_SATURATION("div", rnd, mode, "f=ff", "g=gg", Map2, RawDivide),                                             \
        NO_SATURATION("rcp", rnd, mode, "f=f", "g=g", Map1, RawReciprocal),                                           \
        NO_SATURATION("sqrt", rnd, mode, "f=f", "g=g", Map1, RawRoot),                                                \
        ROW("cvt" rnd ".f32.f64", "f=g", Map1<DirectedCast<float, mode, false>, float, double>),                      \
        ROW("cvt" rnd ".ftz.f32.f64", "f=g", Map1<DirectedCast<float, mode, true>, float, double>),                   \
        FROM_INT(rnd, mode, "u8", u8, "b"), FROM_INT(rnd, mode, "s8", s8, "b"), FROM_INT(rnd, mode, "u16", u16, "h"), \
        FROM_INT(rnd, mode, "s16", s16, "h"), FROM_INT(rnd, mode, "u32", u32, "w"),                                   \
        FROM_INT(rnd, mode, "s32", s32, "w"), FROM_INT(rnd, mode, "u64", u64, "d"),                                   \
        FROM_INT(rnd, mode, "s64", s64, "d")

// NOLINTEND(bugprone-macro-parentheses)
const Row kRows[] = {
    ROUNDED(".rz", FE_TOWARDZERO),
    ROUNDED(".rm", FE_DOWNWARD),
    ROUNDED(".rp", FE_UPWARD),
    ROW("cvt.rz.f16.f32", "e=f", Map1<DirectedToF16<FE_TOWARDZERO>, f16, float>),
    ROW("cvt.rz.bf16.f32", "e=f", Map1<DirectedToBf16<FE_TOWARDZERO>, bf16, float>),
};

}  // namespace

RowSpan directed_rounding_rows() { return {kRows, sizeof(kRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
