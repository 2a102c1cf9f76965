// SPDX-License-Identifier: Apache-2.0
// Conversions that kernels seldom use: to 16-bit floats with directed rounding, .sat and .satfinite, to TF32, and
// cvt.pack. Numbers are taken apart into integers and rounded once. One form for all vector units.
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
// clang-format on

/// m * 2^e, or NaN, or infinite.
struct Number {
    bool negative = false;
    bool is_nan = false;
    bool is_infinite = false;
    u64 m = 0;
    int e = 0;
};

Number number_of(float a) {
    const u32 bits = bits_of(a), field = bits >> 23 & 0xFFU, fraction = bits & 0x7FFFFFU;
    Number n;
    n.negative = bits >> 31 != 0;
    n.is_nan = field == 0xFF && fraction != 0;
    n.is_infinite = field == 0xFF && fraction == 0;
    n.m = field == 0 ? fraction : fraction | 0x800000U;
    n.e = static_cast<int>(field == 0 ? 1 : field) - 150;
    return n;
}
Number number_of(double a) {
    const u64 bits = bits_of(a), field = bits >> 52 & 0x7FFU, fraction = bits & ((u64{1} << 52) - 1);
    Number n;
    n.negative = bits >> 63 != 0;
    n.is_nan = field == 0x7FF && fraction != 0;
    n.is_infinite = field == 0x7FF && fraction == 0;
    n.m = field == 0 ? fraction : fraction | u64{1} << 52;
    n.e = static_cast<int>(field == 0 ? 1 : field) - 1075;
    return n;
}
Number number_of(f16 a) { return number_of(widen(a)); }
Number number_of(bf16 a) { return number_of(widen(a)); }
template <class T>
Number number_of(T a) {
    Number n;
    n.negative = a < T(0);
    n.m = static_cast<u64>(a);
    if (n.negative) n.m = 0 - static_cast<u64>(static_cast<s64>(a));
    return n;
}

enum class Round { Even, Away, Zero, Down, Up };

/// A format by its sizes; `bits` has the sign on top.
template <int kExponent, int kFraction>
struct Format {
    static constexpr int kBias = (1 << (kExponent - 1)) - 1;
    static constexpr u32 kInfinity = ((1U << kExponent) - 1) << kFraction;
    static constexpr u32 kOne = static_cast<u32>(kBias) << kFraction;
    static constexpr u32 kSign = 1U << (kExponent + kFraction);

    static u32 magnitude(const Number& n, Round mode) {
        const bool to_infinity =
            mode == Round::Even || mode == Round::Away || mode == (n.negative ? Round::Down : Round::Up);
        if (n.is_infinite) return kInfinity;
        if (n.m == 0) return 0;
        const int top = 63 - __builtin_clzll(n.m) + n.e;
        if (top > kBias) return to_infinity ? kInfinity : kInfinity - 1;
        const int least = 1 - kBias, leading = top < least ? least : top;
        const int distance = leading - kFraction - n.e, shift = distance > 100 ? 100 : distance;
        __extension__ using Wide = unsigned __int128;
        Wide kept = n.m, rest = 0, half = 1;
        if (shift <= 0) {
            kept <<= -shift;
        } else {
            kept >>= shift;
            rest = n.m - (kept << shift);
            half <<= shift - 1;
        }
        const bool up = mode == Round::Even   ? rest > half || (rest == half && (kept & 1) != 0)
                        : mode == Round::Away ? rest >= half
                                              : rest != 0 && mode == (n.negative ? Round::Down : Round::Up);
        const u32 bits =
            static_cast<u32>(leading - least) * (1U << kFraction) + static_cast<u32>(kept) + (up && rest != 0);
        return bits >= kInfinity && !to_infinity ? kInfinity - 1 : bits;
    }
};
struct F16 : Format<5, 10> {
    using Type = f16;
    static f16 pack(u32 bits) { return {static_cast<u16>(bits)}; }
    static constexpr u32 kNan = 0x7FFF;
};
struct Bf16 : Format<8, 7> {
    using Type = bf16;
    static bf16 pack(u32 bits) { return {static_cast<u16>(bits)}; }
    static constexpr u32 kNan = 0x7FFF;
};
/// The upper 19 bits of a word (PTX ISA "Alternate Floating-Point Data Formats"); the others are zero.
struct Tf32 : Format<8, 10> {
    using Type = u32;
    static u32 pack(u32 bits) { return bits << 13; }
    static constexpr u32 kNan = 0x7FFFFFFFU >> 13;
};
struct F32 : Format<8, 23> {
    using Type = float;
    static float pack(u32 bits) { return float_of(bits); }
    static constexpr u32 kNan = 0x7FFFFFFFU;
};

enum class Limit { None, Relu, Finite, FiniteRelu, Unit };

template <class F, Round kRound, Limit kLimit, bool kFtz>
struct To {
    static typename F::Type apply_number(const Number& n) {
        constexpr bool kRelu = kLimit == Limit::Relu || kLimit == Limit::FiniteRelu;
        constexpr bool kFinite = kLimit == Limit::Finite || kLimit == Limit::FiniteRelu;
        if (n.is_nan) return F::pack(kLimit == Limit::Unit ? 0 : F::kNan);
        u32 bits = F::magnitude(n, kRound);
        if (kFtz && __is_same(F, F32) && bits < 0x800000U) bits = 0;
        if (kFinite && bits == F::kInfinity) --bits;
        if ((kRelu || kLimit == Limit::Unit) && n.negative) return F::pack(0);
        if (kLimit == Limit::Unit && bits > F::kOne) bits = F::kOne;
        return F::pack(n.negative ? bits | F::kSign : bits);
    }
    template <class S>
    static typename F::Type apply(S a) {
        return apply_number(number_of(a));
    }
    static typename F::Type apply(float a) { return apply_number(number_of(flush<kFtz>(a))); }
};
template <class F, Round kRound, Limit kLimit>
struct ToPair {
    static u32 apply(float a, float b) {
        using One = To<F, kRound, kLimit, false>;
        return static_cast<u32>(One::apply(a).bits) << 16 | One::apply(b).bits;
    }
};

/// .sat of what FloatToFloat and RoundToIntegral give.
template <bool kFtz, Integral kMode>
struct IntegralInUnit {
    template <class S>
    static S apply(S a) {
        return saturate<true>(to_integral<kMode>(flush<kFtz>(a)));
    }
};
template <class D, bool kFtz>
struct WidenedInUnit {
    static D apply(float a) { return saturate<true>(static_cast<D>(flush<kFtz>(a))); }
    static D apply(double a) { return saturate<true>(a); }
    static D apply(f16 a) { return saturate<true>(static_cast<D>(widen(a))); }
};
struct SameDouble {
    static double apply(double a) { return canonical(a); }
};

/// cvt.pack: the last operand's low bits fill what two values of kBits leave.
template <int kBits, bool kSigned>
s32 clamp_to_bits(s32 a) {
    constexpr s32 kLow = kSigned ? -(1 << (kBits - 1)) : 0, kHigh = (1 << (kSigned ? kBits - 1 : kBits)) - 1;
    return a < kLow ? kLow : a > kHigh ? kHigh : a;
}
template <int kBits, bool kSigned>
struct PackInto {
    static u32 apply(s32 a, s32 b, u32 c) {
        constexpr u32 kOnes = (1U << kBits) - 1;
        const u32 high = static_cast<u32>(clamp_to_bits<kBits, kSigned>(a)) & kOnes;
        const u32 low = static_cast<u32>(clamp_to_bits<kBits, kSigned>(b)) & kOnes;
        const u32 both = high << kBits | low;
        if constexpr (kBits == 16)
            return both;
        else
            return c << (2 * kBits) | both;
    }
    static u32 apply(s32 a, s32 b) { return apply(a, b, 0); }
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments
#define ROW(name, format, ...) \
    { name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, kPlain }
// ptxas takes wider registers with f16, not with bf16.
#define FROM_INTS(rnd, kRound, sat, kLimit, F, type, wide)                                               \
    ROW("cvt" rnd sat "." type ".u8", wide "=b", Map1<To<F, kRound, kLimit, false>, F::Type, u8>),       \
        ROW("cvt" rnd sat "." type ".s8", wide "=b", Map1<To<F, kRound, kLimit, false>, F::Type, s8>),   \
        ROW("cvt" rnd sat "." type ".u16", wide "=h", Map1<To<F, kRound, kLimit, false>, F::Type, u16>), \
        ROW("cvt" rnd sat "." type ".s16", wide "=h", Map1<To<F, kRound, kLimit, false>, F::Type, s16>), \
        ROW("cvt" rnd sat "." type ".u32", wide "=w", Map1<To<F, kRound, kLimit, false>, F::Type, u32>), \
        ROW("cvt" rnd sat "." type ".s32", wide "=w", Map1<To<F, kRound, kLimit, false>, F::Type, s32>), \
        ROW("cvt" rnd sat "." type ".u64", wide "=d", Map1<To<F, kRound, kLimit, false>, F::Type, u64>), \
        ROW("cvt" rnd sat "." type ".s64", wide "=d", Map1<To<F, kRound, kLimit, false>, F::Type, s64>)
#define DIRECTED(rnd, kRound)                                                                        \
    FROM_INTS(rnd, kRound, "", Limit::None, F16, "f16", "~e"),                                       \
        FROM_INTS(rnd, kRound, "", Limit::None, Bf16, "bf16", "e"),                                  \
        ROW("cvt" rnd ".f16.f64", "e=g", Map1<To<F16, kRound, Limit::None, false>, f16, double>),    \
        ROW("cvt" rnd ".bf16.f64", "e=g", Map1<To<Bf16, kRound, Limit::None, false>, bf16, double>), \
        ROW("cvt" rnd ".bf16.f16", "e=e", Map1<To<Bf16, kRound, Limit::None, false>, bf16, f16>),    \
        ROW("cvt" rnd ".f16.bf16", "e=e", Map1<To<F16, kRound, Limit::None, false>, f16, bf16>)
#define DOWN_OR_UP(rnd, kRound)                                                                     \
    ROW("cvt" rnd ".f16.f32", "e=f", Map1<To<F16, kRound, Limit::None, false>, f16, float>),        \
        ROW("cvt" rnd ".ftz.f16.f32", "e=f", Map1<To<F16, kRound, Limit::None, true>, f16, float>), \
        ROW("cvt" rnd ".bf16.f32", "e=f", Map1<To<Bf16, kRound, Limit::None, false>, bf16, float>), \
        ROW("cvt" rnd ".ftz.bf16.f32", "e=f", Map1<To<Bf16, kRound, Limit::None, true>, bf16, float>)
#define IN_UNIT(rnd, kRound)                                                                            \
    FROM_INTS(rnd, kRound, ".sat", Limit::Unit, F16, "f16", "~e"),                                      \
        FROM_INTS(rnd, kRound, ".sat", Limit::Unit, F32, "f32", "~f"),                                  \
        ROW("cvt" rnd ".sat.f16.f32", "e=f", Map1<To<F16, kRound, Limit::Unit, false>, f16, float>),    \
        ROW("cvt" rnd ".ftz.sat.f16.f32", "e=f", Map1<To<F16, kRound, Limit::Unit, true>, f16, float>), \
        ROW("cvt" rnd ".sat.f16.f64", "e=g", Map1<To<F16, kRound, Limit::Unit, false>, f16, double>),   \
        ROW("cvt" rnd ".sat.f32.f64", "f=g", Map1<To<F32, kRound, Limit::Unit, false>, float, double>), \
        ROW("cvt" rnd ".ftz.sat.f32.f64", "f=g", Map1<To<F32, kRound, Limit::Unit, true>, float, double>)
#define FINITE_ONE(rnd, kRound, relu, kLimit, F, type)                                                        \
    ROW("cvt" rnd relu ".satfinite." type ".f32", "e=f", Map1<To<F, kRound, kLimit, false>, F::Type, float>), \
        ROW("cvt" rnd relu ".satfinite." type "x2.f32", "x=ff", Map2<ToPair<F, kRound, kLimit>, u32, float>)
#define FINITE(rnd, kRound)                                                                                           \
    FINITE_ONE(rnd, kRound, "", Limit::Finite, F16, "f16"), FINITE_ONE(rnd, kRound, "", Limit::Finite, Bf16, "bf16"), \
        FINITE_ONE(rnd, kRound, ".relu", Limit::FiniteRelu, F16, "f16"),                                              \
        FINITE_ONE(rnd, kRound, ".relu", Limit::FiniteRelu, Bf16, "bf16")
#define TF32(modifiers, kRound, kLimit) \
    ROW("cvt" modifiers ".tf32.f32", "W=f", Map1<To<Tf32, kRound, kLimit, false>, u32, float>)
#define INTEGRAL_IN_UNIT(mode, kMode)                                                                          \
    ROW("cvt." mode ".sat.f32.f32", "f=f", Map1<IntegralInUnit<false, Integral::kMode>, float, float>),        \
        ROW("cvt." mode ".ftz.sat.f32.f32", "f=f", Map1<IntegralInUnit<true, Integral::kMode>, float, float>), \
        ROW("cvt." mode ".sat.f64.f64", "g=g", Map1<IntegralInUnit<false, Integral::kMode>, double, double>)
#define PACK(type, bits, kSigned) \
    ROW("cvt.pack.sat." type ".s32.b32", "W=wwW", Map3<PackInto<bits, kSigned>, u32, s32, s32, u32>)

const Row kRows[] = {
    DIRECTED(".rz", Round::Zero),
    DIRECTED(".rm", Round::Down),
    DIRECTED(".rp", Round::Up),
    DOWN_OR_UP(".rm", Round::Down),
    DOWN_OR_UP(".rp", Round::Up),
    IN_UNIT(".rn", Round::Even),
    IN_UNIT(".rz", Round::Zero),
    IN_UNIT(".rm", Round::Down),
    IN_UNIT(".rp", Round::Up),
    FINITE(".rn", Round::Even),
    FINITE(".rz", Round::Zero),
    TF32(".rna", Round::Away, Limit::None),
    TF32(".rna.satfinite", Round::Away, Limit::Finite),
    TF32(".rn", Round::Even, Limit::None),
    TF32(".rz", Round::Zero, Limit::None),
    TF32(".rn.relu", Round::Even, Limit::Relu),
    TF32(".rz.relu", Round::Zero, Limit::Relu),
    INTEGRAL_IN_UNIT("rni", Nearest),
    INTEGRAL_IN_UNIT("rzi", Zero),
    INTEGRAL_IN_UNIT("rmi", Down),
    INTEGRAL_IN_UNIT("rpi", Up),
    ROW("cvt.f16.f16", "e=e", Map1<To<F16, Round::Even, Limit::None, false>, f16, f16>),
    ROW("cvt.sat.f16.f16", "e=e", Map1<To<F16, Round::Even, Limit::Unit, false>, f16, f16>),
    ROW("cvt.sat.f32.f16", "f=e", Map1<WidenedInUnit<float, false>, float, f16>),
    ROW("cvt.sat.f64.f16", "g=e", Map1<WidenedInUnit<double, false>, double, f16>),
    ROW("cvt.sat.f64.f32", "g=f", Map1<WidenedInUnit<double, false>, double, float>),
    ROW("cvt.ftz.sat.f64.f32", "g=f", Map1<WidenedInUnit<double, true>, double, float>),
    ROW("cvt.sat.f64.f64", "g=g", Map1<WidenedInUnit<double, false>, double, double>),
    ROW("cvt.f64.f64", "g=g", Map1<SameDouble, double, double>),
    ROW("cvt.pack.sat.u16.s32", "W=ww", Map2<PackInto<16, false>, u32, s32>),
    ROW("cvt.pack.sat.s16.s32", "W=ww", Map2<PackInto<16, true>, u32, s32>),
    PACK("u8", 8, false),
    PACK("s8", 8, true),
    PACK("u4", 4, false),
    PACK("s4", 4, true),
    PACK("u2", 2, false),
    PACK("s2", 2, true),
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

RowSpan rare_conversion_rows() { return {kRows, sizeof(kRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
