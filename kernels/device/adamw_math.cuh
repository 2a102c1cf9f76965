// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/device/params.h"

/// THE update formula (contract section 6): one element, no loads, no indices. Plain operators where a product and a
/// sum may be contracted, explicit intrinsics where the contract wants one correctly rounded operation.
namespace gradguard::kernels {

struct Element {
    float parameter;
    float first_moment;
    float second_moment;
    float max_second_moment;
};

/// NaN if either is NaN; of two zeros +0.
__device__ inline float amsgrad_maximum(float a, float b) {
    float maximum;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(maximum) : "f"(a), "f"(b));
    // Of two negative zeros the maximum is +0; beside a negative number it is -0 and stays so.
    return a == b ? __fadd_rn(maximum, 0.0F) : maximum;
}

/// `raw` is float32(stored gradient); on a first step the caller passes +0 for all moments of `old`.
template <bool kAmsgrad, bool kClipped>
__device__ inline Element adamw(const UpdateArguments& c, float raw, Element old) {
    float g = raw * c.reciprocal_scale;  // unscale
    if constexpr (kClipped) g = g * c.clip;
    g = g * c.direction;  // -g when maximizing, exact
    Element fresh;
    fresh.first_moment = c.beta1 * old.first_moment + c.one_minus_beta1 * g;
    fresh.second_moment = c.beta2 * old.second_moment + c.one_minus_beta2 * (g * g);
    float x = fresh.second_moment;
    if constexpr (kAmsgrad) x = amsgrad_maximum(old.max_second_moment, fresh.second_moment);
    fresh.max_second_moment = x;
    const float denominator = __fsqrt_rn(x * c.inverse_bias2) + c.epsilon;
    fresh.parameter =
        old.parameter * c.decay - c.learning_rate * __fdiv_rn(fresh.first_moment * c.inverse_bias1, denominator);
    return fresh;
}

}  // namespace gradguard::kernels
