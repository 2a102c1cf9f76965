// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "reference/exact/real.h"
#include "reference/fp64/coefficients.h"

namespace gradguard::reference {

/// One element of an entry: parameter, first moment, second moment, and the running maximum of the second moment
/// (0 and not used without AMSGrad). On a first update m, v and x are +0 (contract section 6).
template <class T>
struct ElementState {
    T p{};
    T m{};
    T v{};
    T x{};
};

/// The coefficients over the number type of the lines.
template <class T>
struct LineCoefficients {
    T r, clip, beta1, one_minus_beta1, beta2, one_minus_beta2, inverse_bias1, inverse_bias2, epsilon, learning_rate,
        decay;
    bool clips;  ///< clip != 1
    bool maximize;
    bool amsgrad;
};

/// The FP32 coefficients as given, in another number type (exact for double and Real).
template <class T>
LineCoefficients<T> line_coefficients(const UpdateCoefficients& c) {
    return {T(c.r),
            T(c.clip),
            T(c.beta1),
            T(c.one_minus_beta1),
            T(c.beta2),
            T(c.one_minus_beta2),
            T(c.inverse_bias1),
            T(c.inverse_bias2),
            T(c.epsilon),
            T(c.learning_rate),
            T(c.decay),
            c.clip != 1.0F,
            c.maximize,
            c.amsgrad};
}

/// How the two products of a line meet. Each operation rounded on its own: the lines' own bits. `a*b + c*d` is the only
/// place of the lines where a multiplication meets an addition, so the policies cover every legal contraction.
struct Uncontracted {
    template <class T>
    static T sum_of_products(const T& a, const T& b, const T& c, const T& d) {
        return a * b + c * d;
    }
};
/// The first product fused into the addition.
struct FirstFused {
    static float sum_of_products(float a, float b, float c, float d) { return std::fma(a, b, c * d); }
};
/// The second product fused into the addition.
struct SecondFused {
    static float sum_of_products(float a, float b, float c, float d) { return std::fma(c, d, a * b); }
};

/// g * g, and the greater of two with NaN if either is NaN and +0 of two zeros. Number types for which these are more
/// than their operations (an interval's square is not the product of two unrelated values) overload them beside
/// themselves.
template <class T>
T square(const T& g) {
    return g * g;
}
template <class T>
T maximum(const T& a, const T& b) {
    if (a != a) return a;
    if (a == 0 && b == 0) return T(0.0F);
    return a > b ? a : b;
}

/// Contract section 6, line by line.
template <class Products = Uncontracted>
struct Lines {
    /// g = float32(stored) * r; g = g * clip where clip != 1; g = -g where maximize.
    template <class T>
    static T effective_gradient(const T& raw, const LineCoefficients<T>& c) {
        T g = raw * c.r;
        if (c.clips) g = g * c.clip;
        if (c.maximize) g = -g;
        return g;
    }
    /// m = beta1 * m_old + (1 - beta1) * g
    template <class T>
    static T first_moment(const T& m_old, const T& g, const LineCoefficients<T>& c) {
        return Products::sum_of_products(c.beta1, m_old, c.one_minus_beta1, g);
    }
    /// v = beta2 * v_old + (1 - beta2) * (g * g)
    template <class T>
    static T second_moment(const T& v_old, const T& g, const LineCoefficients<T>& c) {
        const T squared = square(g);
        return Products::sum_of_products(c.beta2, v_old, c.one_minus_beta2, squared);
    }
    /// x = max(max_old, v), NaN if either is NaN; of two zeros +0. Stored, uncorrected. Without AMSGrad x = v.
    template <class T>
    static T running_maximum(const T& max_old, const T& v, const LineCoefficients<T>& c) {
        return c.amsgrad ? maximum(max_old, v) : v;
    }
    /// p = p_old * decay - learning_rate * ((m * inverse_bias1) / (sqrt(x * inverse_bias2) + epsilon))
    template <class T>
    static T parameter(const T& p_old, const T& m, const T& x, const LineCoefficients<T>& c) {
        using std::sqrt;
        const T numerator = m * c.inverse_bias1;
        const T root = sqrt(T(x * c.inverse_bias2));
        const T ratio = numerator / T(root + c.epsilon);
        // a - b*c has the bits of a + (-b)*c, fused or not: a sign changes no rounding to nearest.
        return Products::sum_of_products(p_old, c.decay, T(-c.learning_rate), ratio);
    }
    /// All lines. `old.x` is the running maximum; the result's x is it, or 0 without AMSGrad.
    template <class T>
    static ElementState<T> update(const T& raw, const ElementState<T>& old, const LineCoefficients<T>& c) {
        const T g = effective_gradient(raw, c);
        ElementState<T> next;
        next.m = first_moment(old.m, g, c);
        next.v = second_moment(old.v, g, c);
        const T x = running_maximum(old.x, next.v, c);
        next.p = parameter(old.p, next.m, x, c);
        if (c.amsgrad) next.x = x;
        return next;
    }
};

/// The lines in FP32, each operation rounded on its own. Bit for bit what a kernel built without contraction stores.
ElementState<float> update_element(float raw, const ElementState<float>& old, const UpdateCoefficients& c);

/// Reading (a): the contract's lines over the reals with the FP32 coefficients as given, from the old state; isolates a
/// device's rounding. Operands that are infinite or NaN follow IEEE rules.
ElementState<Real> exact_update(float raw, const ElementState<float>& old, const UpdateCoefficients& c);

/// Reading (b): mathematical AdamW, with real division by the loss scale, real powers of beta and real decay; shows
/// what the contract's FP32 coefficients cost. `total_norm` >= 0 is the real norm; `t` the step being taken.
LineCoefficients<Real> mathematical_coefficients(const AdamWOptions& options, const StepControl& control,
                                                 const GradientGuardOptions& guard, const Real& total_norm,
                                                 std::uint64_t t);
ElementState<Real> mathematical_update(float raw, const ElementState<float>& old, const LineCoefficients<Real>& c);

/// Widens a state; exact.
ElementState<Real> to_real(const ElementState<float>& state);

}  // namespace gradguard::reference
