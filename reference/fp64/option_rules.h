// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include "reference/contract/options.h"
#include "reference/fp64/violation.h"

namespace gradguard::reference {

/// One row of the option rules (contract section 3). `value` is the number that a message shows.
template <class Options>
struct OptionRule {
    std::string_view operand;
    std::string_view wanted;
    float (*value)(const Options&);
    bool (*accepts)(const Options&);
};

/// Written so that NaN fails each of them.
constexpr bool is_finite(float x) { return x - x == 0.0F; }
constexpr bool is_finite_non_negative(float x) { return is_finite(x) && x >= 0.0F; }
constexpr bool is_finite_positive(float x) { return is_finite(x) && x > 0.0F; }
constexpr bool is_decay_rate(float x) { return x >= 0.0F && x < 1.0F; }
/// 1/x < 2^128 - 2^103, from where a quotient rounds to infinity: 2^-127 passes, 2^-128 and below do not.
constexpr bool has_finite_reciprocal(float x) { return 1.0 / static_cast<double>(x) < 0x1.ffffffp127; }
/// The exact product of two FP32 values fits in FP64; it rounds to infinity from 2^128 - 2^103 up.
constexpr bool has_finite_product(float a, float b) {
    return static_cast<double>(a) * static_cast<double>(b) < 0x1.ffffffp127;
}

inline constexpr std::array<OptionRule<AdamWOptions>, 6> kAdamWOptionRules{{
    {"learning_rate", "finite and >= 0", [](const AdamWOptions& o) { return o.learning_rate; },
     [](const AdamWOptions& o) { return is_finite_non_negative(o.learning_rate); }},
    {"beta1", "finite and in [0, 1)", [](const AdamWOptions& o) { return o.beta1; },
     [](const AdamWOptions& o) { return is_decay_rate(o.beta1); }},
    {"beta2", "finite and in [0, 1)", [](const AdamWOptions& o) { return o.beta2; },
     [](const AdamWOptions& o) { return is_decay_rate(o.beta2); }},
    {"epsilon", "finite and > 0", [](const AdamWOptions& o) { return o.epsilon; },
     [](const AdamWOptions& o) { return is_finite_positive(o.epsilon); }},
    {"weight_decay", "finite and >= 0", [](const AdamWOptions& o) { return o.weight_decay; },
     [](const AdamWOptions& o) { return is_finite_non_negative(o.weight_decay); }},
    {"weight_decay", "learning_rate * weight_decay finite in FP32",
     [](const AdamWOptions& o) { return o.weight_decay; },
     [](const AdamWOptions& o) { return has_finite_product(o.learning_rate, o.weight_decay); }},
}};

/// Checked even when the step is to be skipped.
inline constexpr std::array<OptionRule<StepControl>, 2> kStepControlRules{{
    {"gradient_scale", "finite and > 0", [](const StepControl& c) { return c.gradient_scale; },
     [](const StepControl& c) { return is_finite_positive(c.gradient_scale); }},
    {"gradient_scale", "a finite FP32 reciprocal", [](const StepControl& c) { return c.gradient_scale; },
     [](const StepControl& c) { return has_finite_reciprocal(c.gradient_scale); }},
}};

inline constexpr std::array<OptionRule<GradientGuardOptions>, 2> kGuardOptionRules{{
    {"max_norm", "absent, or finite and >= 0", [](const GradientGuardOptions& g) { return g.max_norm.value_or(0.0F); },
     [](const GradientGuardOptions& g) { return !g.max_norm || is_finite_non_negative(*g.max_norm); }},
    {"guard_epsilon", "finite and > 0", [](const GradientGuardOptions& g) { return g.epsilon; },
     [](const GradientGuardOptions& g) { return is_finite_positive(g.epsilon); }},
}};

/// The first rule of the table that `options` break; nothing when all hold. Kind InvalidOption, no entry.
std::optional<Violation> check_options(const AdamWOptions& options);
std::optional<Violation> check_control(const StepControl& control);
std::optional<Violation> check_guard(const GradientGuardOptions& guard);

}  // namespace gradguard::reference
