// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "harness/generators/shrinking.h"

namespace gradguard::harness {
namespace {

std::vector<float> simpler_floats(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    std::vector<float> simpler{1.0F, 0.5F, 2.0F, 0.0F};
    for (const std::uint32_t kept :
         {0xFF800000U, 0xFFC00000U, 0xFFF00000U, 0xFFFF0000U, 0xFFFFF000U, 0xFFFFFF00U, 0x7FFFFFFFU}) {
        simpler.push_back(std::bit_cast<float>(bits & kept));
    }
    // Half way to 1, by the exponent.
    const std::uint32_t half = ((bits & 0x7F800000U) + 0x3F800000U) / 2 & 0x7F800000U;
    simpler.push_back(std::bit_cast<float>((bits & 0x807FFFFFU) | half));
    return simpler;
}

/// One proposal for each simpler value of an option; `at` finds it in a recipe.
template <class At>
void propose_float(Candidates& candidates, float now, float plain, At&& at) {
    candidates.propose([&](CaseRecipe& r) { at(r) = plain; });
    for (const float simpler : simpler_floats(now)) {
        candidates.propose([&](CaseRecipe& r) { at(r) = simpler; });
    }
}

void without_amsgrad(CaseRecipe& recipe) {
    recipe.options.amsgrad = false;
    for (EntryRecipe& entry : recipe.entries) {
        if (entry.state) entry.state->max_second_moment.reset();
    }
}

void plain_controls(CaseRecipe& recipe) {
    recipe.control.gradient_scale = 1.0F;
    for (LaterRecipe& later : recipe.later) later.control.gradient_scale = 1.0F;
}

}  // namespace

void propose_options(Candidates& candidates) {
    const AdamWOptions plain;
    const CaseRecipe& now = candidates.original();
    candidates.propose([&](CaseRecipe& r) {
        without_amsgrad(r);
        r.options = plain;
        r.options.weight_decay = 0.0F;
        plain_controls(r);
        r.guard = {};
        r.guard.max_norm.reset();
    });
    candidates.propose([&](CaseRecipe& r) {
        without_amsgrad(r);
        r.options = plain;
        r.options.weight_decay = 0.0F;
    });
    candidates.propose(plain_controls);
    candidates.propose([](CaseRecipe& r) { r.guard.max_norm.reset(); });
    candidates.propose([](CaseRecipe& r) { r.guard.nonfinite = NonFinitePolicy::kSkip; });
    candidates.propose(without_amsgrad);
    candidates.propose([](CaseRecipe& r) { r.options.maximize = false; });
    candidates.propose([](CaseRecipe& r) { r.control.skip_update = false; });
    propose_float(candidates, now.options.learning_rate, plain.learning_rate,
                  [](CaseRecipe& r) -> float& { return r.options.learning_rate; });
    propose_float(candidates, now.options.beta1, plain.beta1, [](CaseRecipe& r) -> float& { return r.options.beta1; });
    propose_float(candidates, now.options.beta2, plain.beta2, [](CaseRecipe& r) -> float& { return r.options.beta2; });
    propose_float(candidates, now.options.epsilon, plain.epsilon,
                  [](CaseRecipe& r) -> float& { return r.options.epsilon; });
    propose_float(candidates, now.options.weight_decay, 0.0F,
                  [](CaseRecipe& r) -> float& { return r.options.weight_decay; });
    propose_float(candidates, now.guard.epsilon, GradientGuardOptions{}.epsilon,
                  [](CaseRecipe& r) -> float& { return r.guard.epsilon; });
    if (now.guard.max_norm) {
        propose_float(candidates, *now.guard.max_norm, 1.0F, [](CaseRecipe& r) -> float& { return *r.guard.max_norm; });
    }
    propose_float(candidates, now.control.gradient_scale, 1.0F,
                  [](CaseRecipe& r) -> float& { return r.control.gradient_scale; });
    for (std::size_t i = 0; i < now.later.size(); ++i) {
        propose_float(candidates, now.later[i].control.gradient_scale, 1.0F,
                      [&](CaseRecipe& r) -> float& { return r.later[i].control.gradient_scale; });
        candidates.propose([&](CaseRecipe& r) { r.later[i].control.skip_update = false; });
    }
}

}  // namespace gradguard::harness
