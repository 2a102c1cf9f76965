// SPDX-License-Identifier: Apache-2.0
// Contract section 3: every option rule at its edges.
#include <cmath>

#include "reference/fp64/option_rules.h"
#include "tests/reference_alone/facts.h"

namespace gradguard::reference_alone {
namespace {

using reference::check_control;
using reference::check_guard;
using reference::check_options;

constexpr float kBelowOne = 0x1.fffffep-1F;
constexpr float kAboveOne = 0x1.000002p0F;

/// Whether the defaults with one option changed to `value` are accepted; a refusal must name `operand`.
bool accepts(float AdamWOptions::*option, std::string_view operand, float value) {
    AdamWOptions options;
    options.*option = value;
    const auto violation = check_options(options);
    if (violation) GRADGUARD_CHECK(refuses(violation, ErrorKind::kInvalidOption, operand) && !violation->site.entry);
    return !violation;
}

void rate_and_decay() {
    const std::pair<float AdamWOptions::*, std::string_view> options[] = {
        {&AdamWOptions::learning_rate, "learning_rate"}, {&AdamWOptions::weight_decay, "weight_decay"}};
    for (const auto& [option, name] : options) {
        for (const float good : {0.0F, -0.0F, kLeast, 1e-3F, 1.0F, 1e30F}) GRADGUARD_CHECK(accepts(option, name, good));
        for (const float bad : {-kLeast, -1.0F, -kMax, kInfinity, -kInfinity, kNaN}) {
            GRADGUARD_CHECK(!accepts(option, name, bad));
        }
    }
}

void product() {
    const auto finite = [](float rate, float decay) {
        AdamWOptions options;
        options.learning_rate = rate;
        options.weight_decay = decay;
        const auto violation = check_options(options);
        if (violation) GRADGUARD_CHECK(refuses(violation, ErrorKind::kInvalidOption, "weight_decay"));
        return !violation;
    };
    GRADGUARD_CHECK(finite(kMax, 1.0F));
    GRADGUARD_CHECK(finite(kMax, kBelowOne));
    GRADGUARD_CHECK(!finite(kMax, kAboveOne));
    GRADGUARD_CHECK(!finite(kAboveOne, kMax));
    GRADGUARD_CHECK(finite(0x1p64F, 0x1.fffffep63F));
    GRADGUARD_CHECK(!finite(0x1p64F, 0x1p64F));
    GRADGUARD_CHECK(finite(0.0F, kMax));
    // The rule is decided in FP64; FP32 multiplication must agree on both sides of its edge.
    for (float rate = 0x1p63F; rate < 0x1p65F; rate *= 1.003F) {
        const float edge = kMax / rate;
        for (const float decay : {std::nextafter(edge, 0.0F), edge, std::nextafter(edge, kInfinity)}) {
            const volatile float rounded = rate * decay;
            GRADGUARD_CHECK(reference::has_finite_product(rate, decay) == std::isfinite(rounded));
        }
    }
}

void betas() {
    const std::pair<float AdamWOptions::*, std::string_view> options[] = {{&AdamWOptions::beta1, "beta1"},
                                                                          {&AdamWOptions::beta2, "beta2"}};
    for (const auto& [option, name] : options) {
        for (const float good : {0.0F, -0.0F, kLeast, 0.9F, kBelowOne}) GRADGUARD_CHECK(accepts(option, name, good));
        for (const float bad : {1.0F, kAboveOne, -kLeast, -0.1F, kInfinity, -kInfinity, kNaN}) {
            GRADGUARD_CHECK(!accepts(option, name, bad));
        }
    }
}

void epsilons() {
    for (const float good : {kLeast, 1e-8F, 1.0F, kMax}) {
        GRADGUARD_CHECK(accepts(&AdamWOptions::epsilon, "epsilon", good));
        GRADGUARD_CHECK(!check_guard({.epsilon = good}));
    }
    for (const float bad : {0.0F, -0.0F, -kLeast, -1.0F, kInfinity, -kInfinity, kNaN}) {
        GRADGUARD_CHECK(!accepts(&AdamWOptions::epsilon, "epsilon", bad));
        GRADGUARD_CHECK(refuses(check_guard({.epsilon = bad}), ErrorKind::kInvalidOption, "guard_epsilon"));
    }
}

void scales() {
    const float above = std::nextafter(0x1p-128F, 1.0F);  // 1 / it is the greatest quotient that stays finite.
    for (const bool skip : {false, true}) {
        for (const float good : {0x1p-127F, 0x1p-126F, above, 1.0F, 3.0F, 0x1p126F, 0x1p127F, kMax}) {
            GRADGUARD_CHECK(!check_control({.gradient_scale = good, .skip_update = skip}));
        }
        for (const float bad :
             {0x1p-128F, std::nextafter(0x1p-128F, 0.0F), kLeast, 0.0F, -0.0F, -1.0F, kInfinity, -kInfinity, kNaN}) {
            GRADGUARD_CHECK(refuses(check_control({.gradient_scale = bad, .skip_update = skip}),
                                    ErrorKind::kInvalidOption, "gradient_scale"));
        }
    }
}

void reciprocals() {
    // 81 subnormal scales around 2^-128: the rule is what FP32 division does.
    for (std::uint32_t word = 0x00200000U - 40; word <= 0x00200000U + 40; ++word) {
        const float scale = std::bit_cast<float>(word);
        const volatile float reciprocal = 1.0F / scale;
        GRADGUARD_CHECK(reference::has_finite_reciprocal(scale) == std::isfinite(reciprocal));
    }
}

void max_norms() {
    GRADGUARD_CHECK(!check_guard({.max_norm = std::nullopt}));
    for (const float good : {0.0F, -0.0F, kLeast, 1.0F, kMax}) GRADGUARD_CHECK(!check_guard({.max_norm = good}));
    for (const float bad : {-kLeast, -1.0F, kInfinity, -kInfinity, kNaN}) {
        GRADGUARD_CHECK(refuses(check_guard({.max_norm = bad}), ErrorKind::kInvalidOption, "max_norm"));
    }
}

void first_broken_rule() {
    AdamWOptions options;
    options.weight_decay = -1.0F;
    options.beta2 = 1.0F;
    GRADGUARD_CHECK(refuses(check_options(options), ErrorKind::kInvalidOption, "beta2"));
}

constexpr Fact kFacts[] = {
    {"learning rate and weight decay are finite and not negative", rate_and_decay},
    {"the FP32 product of learning rate and weight decay is finite", product},
    {"betas lie in [0, 1)", betas},
    {"epsilons are finite and positive", epsilons},
    {"a loss scale of 2^-127 is accepted and 2^-128 refused, skipping or not", scales},
    {"the scale rule is that of FP32 division", reciprocals},
    {"max_norm is absent, or finite and not negative", max_norms},
    {"one broken rule is named, with its operand", first_broken_rule},
};

}  // namespace

std::span<const Fact> option_facts() { return kFacts; }

}  // namespace gradguard::reference_alone
