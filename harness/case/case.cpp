// SPDX-License-Identifier: Apache-2.0
#include "harness/case/case.h"

#include <algorithm>
#include <bit>

#include "reference/model/validation.h"

namespace gradguard::harness {
namespace {

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

bool same_options(const AdamWOptions& a, const AdamWOptions& b) {
    return same_bits(a.learning_rate, b.learning_rate) && same_bits(a.beta1, b.beta1) && same_bits(a.beta2, b.beta2) &&
           same_bits(a.epsilon, b.epsilon) && same_bits(a.weight_decay, b.weight_decay) && a.amsgrad == b.amsgrad &&
           a.maximize == b.maximize;
}

bool same_control(const StepControl& a, const StepControl& b) {
    return same_bits(a.gradient_scale, b.gradient_scale) && a.skip_update == b.skip_update;
}

bool same_guard(const GradientGuardOptions& a, const GradientGuardOptions& b) {
    if (a.max_norm.has_value() != b.max_norm.has_value()) return false;
    return (!a.max_norm || same_bits(*a.max_norm, *b.max_norm)) && same_bits(a.epsilon, b.epsilon) &&
           a.nonfinite == b.nonfinite;
}

bool same_later(const LaterStep& a, const LaterStep& b) {
    return same_control(a.control, b.control) && a.gradients == b.gradients;
}

}  // namespace

bool is_readable(const CaseTensor& tensor) {
    reference::TensorDescription description;
    description.layout = tensor.layout;
    description.storage_bytes = tensor.storage_bytes;
    return std::ranges::all_of(reference::tensor_rules(),
                               [&](const reference::TensorRule& rule) { return rule.accepts(description); });
}

std::uint64_t count(const CaseTensor& tensor) {
    std::uint64_t product = 1;
    for (const std::uint64_t size : tensor.layout.shape) product *= size;
    return product;
}

bool identical(const Case& a, const Case& b) {
    return a.operation == b.operation && a.entries == b.entries && same_options(a.options, b.options) &&
           same_control(a.control, b.control) && same_guard(a.guard, b.guard) &&
           std::ranges::equal(a.later, b.later, same_later) && a.schedule_seed == b.schedule_seed &&
           a.property == b.property && a.subject == b.subject;
}

}  // namespace gradguard::harness
