// SPDX-License-Identifier: Apache-2.0
// Approximate instructions: the manual gives an error bound, not a value. Each lane gets one of the two floats beside
// the exact value, which lie inside every bound; the launch's seed picks (seed 0: the nearer). One form for all vector
// units.
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

template <bool kFtz>
float choose(double exact, u64 seed, u64 operands) {
    const float nearest = static_cast<float>(exact);
    const double back = static_cast<double>(nearest);
    u64 random = (seed ^ operands) * 0x9E3779B97F4A7C15ULL;
    random ^= random >> 29;
    random *= 0xBF58476D1CE4E5B9ULL;
    const bool fixed = seed == 0 || (random >> 63) == 0 || back == exact || !(std::fabs(back) < __builtin_inf());
    float result = nearest;
    if (!fixed && nearest != 0) {
        const u32 bits = bits_of(nearest);
        const float other = float_of(std::fabs(back) < std::fabs(exact) ? bits + 1 : bits - 1);
        const bool usable = bits_of(std::fabs(other)) < 0x7F800000U &&
                            (!kFtz || (flush<true>(other) == other && flush<true>(nearest) == nearest));
        if (usable) result = other;
    }
    return finish<kFtz, false>(result);
}

struct ReciprocalOf {
    static double apply(double a) { return 1 / a; }
};
struct RootOf {
    static double apply(double a) { return std::sqrt(a); }
};
struct ReciprocalRootOf {
    static double apply(double a) { return 1 / std::sqrt(a); }
};
struct PowerOfTwo {
    static double apply(double a) { return std::exp2(a); }
};
struct LogarithmOf {
    static double apply(double a) { return a == 0 ? -__builtin_inf() : std::log2(a); }
};

template <class F, bool kFtz>
struct Approximate1 {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        for (u32 mask = kMasked ? c.mask : kFullMask; mask != 0; mask &= mask - 1) {
            const auto i = static_cast<unsigned>(__builtin_ctz(mask));
            const float a = flush<kFtz>(slot<float>(c, op, 1)[i]);
            slot<float>(c, op, 0)[i] = choose<kFtz>(F::apply(static_cast<double>(a)), c.approximation_seed, bits_of(a));
        }
    }
};

/// Beyond 2^126 the divisor makes div.approx give 0, or NaN of an infinite dividend.
template <bool kFtz, bool kFullRange>
struct ApproximateQuotient {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        for (u32 mask = kMasked ? c.mask : kFullMask; mask != 0; mask &= mask - 1) {
            const auto i = static_cast<unsigned>(__builtin_ctz(mask));
            const float a = flush<kFtz>(slot<float>(c, op, 1)[i]), b = flush<kFtz>(slot<float>(c, op, 2)[i]);
            const u64 operands = static_cast<u64>(bits_of(a)) << 32 | bits_of(b);
            double quotient = static_cast<double>(a) / static_cast<double>(b);
            const float size = std::fabs(b);
            if (!kFullRange && size > 0x1p126F && size < __builtin_inff())
                quotient = std::fabs(a) < __builtin_inff() ? 0.0 * quotient : __builtin_nan("");
            slot<float>(c, op, 0)[i] = choose<kFtz>(quotient, c.approximation_seed, operands);
        }
    }
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments
#define ROW(name, format, ...) \
    { name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, kApproximate }
#define ONE(name, F) \
    ROW(name ".approx.f32", "f=f", Approximate1<F, false>), ROW(name ".approx.ftz.f32", "f=f", Approximate1<F, true>)
const Row kRows[] = {
    ONE("rcp", ReciprocalOf),
    ONE("sqrt", RootOf),
    ONE("rsqrt", ReciprocalRootOf),
    ONE("ex2", PowerOfTwo),
    ONE("lg2", LogarithmOf),
    ROW("div.approx.f32", "f=ff", ApproximateQuotient<false, false>),
    ROW("div.approx.ftz.f32", "f=ff", ApproximateQuotient<true, false>),
    ROW("div.full.f32", "f=ff", ApproximateQuotient<false, true>),
    ROW("div.full.ftz.f32", "f=ff", ApproximateQuotient<true, true>),
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

RowSpan approximate_rows() { return {kRows, sizeof(kRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
