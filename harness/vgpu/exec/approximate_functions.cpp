// SPDX-License-Identifier: Apache-2.0
// Approximate instructions whose bound is wider than a unit in the last place: sin, cos, tanh, those of 16-bit floats,
// and those of .f64. The launch's seed picks a value inside the bound (seed 0: the nearest). A value depends on the
// operand and the seed alone. One form for all vector units.
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

u64 random_of(u64 seed, u64 operand) {
    u64 random = (seed ^ operand) * 0x9E3779B97F4A7C15ULL;
    random ^= random >> 29;
    random *= 0xBF58476D1CE4E5B9ULL;
    return random ^ random >> 32;
}
/// In [-1, 1).
double direction(u64 seed, u64 operand) {
    return static_cast<double>(static_cast<s64>(random_of(seed, operand))) * 0x1p-63;
}

template <class T>
T rounded(double value) {
    if constexpr (__is_same(T, float))
        return static_cast<float>(value);
    else if constexpr (__is_same(T, f16))
        return narrow_to_f16(round_to_odd(value));
    else
        return narrow_to_bf16(round_to_odd(value));
}
double value_of(float a) { return static_cast<double>(a); }
double value_of(f16 a) { return static_cast<double>(widen(a)); }
double value_of(bf16 a) { return static_cast<double>(widen(a)); }
u64 pattern_of(float a) { return bits_of(a); }
u64 pattern_of(f16 a) { return a.bits; }
u64 pattern_of(bf16 a) { return a.bits; }

/// A value of T that is no further than `bound` from `exact`; the nearest one where the seed's is.
template <class T>
T inside(double exact, double bound, u64 seed, T operand) {
    const T nearest = rounded<T>(exact);
    if (seed == 0 || !(std::fabs(exact) < __builtin_inf())) return nearest;
    const T other = rounded<T>(exact + bound * direction(seed, pattern_of(operand)));
    // `exact` is a rounded number itself: what lies on the bound stays out.
    return std::fabs(value_of(other) - exact) < bound * (1 - 0x1p-30) ? other : nearest;
}

// PTX ISA "sin", "cos": absolute error 2^-20.5 up to 2 pi, 2^-14.7 up to 100 pi, none promised beyond.
constexpr double kPi = 3.14159265358979323846;

template <bool kCosine>
struct Circular {
    static float apply(float a, u64 seed) {
        const double x = value_of(a), exact = kCosine ? std::cos(x) : std::sin(x), size = std::fabs(x);
        if (a == 0) return kCosine ? 1.0F : a;
        if (!(size < __builtin_inf())) return __builtin_nanf("");
        if (size > 100 * kPi && seed != 0) return static_cast<float>(direction(seed, bits_of(a)));
        return inside(exact, std::exp2(size <= 2 * kPi ? -20.5 : -14.7), seed, a);
    }
};
// "tanh": relative error 2^-11; subnormals pass through.
struct HyperbolicTangent {
    static float apply(float a, u64 seed) {
        const double exact = std::tanh(value_of(a));
        const u32 size = bits_of(a) & 0x7FFFFFFFU;
        if (size < 0x00800000U || size >= 0x7F800000U) return size < 0x00800000U ? a : static_cast<float>(exact);
        return inside(exact, std::fabs(exact) * 0x1p-11, seed, a);
    }
};
// "tanh" of 16-bit floats: absolute error 2^-10.987 (f16), 2^-8 (bf16).
template <class H>
struct HalfTangent {
    static H apply(H a, u64 seed) {
        const double x = value_of(a), exact = std::tanh(x);
        if (x == 0) return a;
        if (!(std::fabs(x) < __builtin_inf())) return rounded<H>(exact);
        return inside(exact, std::exp2(__is_same(H, f16) ? -10.987 : -8.0), seed, a);
    }
};
// "ex2" of 16-bit floats: relative error 2^-9.9 (f16), 2^-7 (bf16, which flushes subnormals).
template <class H>
struct HalfPower {
    static H apply(H operand, u64 seed) {
        constexpr bool kFlushes = __is_same(H, bf16);
        const bool is_subnormal = kFlushes && (operand.bits & 0x7F80U) == 0;
        const double x = is_subnormal ? 0 : value_of(operand), exact = std::exp2(x);
        const bool is_given = x == 0 || !(std::fabs(x) < __builtin_inf());
        const H result =
            is_given ? rounded<H>(exact) : inside(exact, exact * std::exp2(kFlushes ? -7.0 : -9.9), seed, operand);
        return kFlushes && (result.bits & 0x7F80U) == 0 ? H{0} : result;
    }
};

template <class F, class T, bool kFtz>
struct Approximate {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        for (u32 mask = kMasked ? c.mask : kFullMask; mask != 0; mask &= mask - 1) {
            const auto i = static_cast<unsigned>(__builtin_ctz(mask));
            const T a = Slot<T>::read(slot<T>(c, op, 1)[i]);
            if constexpr (__is_same(T, float))
                slot<float>(c, op, 0)[i] = finish<kFtz, false>(F::apply(flush<kFtz>(a), c.approximation_seed));
            else
                slot<T>(c, op, 0)[i] = Slot<T>::write(F::apply(a, c.approximation_seed));
        }
    }
};
template <class F, class H>
struct ApproximatePair {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        for (u32 mask = kMasked ? c.mask : kFullMask; mask != 0; mask &= mask - 1) {
            const auto i = static_cast<unsigned>(__builtin_ctz(mask));
            const u32 a = slot<u32>(c, op, 1)[i];
            const u32 low = F::apply(H{static_cast<u16>(a)}, c.approximation_seed).bits;
            const u32 high = F::apply(H{static_cast<u16>(a >> 16)}, c.approximation_seed).bits;
            slot<u32>(c, op, 0)[i] = high << 16 | low;
        }
    }
};

// PTX ISA "rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64": of the upper word, to an upper word, with no bound in the
// manual. Either of the two such numbers beside the exact value.
template <bool kRoot>
struct UpperWord {
    static double apply(double a, u64 seed) {
        constexpr u64 kUpper = ~u64{0xFFFFFFFF}, kSign = u64{1} << 63, kLeast = u64{1} << 52, kUnit = u64{1} << 32;
        u64 bits = bits_of(a) & kUpper;
        if ((bits & ~kSign) < kLeast) bits &= kSign;
        const double x = double_of(bits);
        const double exact = kRoot ? (x == 0 ? 1 / x : 1 / std::sqrt(x)) : 1 / x;
        if (exact != exact) return double_of(u64{0x7FFFFFFF} << 32);
        const u64 low = bits_of(exact) & kUpper;
        const bool is_exact = double_of(low) == exact || !(std::fabs(exact) < __builtin_inf());
        const bool nearer_is_high = (bits_of(exact) - low) * 2 > kUnit;
        const bool high = !is_exact && (seed == 0 ? nearer_is_high : (random_of(seed, bits) & 1) != 0);
        const u64 result = high ? low + kUnit : low;
        return double_of((result & ~kSign) < kLeast ? result & kSign : result);
    }
};
/// "rsqrt.approx.f64" has no bound in the manual either: one of the two numbers beside the exact value.
struct ReciprocalRoot {
    static double apply(double a, u64 seed) {
        if (a == 0) return 1 / a;
        const long double exact = 1 / std::sqrt(static_cast<long double>(a));
        const auto nearest = static_cast<double>(exact);
        const long double back = nearest;
        if (seed == 0 || back == exact || !(nearest > 0) || (random_of(seed, bits_of(a)) & 1) != 0)
            return canonical(nearest);
        return double_of(back < exact ? bits_of(nearest) + 1 : bits_of(nearest) - 1);
    }
};
template <class F>
struct ApproximateDouble {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        for (u32 mask = kMasked ? c.mask : kFullMask; mask != 0; mask &= mask - 1) {
            const auto i = static_cast<unsigned>(__builtin_ctz(mask));
            slot<double>(c, op, 0)[i] = F::apply(slot<double>(c, op, 1)[i], c.approximation_seed);
        }
    }
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments
#define ROW(name, format, ...) \
    { name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, kApproximate }
const Row kRows[] = {
    ROW("sin.approx.f32", "f=f", Approximate<Circular<false>, float, false>),
    ROW("sin.approx.ftz.f32", "f=f", Approximate<Circular<false>, float, true>),
    ROW("cos.approx.f32", "f=f", Approximate<Circular<true>, float, false>),
    ROW("cos.approx.ftz.f32", "f=f", Approximate<Circular<true>, float, true>),
    ROW("tanh.approx.f32", "f=f", Approximate<HyperbolicTangent, float, false>),
    ROW("tanh.approx.f16", "e=e", Approximate<HalfTangent<f16>, f16, false>),
    ROW("tanh.approx.bf16", "e=e", Approximate<HalfTangent<bf16>, bf16, false>),
    ROW("tanh.approx.f16x2", "x=x", ApproximatePair<HalfTangent<f16>, f16>),
    ROW("tanh.approx.bf16x2", "x=x", ApproximatePair<HalfTangent<bf16>, bf16>),
    ROW("ex2.approx.f16", "e=e", Approximate<HalfPower<f16>, f16, false>),
    ROW("ex2.approx.ftz.bf16", "e=e", Approximate<HalfPower<bf16>, bf16, false>),
    ROW("ex2.approx.f16x2", "x=x", ApproximatePair<HalfPower<f16>, f16>),
    ROW("ex2.approx.ftz.bf16x2", "x=x", ApproximatePair<HalfPower<bf16>, bf16>),
    ROW("rcp.approx.ftz.f64", "g=g", ApproximateDouble<UpperWord<false>>),
    ROW("rsqrt.approx.ftz.f64", "g=g", ApproximateDouble<UpperWord<true>>),
    ROW("rsqrt.approx.f64", "g=g", ApproximateDouble<ReciprocalRoot>),
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

RowSpan approximate_function_rows() { return {kRows, sizeof(kRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
