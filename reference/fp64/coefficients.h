// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reference/contract/options.h"

namespace gradguard::reference {

/// What one step's update lines use (contract section 6), computed once on the host, each exactly defined.
struct UpdateCoefficients {
    float r = 1.0F;  ///< 1 / gradient_scale.
    float clip = 1.0F;
    float beta1 = 0.0F;
    float one_minus_beta1 = 1.0F;
    float beta2 = 0.0F;
    float one_minus_beta2 = 1.0F;
    float inverse_bias1 = 1.0F;
    float inverse_bias2 = 1.0F;
    float epsilon = 0.0F;
    float learning_rate = 0.0F;
    float decay = 1.0F;  ///< 1 - learning_rate * weight_decay, the product rounded first.
    bool maximize = false;
    bool amsgrad = false;

    bool operator==(const UpdateCoefficients&) const = default;
};

/// 1 / gradient_scale in FP32 (contract section 4).
float reciprocal_scale(float gradient_scale);

/// beta^t in FP64 by the bits of t from the lowest (contract section 6); t >= 1.
double power_by_bits(float beta, std::uint64_t t);

/// 1 / (1 - beta^t) in FP64, rounded once to FP32; t >= 1.
float inverse_bias(float beta, std::uint64_t t);

/// `t`: the step being taken, completed step + 1, at least 1. Options and control must be valid.
UpdateCoefficients update_coefficients(const AdamWOptions& options, const StepControl& control, float clip,
                                       std::uint64_t t);

}  // namespace gradguard::reference
