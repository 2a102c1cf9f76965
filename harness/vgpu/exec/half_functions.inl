// SPDX-License-Identifier: Apache-2.0
// Arithmetic and comparisons of 16-bit floats, one by one and in pairs.

template <class H>
H narrow(float value) {
    if constexpr (__is_same(H, f16))
        return narrow_to_f16(value);
    else
        return narrow_to_bf16(value);
}

/// Subnormals to zero; asked for with f16 only.
template <bool kFtz, class H>
H flush_half(H h) {
    if constexpr (!kFtz) return h;
    return (h.bits & 0x7C00U) != 0 ? h : H{static_cast<u16>(h.bits & 0x8000U)};
}

/// a * b + c with the last bit odd when inexact, so that rounding it once more to 16 bits is as good as once. Products
/// of 16-bit floats are exact in FP64.
double fused_to_odd(double a, double b, double c) {
    const double product = a * b, sum = product + c;
    if (!(__builtin_fabs(sum) < __builtin_inf())) return sum;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (c - part);
    const u64 bits = bits_of(sum);
    if (error == 0 || (bits & 1U) != 0) return sum;
    return double_of((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

template <class H, bool kFtz, bool kSat, bool kRelu>
H finish_half(double value) {
    const H r = flush_half<kFtz>(narrow<H>(round_to_odd(value)));
    const bool is_nan = value != value;
    if (kSat) {
        if (is_nan || (r.bits & 0x8000U) != 0) return {0};
        const u16 one = narrow<H>(1.0F).bits;
        return r.bits > one ? H{one} : r;
    }
    return kRelu && !is_nan && (r.bits & 0x8000U) != 0 ? H{0} : r;
}

template <class H, bool kFtz>
double wide_of(H h) {
    return static_cast<double>(widen(flush_half<kFtz>(h)));
}

template <class H, bool kFtz, bool kSat, bool kRelu = false>
struct HalfFma {
    static H apply(H a, H b, H c) {
        return finish_half<H, kFtz, kSat, kRelu>(
            fused_to_odd(wide_of<H, kFtz>(a), wide_of<H, kFtz>(b), wide_of<H, kFtz>(c)));
    }
};
template <class H, bool kFtz, bool kSat>
struct HalfAdd {
    static H apply(H a, H b) {
        return finish_half<H, kFtz, kSat, false>(fused_to_odd(wide_of<H, kFtz>(a), 1.0, wide_of<H, kFtz>(b)));
    }
};
template <class H, bool kFtz, bool kSat>
struct HalfSubtract {
    static H apply(H a, H b) {
        return finish_half<H, kFtz, kSat, false>(fused_to_odd(wide_of<H, kFtz>(a), 1.0, -wide_of<H, kFtz>(b)));
    }
};
template <class H, bool kFtz, bool kSat>
struct HalfMultiply {
    static H apply(H a, H b) { return finish_half<H, kFtz, kSat, false>(wide_of<H, kFtz>(a) * wide_of<H, kFtz>(b)); }
};
template <class H, bool kFtz>
struct HalfNegate {
    static H apply(H a) { return {static_cast<u16>(flush_half<kFtz>(a).bits ^ 0x8000U)}; }
};
template <class H, bool kFtz>
struct HalfAbsolute {
    static H apply(H a) { return {static_cast<u16>(flush_half<kFtz>(a).bits & 0x7FFFU)}; }
};
template <class H, bool kMaximum, bool kFtz, bool kNan, bool kXorSign>
struct HalfExtremum {
    static H apply(H x, H y) {
        H a = flush_half<kFtz>(x), b = flush_half<kFtz>(y);
        const u16 sign = kXorSign ? (a.bits ^ b.bits) & 0x8000U : 0;
        if (kXorSign) a.bits &= 0x7FFFU, b.bits &= 0x7FFFU;
        // Widening is exact, and so is the way back.
        const float r = Extremum<kMaximum, kNan, false>::apply(widen(a), widen(b));
        return {static_cast<u16>(narrow<H>(r).bits | (r == r ? sign : 0))};
    }
};
template <bool kMaximum, bool kFtz, bool kNan>
struct XorSignExtremum {
    static float apply(float x, float y) {
        const float a = flush<kFtz>(x), b = flush<kFtz>(y);
        const float r = Extremum<kMaximum, kNan, false>::apply(AbsoluteFloat::apply(a), AbsoluteFloat::apply(b));
        return r == r ? float_of(bits_of(r) | ((bits_of(a) ^ bits_of(b)) & 0x80000000U)) : r;
    }
};
template <class F, bool kFtz>
struct HalfCompare {
    template <class H>
    static bool apply(H a, H b) {
        return F::apply(widen(flush_half<kFtz>(a)), widen(flush_half<kFtz>(b)));
    }
};

// ---- pairs
// -----------------------------------------------------------------------------------------------------------

/// F on both halves of a word.
template <class F, class H>
struct Pair {
    template <class... Words>
    static u32 apply(Words... words) {
        const u32 low = F::apply(H{static_cast<u16>(words)}...).bits;
        const u32 high = F::apply(H{static_cast<u16>(words >> 16)}...).bits;
        return high << 16 | low;
    }
};
template <class F, class H>
struct ComparePair {
    template <bool kMasked>
    static void run(Context& c, const Op& op) {
        const auto* const a = slot<u32>(c, op, 2);
        const auto* const b = slot<u32>(c, op, 3);
        u32 low = 0, high = 0;
        for (unsigned i = 0; i < kLanes; ++i) {
            low |= F::apply(H{static_cast<u16>(a[i])}, H{static_cast<u16>(b[i])}) ? kBit32[i] : 0;
            high |= F::apply(H{static_cast<u16>(a[i] >> 16)}, H{static_cast<u16>(b[i] >> 16)}) ? kBit32[i] : 0;
        }
        const u32 mask = kMasked ? c.mask : kFullMask;
        u32& first = predicate(c, op, 0);
        first = (first & ~mask) | (low & mask);
        u32& second = predicate(c, op, 1);
        second = (second & ~mask) | (high & mask);
    }
};
