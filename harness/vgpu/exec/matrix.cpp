// SPDX-License-Identifier: Apache-2.0
// mma.sync: D = A * B + C by all lanes of a warp, and the fragments that its operands lie in. One form for all vector
// units.
//
// PTX ISA "Multiply-and-Accumulate Instruction: mma": products have at least single precision, and so has their sum (at
// least half precision where the sum is .f16); order and rounding of the sum and the treatment of subnormal inputs are
// unspecified. Products of such inputs are exact in FP64. Without a seed all is added in FP64 in the order of k, C
// last, and rounded once. With one, the launch's seed and the operands pick for each warp: the order of the summands,
// how each partial sum is rounded (FP64, FP32 to nearest, FP32 to zero), and whether subnormal inputs count as zero.
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

/// Words of a fragment: word w of lane i lies at w * kLanes + i.
using Word [[gnu::may_alias]] = u32;
Word* fragment(Context& c, const Op& op, unsigned operand) {
    return reinterpret_cast<Word*>(c.base[op.space[operand]] + op.offset[operand]);
}

/// Puts kWords registers of each lane into a fragment.
template <unsigned kWords>
struct Gather {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        Word* const d = fragment(c, op, 0);
        const u32 mask = kMasked ? c.mask : kFullMask;
        for (unsigned word = 0; word < kWords; ++word) {
            const auto* const a = slot<u32>(c, op, 1 + word);
            for (unsigned i = 0; i < kLanes; ++i)
                if (has_lane<u32>(mask, i)) d[word * kLanes + i] = a[i];
        }
    }
};
/// Word Op::immediate of a fragment.
struct Part {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        auto* const d = slot<u32>(c, op, 0);
        const Word* const a = fragment(c, op, 1) + static_cast<unsigned>(op.immediate) * kLanes;
        const u32 mask = kMasked ? c.mask : kFullMask;
        for (unsigned i = 0; i < kLanes; ++i)
            if (has_lane<u32>(mask, i)) d[i] = a[i];
    }
};

// ---- elements
// --------------------------------------------------------------------------------------------------------

/// A type of A and B: how many lie in a word, and element `index` of a word.
struct Halves {
    static constexpr unsigned kPerWord = 2;
    static float of(u32 word, unsigned index) { return widen(f16{static_cast<u16>(word >> (16 * index))}); }
};
struct BrainHalves {
    static constexpr unsigned kPerWord = 2;
    static float of(u32 word, unsigned index) { return widen(bf16{static_cast<u16>(word >> (16 * index))}); }
};
/// The low 13 bits of the register do not count.
struct Tf32 {
    static constexpr unsigned kPerWord = 1;
    static float of(u32 word, unsigned) { return float_of(word & 0xFFFFE000U); }
};

template <class Element>
bool is_subnormal_input(float value) {
    const float least = __is_same(Element, Halves) ? 0x1p-14F : 0x1p-126F;
    return __builtin_fabsf(value) < least;
}

constexpr unsigned kRows = 16, kColumns = 8, kDeepest = 16;

/// PTX ISA, figures of the fragments: lane 4 * group + place holds rows group and group + 8 of A and C, column group of
/// B. Elements lie in words; A's words go down the rows first, then along k.
template <class Element, unsigned kDepth>
struct Operands {
    float a[kRows][kDeepest];
    float b[kDeepest][kColumns];

    static constexpr unsigned kRun = 4 * Element::kPerWord;  ///< Elements along k that one word of each lane covers.

    Operands(const Word* a_words, const Word* b_words, bool flush_subnormals) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const unsigned group = lane / 4, place = lane % 4;
            for (unsigned part = 0; part < kDepth / kRun; ++part) {
                for (unsigned e = 0; e < Element::kPerWord; ++e) {
                    const unsigned k = part * kRun + place * Element::kPerWord + e;
                    a[group][k] = input(a_words[(2 * part) * kLanes + lane], e, flush_subnormals);
                    a[group + 8][k] = input(a_words[(2 * part + 1) * kLanes + lane], e, flush_subnormals);
                    b[k][group] = input(b_words[part * kLanes + lane], e, flush_subnormals);
                }
            }
        }
    }

    static float input(u32 word, unsigned e, bool flush_subnormals) {
        const float value = Element::of(word, e);
        return flush_subnormals && is_subnormal_input<Element>(value) ? 0.0F * value : value;
    }
};

// ---- sums
// ------------------------------------------------------------------------------------------------------------

u64 mix(u64 x) {
    x *= 0x9E3779B97F4A7C15ULL;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ULL;
    return x ^ x >> 32;
}

/// A partial sum: FP64, or FP32 to nearest or to zero. Overflow to zero stays at the greatest value, so infinity comes
/// of infinite summands alone.
enum class Rounding : u8 { Double, Nearest, Zero };

double round_partial(double sum, Rounding rounding) {
    if (rounding == Rounding::Double) return sum;
    const float nearest = static_cast<float>(sum);
    const double back = static_cast<double>(nearest);
    const bool too_far = __builtin_fabs(back) > __builtin_fabs(sum) && __builtin_fabs(sum) < __builtin_inf();
    return rounding == Rounding::Zero && too_far ? static_cast<double>(float_of(bits_of(nearest) - 1)) : back;
}

/// What the manual leaves open, as chosen for one instruction of one warp.
struct Choice {
    Rounding rounding = Rounding::Double;
    bool flushes = false;
    u8 order[kDeepest + 1] = {};  ///< Of the products and, as number kDepth, C.

    Choice(u64 seed, u64 operands, unsigned depth) {
        for (unsigned k = 0; k <= depth; ++k) order[k] = static_cast<u8>(k);
        if (seed == 0) return;
        u64 random = mix(seed ^ operands);
        rounding = static_cast<Rounding>(random % 3);
        flushes = (random >> 8 & 1) != 0;
        for (unsigned k = depth; k > 0; --k) {
            random = mix(random + k);
            const unsigned other = static_cast<unsigned>((random >> 32) % (k + 1));
            const u8 here = order[k];
            order[k] = order[other];
            order[other] = here;
        }
    }
};

u64 digest(const Word* words, unsigned count) {
    u64 result = 0;
    for (unsigned i = 0; i < count; ++i) result = mix(result + words[i]);
    return result;
}

/// D in FP32, or in pairs of F16.
template <class Element, unsigned kDepth, bool kHalfSum>
struct MultiplyMatrices {
    static constexpr unsigned kWords = kDepth / Operands<Element, kDepth>::kRun;

    static double addend(const Word* c, unsigned lane, unsigned element) {
        if (!kHalfSum) return static_cast<double>(float_of(c[element * kLanes + lane]));
        return static_cast<double>(Halves::of(c[element / 2 * kLanes + lane], element % 2));
    }

    template <bool>
    static void run(Context& context, const Op& op) {
        const Word* const a = fragment(context, op, 1);
        const Word* const b = fragment(context, op, 2);
        const Word* const c = fragment(context, op, 3);
        Word* const d = fragment(context, op, 0);
        const u64 seed = context.approximation_seed;
        const u64 words = seed == 0 ? 0 : digest(a, 2 * kWords * kLanes) ^ mix(digest(b, kWords * kLanes));
        const Choice choice(seed, words, kDepth);
        const Operands<Element, kDepth> in(a, b, choice.flushes);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            u32 halves[4] = {};
            for (unsigned e = 0; e < 4; ++e) {
                const unsigned row = lane / 4 + 8 * (e / 2), column = 2 * (lane % 4) + e % 2;
                double sum = 0;
                for (unsigned k = 0; k <= kDepth; ++k) {
                    const unsigned at = choice.order[k];
                    const double next =
                        at == kDepth ? addend(c, lane, e)
                                     : static_cast<double>(in.a[row][at]) * static_cast<double>(in.b[at][column]);
                    sum = k == 0 ? next : round_partial(sum + next, choice.rounding);
                }
                if (kHalfSum)
                    halves[e] = narrow_to_f16(round_to_odd(sum)).bits;
                else
                    d[e * kLanes + lane] = bits_of(canonical(static_cast<float>(sum)));
            }
            if (!kHalfSum) continue;
            d[lane] = halves[1] << 16 | halves[0];
            d[kLanes + lane] = halves[3] << 16 | halves[2];
        }
    }
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments
#define ROW(name, format, flags, ...) \
    { name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, flags }
#define MMA(shape, types, format, ...) ROW("mma.sync.aligned." shape ".row.col." types, format, kWarp, __VA_ARGS__)
const Row kMatrixRows[] = {
    MMA("m16n8k8", "f32.f16.f16.f32", "4=214", MultiplyMatrices<Halves, 8, false>),
    MMA("m16n8k16", "f32.f16.f16.f32", "4=424", MultiplyMatrices<Halves, 16, false>),
    MMA("m16n8k8", "f16.f16.f16.f16", "2=212", MultiplyMatrices<Halves, 8, true>),
    MMA("m16n8k16", "f16.f16.f16.f16", "2=422", MultiplyMatrices<Halves, 16, true>),
    MMA("m16n8k8", "f32.bf16.bf16.f32", "4=214", MultiplyMatrices<BrainHalves, 8, false>),
    MMA("m16n8k16", "f32.bf16.bf16.f32", "4=424", MultiplyMatrices<BrainHalves, 16, false>),
    MMA("m16n8k4", "f32.tf32.tf32.f32", "4=214", MultiplyMatrices<Tf32, 4, false>),
    MMA("m16n8k8", "f32.tf32.tf32.f32", "4=424", MultiplyMatrices<Tf32, 8, false>),
    ROW("%gather.1", "1=W", kInternal, Gather<1>),
    ROW("%gather.2", "2=WW", kInternal, Gather<2>),
    ROW("%gather.4", "4=WWWW", kInternal, Gather<4>),
    ROW("%part", "W=4", kInternal, Part),
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

RowSpan matrix_rows() { return {kMatrixRows, sizeof(kMatrixRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
