// SPDX-License-Identifier: Apache-2.0
// cvt of one lane, between floats and integers. Round to nearest even unless the name says otherwise.

enum class Integral { Nearest, Zero, Down, Up };

template <Integral kMode>
VGPU_INLINE float to_integral(float a) {
    if constexpr (kMode == Integral::Nearest) return __builtin_rintf(a);
    if constexpr (kMode == Integral::Zero) return __builtin_truncf(a);
    if constexpr (kMode == Integral::Down) return __builtin_floorf(a);
    return __builtin_ceilf(a);
}
template <Integral kMode>
VGPU_INLINE double to_integral(double a) {
    if constexpr (kMode == Integral::Nearest) return __builtin_rint(a);
    if constexpr (kMode == Integral::Zero) return __builtin_trunc(a);
    if constexpr (kMode == Integral::Down) return __builtin_floor(a);
    return __builtin_ceil(a);
}

/// Float to integer clamps. NaN becomes 0 from FP32 to at most 32 bits, else only the highest bit is set.
template <class D, Integral kMode, bool kFtz>
struct FloatToInt {
    template <class S>
    VGPU_INLINE D apply(S x) {
        const S r = to_integral<kMode>(flush<kFtz>(x));
        constexpr S kTop = S(2) * S(Wrap<D>(1) << (kBits<D> - 1)) / (kIsSigned<D> ? S(2) : S(1));
        constexpr S kBottom = S(kLeast<D>);
        const bool above = r >= kTop, below = r < kBottom, is_nan = r != r;
        const S inside = (above | below | is_nan) ? S(0) : r;
        D result = static_cast<D>(inside);
        result = above ? kGreatest<D> : result;
        result = below ? kLeast<D> : result;
        constexpr D kNan = sizeof(S) == 8 || sizeof(D) == 8 ? D(Wrap<D>(1) << (kBits<D> - 1)) : D(0);
        return is_nan ? kNan : result;
    }
};
template <Integral kMode, bool kFtz>
struct RoundToIntegral {
    template <class S>
    VGPU_INLINE S apply(S x) {
        return canonical(to_integral<kMode>(flush<kFtz>(x)));
    }
};
template <bool kFtz, bool kSat>
struct FloatToFloat {
    VGPU_INLINE float apply(float a) { return finish<kFtz, kSat>(flush<kFtz>(a)); }
};
template <bool kFtz>
struct DoubleToFloat {
    VGPU_INLINE float apply(double a) { return finish<kFtz, false>(static_cast<float>(a)); }
};
template <bool kFtz>
struct FloatToDouble {
    VGPU_INLINE double apply(float a) { return canonical(static_cast<double>(flush<kFtz>(a))); }
};
struct F16ToFloat {
    VGPU_INLINE float apply(f16 a) { return widen(a); }
};
struct F16ToDouble {
    VGPU_INLINE double apply(f16 a) { return canonical(static_cast<double>(widen(a))); }
};
struct Bf16ToFloat {
    VGPU_INLINE float apply(bf16 a) { return widen(a); }
};
template <bool kFtz>
struct FloatToF16 {
    VGPU_INLINE f16 apply(float a) { return narrow_to_f16(flush<kFtz>(a)); }
};
struct DoubleToF16 {
    VGPU_INLINE f16 apply(double a) { return narrow_to_f16(round_to_odd(a)); }
};
struct FloatToBf16 {
    VGPU_INLINE bf16 apply(float a) { return narrow_to_bf16(a); }
};
/// Source a goes to the upper half.
struct FloatsToF16Pair {
    VGPU_INLINE u32 apply(float a, float b) {
        return static_cast<u32>(narrow_to_f16(a).bits) << 16 | narrow_to_f16(b).bits;
    }
};
struct FloatsToBf16Pair {
    VGPU_INLINE u32 apply(float a, float b) {
        return static_cast<u32>(narrow_to_bf16(a).bits) << 16 | narrow_to_bf16(b).bits;
    }
};
