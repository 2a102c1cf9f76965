// SPDX-License-Identifier: Apache-2.0
#include "reference/model/update.h"

namespace gradguard::reference {

ElementState<float> update_element(float raw, const ElementState<float>& old, const UpdateCoefficients& c) {
    return Lines<>::update(raw, old, line_coefficients<float>(c));
}

ElementState<Real> to_real(const ElementState<float>& state) {
    return {Real(state.p), Real(state.m), Real(state.v), Real(state.x)};
}

ElementState<Real> exact_update(float raw, const ElementState<float>& old, const UpdateCoefficients& c) {
    return Lines<>::update(Real(raw), to_real(old), line_coefficients<Real>(c));
}

LineCoefficients<Real> mathematical_coefficients(const AdamWOptions& options, const StepControl& control,
                                                 const GradientGuardOptions& guard, const Real& total_norm,
                                                 std::uint64_t t) {
    const Real one(1);
    const Real beta1(options.beta1);
    const Real beta2(options.beta2);
    Real clip = one;
    if (guard.max_norm) {
        const Real quotient = Real(*guard.max_norm) / Real(total_norm + Real(guard.epsilon));
        if (quotient < one) clip = quotient;
    }
    LineCoefficients<Real> c;
    c.r = one / Real(control.gradient_scale);
    c.clip = clip;
    c.beta1 = beta1;
    c.one_minus_beta1 = one - beta1;
    c.beta2 = beta2;
    c.one_minus_beta2 = one - beta2;
    c.inverse_bias1 = one / Real(one - pow(beta1, Real(t)));
    c.inverse_bias2 = one / Real(one - pow(beta2, Real(t)));
    c.epsilon = Real(options.epsilon);
    c.learning_rate = Real(options.learning_rate);
    c.decay = one - Real(options.learning_rate) * Real(options.weight_decay);
    c.clips = clip != one;
    c.maximize = options.maximize;
    c.amsgrad = options.amsgrad;
    return c;
}

ElementState<Real> mathematical_update(float raw, const ElementState<float>& old, const LineCoefficients<Real>& c) {
    return Lines<>::update(Real(raw), to_real(old), c);
}

}  // namespace gradguard::reference
