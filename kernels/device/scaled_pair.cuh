// SPDX-License-Identifier: Apache-2.0
#pragma once

/// THE norm formula (contract section 4). The pair stands for scale^2 * sumsq, and (0, 0) for nothing. Every operation
/// is an explicitly rounded intrinsic, so that no build fuses any of it.
namespace gradguard::kernels {

struct ScaledPair {
    float scale;
    float sumsq;
};

/// Commutative bit for bit where a scale is not 0: equal scales give q = 1, and an FP32 sum does not depend on the
/// order of its terms. Of two pairs of scale 0 the first is kept, so what is merged into (0, 0) leaves it (0, 0).
__device__ inline ScaledPair merge(ScaledPair a, ScaledPair b) {
    const bool a_is_larger = a.scale >= b.scale;
    const ScaledPair larger = a_is_larger ? a : b;
    const ScaledPair smaller = a_is_larger ? b : a;
    if (smaller.scale == 0.0F) return larger;  // a zero element or an idle lane: nothing is divided
    // A division: the reciprocal of a subnormal scale would be infinite.
    const float q = __fdiv_rn(smaller.scale, larger.scale);
    const float q2 = __fmul_rn(q, q);
    return {larger.scale, __fadd_rn(larger.sumsq, __fmul_rn(smaller.sumsq, q2))};
}

/// The flag word of a triple: 0.0 or 1.0 as bits, so that merging is a plain OR and storing a plain store.
inline constexpr unsigned int kGood = 0;
inline constexpr unsigned int kBad = 0x3F800000;

/// Statistics of some elements: the pair over the good ones, and whether there was a bad one.
struct Triple {
    ScaledPair pair;
    unsigned int flag;
};

__device__ inline Triple merge(Triple a, Triple b) { return {merge(a.pair, b.pair), a.flag | b.flag}; }

/// The element `raw`, still multiplied by the loss scale, as a triple: a bad one enters neither sum nor maximum. A NaN
/// or infinite raw stays one when it is multiplied by a positive finite r, so looking at the product covers both.
/// Exponent bits are compared, not the number, so that no compiler option about NaN can remove the test.
__device__ inline Triple element_triple(float raw, float reciprocal_scale) {
    const float value = __fmul_rn(raw, reciprocal_scale);
    const unsigned int magnitude_bits = __float_as_uint(value) & 0x7FFFFFFFU;
    const bool bad = magnitude_bits >= 0x7F800000U;
    return {{bad ? 0.0F : __uint_as_float(magnitude_bits), 1.0F}, bad ? kBad : kGood};
}

}  // namespace gradguard::kernels
