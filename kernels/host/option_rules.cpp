// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/option_rules.h"

#include <charconv>
#include <cmath>

#include "reference/contract/error.h"

namespace gradguard::kernels {
namespace {

template <class Number>
std::string shortest(Number value) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return {text, end};
}

void require(bool accepted, const char* option, const char* wanted, float got) {
    if (!accepted) {
        throw Error(ErrorKind::kInvalidOption, {.operand = option},
                    "want " + std::string(wanted) + ", got " + number_to_string(got));
    }
}

bool is_beta(float value) { return std::isfinite(value) && value >= 0.0F && value < 1.0F; }

}  // namespace

std::string number_to_string(double value) { return shortest(value); }
std::string number_to_string(float value) { return shortest(value); }

void validate(const AdamWOptions& options) {
    const auto is_rate = [](float value) { return std::isfinite(value) && value >= 0.0F; };
    require(is_rate(options.learning_rate), "learning_rate", "finite and >= 0", options.learning_rate);
    require(is_beta(options.beta1), "beta1", "finite and in [0, 1)", options.beta1);
    require(is_beta(options.beta2), "beta2", "finite and in [0, 1)", options.beta2);
    require(std::isfinite(options.epsilon) && options.epsilon > 0.0F, "epsilon", "finite and > 0", options.epsilon);
    require(is_rate(options.weight_decay), "weight_decay", "finite and >= 0", options.weight_decay);
    const float product = options.learning_rate * options.weight_decay;
    require(std::isfinite(product), "weight_decay", "a finite FP32 product with learning_rate", product);
}

void validate_gradient_scale(float gradient_scale) {
    require(std::isfinite(gradient_scale) && gradient_scale > 0.0F, "gradient_scale", "finite and > 0", gradient_scale);
    require(std::isfinite(1.0F / gradient_scale), "gradient_scale", "a finite FP32 reciprocal", gradient_scale);
}

void validate(const StepControl& control) { validate_gradient_scale(control.gradient_scale); }

void validate(const GradientGuardOptions& guard) {
    if (guard.max_norm) {
        require(std::isfinite(*guard.max_norm) && *guard.max_norm >= 0.0F, "max_norm", "absent, or finite and >= 0",
                *guard.max_norm);
    }
    require(std::isfinite(guard.epsilon) && guard.epsilon > 0.0F, "guard_epsilon", "finite and > 0", guard.epsilon);
}

}  // namespace gradguard::kernels
