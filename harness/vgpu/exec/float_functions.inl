// SPDX-License-Identifier: Apache-2.0
// FP32, FP64 and 16-bit float arithmetic of one lane. NaN results are canonical, so that every form gives the same bits
// (PTX promises 0x7fffffff for FP32 and no payload for FP64).

static constexpr u32 kNan32 = 0x7FFFFFFFU;
static constexpr u64 kNan64 = 0x7FF8000000000000ULL;

VGPU_INLINE float canonical(float r) { return r == r ? r : float_of(kNan32); }
VGPU_INLINE double canonical(double r) { return r == r ? r : double_of(kNan64); }

/// Subnormals to zero of the same sign, when asked for.
template <bool kFtz>
VGPU_INLINE float flush(float x) {
    if constexpr (!kFtz) return x;
    const u32 bits = bits_of(x);
    return float_of((bits & 0x7F800000U) != 0 ? bits : bits & 0x80000000U);
}
template <bool kFtz>
VGPU_INLINE double flush(double x) {
    return x;
}

/// .sat: to [0, 1], NaN to +0.
template <bool kSat, class T>
VGPU_INLINE T saturate(T x) {
    if constexpr (!kSat) return x;
    const T low = x > T{0} ? x : T{0};  // also NaN, -0 and negative values
    return low < T{1} ? low : T{1};
}

template <bool kFtz, bool kSat, class T>
VGPU_INLINE T finish(T r) {
    return saturate<kSat>(canonical(flush<kFtz>(r)));
}

template <bool kFtz, bool kSat>
struct Add {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return finish<kFtz, kSat>(flush<kFtz>(a) + flush<kFtz>(b));
    }
};
template <bool kFtz, bool kSat>
struct Subtract {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return finish<kFtz, kSat>(flush<kFtz>(a) - flush<kFtz>(b));
    }
};
template <bool kFtz, bool kSat>
struct Multiply {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return finish<kFtz, kSat>(flush<kFtz>(a) * flush<kFtz>(b));
    }
};
VGPU_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
VGPU_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <bool kFtz, bool kSat>
struct Fma {
    template <class T>
    VGPU_INLINE T apply(T a, T b, T c) {
        return finish<kFtz, kSat>(fused(flush<kFtz>(a), flush<kFtz>(b), flush<kFtz>(c)));
    }
};
template <bool kFtz>
struct Divide {
    template <class T>
    VGPU_INLINE T apply(T a, T b) {
        return finish<kFtz, false>(flush<kFtz>(a) / flush<kFtz>(b));
    }
};
template <bool kFtz>
struct Reciprocal {
    template <class T>
    VGPU_INLINE T apply(T a) {
        return finish<kFtz, false>(T{1} / flush<kFtz>(a));
    }
};
VGPU_INLINE float root(float a) { return __builtin_sqrtf(a); }
VGPU_INLINE double root(double a) { return __builtin_sqrt(a); }
template <bool kFtz>
struct SquareRoot {
    template <class T>
    VGPU_INLINE T apply(T a) {
        return finish<kFtz, false>(root(flush<kFtz>(a)));
    }
};

/// Of two zeros min gives -0, max +0. One NaN: the other operand, or NaN with .NaN.
template <bool kMaximum, bool kNan, bool kFtz>
struct Extremum {
    VGPU_INLINE float join(float a, float b) {
        return kMaximum ? float_of(bits_of(a) & bits_of(b)) : float_of(bits_of(a) | bits_of(b));
    }
    VGPU_INLINE double join(double a, double b) {
        return kMaximum ? double_of(bits_of(a) & bits_of(b)) : double_of(bits_of(a) | bits_of(b));
    }
    template <class T>
    VGPU_INLINE T apply(T x, T y) {
        const T a = flush<kFtz>(x), b = flush<kFtz>(y);
        T r = (kMaximum ? a > b : a < b) ? a : b;
        r = a == b ? join(a, b) : r;
        if constexpr (kNan) {
            r = a == a ? r : a;
            r = b == b ? r : b;
        } else {
            r = a == a ? r : b;
            r = b == b ? r : a;
        }
        return canonical(r);
    }
};
struct AbsoluteFloat {
    VGPU_INLINE float apply(float a) { return float_of(bits_of(a) & 0x7FFFFFFFU); }
    VGPU_INLINE double apply(double a) { return double_of(bits_of(a) & ~(1ULL << 63)); }
};
struct NegateFloat {
    VGPU_INLINE float apply(float a) { return float_of(bits_of(a) ^ 0x80000000U); }
    VGPU_INLINE double apply(double a) { return double_of(bits_of(a) ^ (1ULL << 63)); }
};
template <class F>
struct Flushed {
    VGPU_INLINE float apply(float a) { return flush<true>(F::apply(a)); }
};
/// Sign of a, magnitude of b.
struct CopySign {
    VGPU_INLINE float apply(float a, float b) {
        return float_of((bits_of(a) & 0x80000000U) | (bits_of(b) & 0x7FFFFFFFU));
    }
    VGPU_INLINE double apply(double a, double b) {
        return double_of((bits_of(a) & (1ULL << 63)) | (bits_of(b) & ~(1ULL << 63)));
    }
};

// ---- comparisons: the plain ones are false with a NaN, those with u true -------------------------------------------
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are whole conditions
#define VGPU_COMPARE(Name, ordered, unordered)              \
    template <bool kUnordered, bool kFtz>                   \
    struct Name {                                           \
        template <class T>                                  \
        VGPU_INLINE bool apply(T x, T y) {                  \
            const T a = flush<kFtz>(x), b = flush<kFtz>(y); \
            return kUnordered ? unordered : ordered;        \
        }                                                   \
    };
VGPU_COMPARE(FloatEqual, a == b, !((a < b) | (a > b)))
VGPU_COMPARE(FloatNotEqual, (a < b) | (a > b), !(a == b))
VGPU_COMPARE(FloatLess, a < b, !(a >= b))
VGPU_COMPARE(FloatLessEqual, a <= b, !(a > b))
VGPU_COMPARE(FloatGreater, a > b, !(a <= b))
VGPU_COMPARE(FloatGreaterEqual, a >= b, !(a < b))
#undef VGPU_COMPARE
struct BothNumbers {
    template <class T>
    VGPU_INLINE bool apply(T a, T b) {
        return (a == a) & (b == b);
    }
};
struct AnyNan {
    template <class T>
    VGPU_INLINE bool apply(T a, T b) {
        return (a != a) | (b != b);
    }
};

// ---- testp
// -----------------------------------------------------------------------------------------------------------
VGPU_INLINE u32 magnitude(float a) { return bits_of(a) & 0x7FFFFFFFU; }
VGPU_INLINE u64 magnitude(double a) { return bits_of(a) & ~(1ULL << 63); }
VGPU_INLINE u32 infinity_bits(float) { return 0x7F800000U; }
VGPU_INLINE u64 infinity_bits(double) { return 0x7FF0000000000000ULL; }
VGPU_INLINE u32 least_normal_bits(float) { return 0x00800000U; }
VGPU_INLINE u64 least_normal_bits(double) { return 0x0010000000000000ULL; }
#define VGPU_TESTP(Name, condition)                                                                       \
    struct Name {                                                                                         \
        template <class T>                                                                                \
        VGPU_INLINE bool apply(T a) {                                                                     \
            const auto m = magnitude(a);                                                                  \
            [[maybe_unused]] const auto infinity = infinity_bits(a), least_normal = least_normal_bits(a); \
            return condition;                                                                             \
        }                                                                                                 \
    };
VGPU_TESTP(IsFinite, m < infinity)
VGPU_TESTP(IsInfinite, m == infinity)
VGPU_TESTP(IsNumber, m <= infinity)
VGPU_TESTP(IsNotANumber, m > infinity)
VGPU_TESTP(IsNormal, ((m >= least_normal) & (m < infinity)) | (m == 0))  // PTX counts zero as normal
VGPU_TESTP(IsSubnormal, (m < least_normal) & (m != 0))
#undef VGPU_TESTP
// NOLINTEND(bugprone-macro-parentheses)

// ---- 16-bit floats
// ---------------------------------------------------------------------------------------------------
VGPU_INLINE float widen(f16 h) {
    const u32 magnitude_bits = (h.bits & 0x7FFFU) << 13;
    const u32 sign = static_cast<u32>(h.bits & 0x8000U) << 16;
    // A product with 2^112 moves the exponent, exactly, for subnormals too.
    const float finite = float_of(magnitude_bits) * 0x1p112F;
    const bool special = magnitude_bits >= 0x0F800000U;
    const u32 special_bits = magnitude_bits == 0x0F800000U ? 0x7F800000U | sign : kNan32;
    return float_of(special ? special_bits : bits_of(finite) | sign);
}
VGPU_INLINE float widen(bf16 h) { return float_of(static_cast<u32>(h.bits) << 16); }

/// Round to nearest, ties to even; NaN becomes 0x7fff.
VGPU_INLINE f16 narrow_to_f16(float value) {
    const u32 bits = bits_of(value);
    const u32 sign = (bits >> 16) & 0x8000U;
    const u32 m = bits & 0x7FFFFFFFU;
    // Normal results: round the significand at bit 13. Overflow carries into the exponent and on to infinity.
    const u32 normal = (m - 0x38000000U + 0xFFFU + ((m >> 13) & 1U)) >> 13;
    // Subnormal results: adding 0.5 leaves them in the low bits, rounded by the addition itself.
    const u32 subnormal = bits_of(float_of(m) + 0.5F) - 0x3F000000U;
    u32 r = m < 0x38800000U ? subnormal : normal;
    r = m >= 0x477FF000U ? 0x7C00U : r;
    r |= sign;
    r = m > 0x7F800000U ? 0x7FFFU : r;
    return {static_cast<u16>(r)};
}
VGPU_INLINE bf16 narrow_to_bf16(float value) {
    const u32 bits = bits_of(value);
    const u32 rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    return {static_cast<u16>((bits & 0x7FFFFFFFU) > 0x7F800000U ? 0x7FFFU : rounded)};
}
/// To FP32 with the last bit odd when inexact: a second rounding to 16 bits is then as good as one.
VGPU_INLINE float round_to_odd(double value) {
    const float nearest = static_cast<float>(value);
    const double back = static_cast<double>(nearest);
    const u32 bits = bits_of(nearest);
    const bool inexact = (back != value) & (value == value) & ((bits & 1U) == 0);
    // One step towards the value makes an even neighbour odd.
    const bool beyond = AbsoluteFloat::apply(back) > AbsoluteFloat::apply(value);
    return float_of(inexact ? (beyond ? bits - 1 : bits + 1) : bits);
}
