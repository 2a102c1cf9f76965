// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "reference/contract/options.h"

/// The rules of contract section 3 for options. Each throws Error{InvalidOption} that names the option.
namespace gradguard::kernels {

void validate(const AdamWOptions& options);
void validate(const StepControl& control);
void validate(const GradientGuardOptions& guard);
/// The loss scale alone: finite, positive, FP32 reciprocal finite.
void validate_gradient_scale(float gradient_scale);

/// The shortest decimal text that reads back as `value`.
std::string number_to_string(double value);
std::string number_to_string(float value);

}  // namespace gradguard::kernels
