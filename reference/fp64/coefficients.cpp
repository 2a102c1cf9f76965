// SPDX-License-Identifier: Apache-2.0
#include "reference/fp64/coefficients.h"

namespace gradguard::reference {

float reciprocal_scale(float gradient_scale) { return 1.0F / gradient_scale; }

double power_by_bits(float beta, std::uint64_t t) {
    double value = 1.0;
    double base = static_cast<double>(beta);
    for (; t != 0; t >>= 1U) {
        if ((t & 1U) != 0) value *= base;
        base *= base;
    }
    return value;
}

float inverse_bias(float beta, std::uint64_t t) { return static_cast<float>(1.0 / (1.0 - power_by_bits(beta, t))); }

UpdateCoefficients update_coefficients(const AdamWOptions& options, const StepControl& control, float clip,
                                       std::uint64_t t) {
    UpdateCoefficients c;
    c.r = reciprocal_scale(control.gradient_scale);
    c.clip = clip;
    c.beta1 = options.beta1;
    c.one_minus_beta1 = 1.0F - options.beta1;
    c.beta2 = options.beta2;
    c.one_minus_beta2 = 1.0F - options.beta2;
    c.inverse_bias1 = inverse_bias(options.beta1, t);
    c.inverse_bias2 = inverse_bias(options.beta2, t);
    c.epsilon = options.epsilon;
    c.learning_rate = options.learning_rate;
    const float product = options.learning_rate * options.weight_decay;
    c.decay = 1.0F - product;
    c.maximize = options.maximize;
    c.amsgrad = options.amsgrad;
    return c;
}

}  // namespace gradguard::reference
