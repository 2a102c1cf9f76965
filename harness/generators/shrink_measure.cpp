// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "harness/generators/float_format.h"
#include "harness/generators/shrinking.h"

namespace gradguard::harness {
namespace {

enum Part : std::size_t {
    kLater,
    kEntries,
    kElements,
    kStates,
    kLayout,
    kOptions,
    kDTypes,
    kFillRanks,
    kOverrides,
    kNumbers,
    kRest,
};

std::uint64_t of_float(float x, float plain) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return bits == std::bit_cast<std::uint32_t>(plain) ? 0 : 1 + complexity(bits, DType::kF32);
}

std::uint64_t of_count(std::uint64_t x) {
    return 64 * static_cast<std::uint64_t>(std::bit_width(x)) + static_cast<std::uint64_t>(std::popcount(x));
}

std::uint64_t of_layout(const TensorRecipe& tensor) {
    std::uint64_t sum = tensor.shape.size() == 1 ? 0 : 1 + tensor.shape.size();
    if (tensor.strides) sum += 100;
    sum += of_count(tensor.byte_offset) + of_count(static_cast<std::uint64_t>(std::abs(tensor.slack_bytes)));
    return sum + tensor.queue;
}

std::uint64_t of_options(const CaseRecipe& recipe) {
    const AdamWOptions plain;
    const AdamWOptions& o = recipe.options;
    std::uint64_t sum = of_float(o.learning_rate, plain.learning_rate) + of_float(o.beta1, plain.beta1) +
                        of_float(o.beta2, plain.beta2) + of_float(o.epsilon, plain.epsilon) +
                        of_float(o.weight_decay, 0.0F) + (o.amsgrad ? 1 : 0) + (o.maximize ? 1 : 0);
    const GradientGuardOptions& guard = recipe.guard;
    sum += guard.max_norm ? 1 + of_float(*guard.max_norm, 1.0F) : 0;
    sum += of_float(guard.epsilon, GradientGuardOptions{}.epsilon);
    sum += guard.nonfinite == NonFinitePolicy::kError ? 1 : 0;
    const auto of_control = [](const StepControl& control) {
        return of_float(control.gradient_scale, 1.0F) + (control.skip_update ? 1 : 0);
    };
    sum += of_control(recipe.control);
    for (const LaterRecipe& later : recipe.later) sum += of_control(later.control);
    return sum;
}

void add_array(Measure& measure, const ArrayRecipe& array, DType dtype) {
    constexpr std::array<std::uint64_t, kFills> kRanks{0, 1, 2, 2, 2, 3, 2, 3, 3, 4, 2};
    measure[kFillRanks] += kRanks[static_cast<std::size_t>(array.fill)];
    measure[kOverrides] += array.overrides.size();
    for (const Override& o : array.overrides) measure[kNumbers] += complexity(o.bits, dtype) + of_count(o.index);
    measure[kRest] += static_cast<std::uint64_t>(std::abs(array.exponent)) + (array.absolute ? 1 : 0) +
                      (array.bad ? 1 : 0) + (array.seed != 0 ? 1 : 0);
}

}  // namespace

std::uint64_t complexity(std::uint32_t bits, DType dtype) {
    const FloatFormat& format = format_of(dtype);
    const std::uint32_t magnitude = bits & (format.sign() - 1);
    const std::uint64_t sign = bits != magnitude ? 1 : 0;
    if (magnitude == 0) return sign;
    if (magnitude > format.infinity()) {
        const std::uint32_t quiet = format.infinity() | format.least_normal() >> 1U;
        return 1001 + sign + (magnitude == quiet ? 0 : 1 + static_cast<std::uint64_t>(std::popcount(magnitude)));
    }
    if (magnitude == format.infinity()) return 1000 + sign;
    const std::uint32_t fraction = magnitude & (format.least_normal() - 1);
    const int exponent = static_cast<int>(magnitude >> format.mantissa_bits) - 1 + format.least_exponent;
    const auto digits = fraction == 0 ? 0U : format.mantissa_bits - static_cast<unsigned>(std::countr_zero(fraction));
    return 1 + sign + static_cast<std::uint64_t>(std::abs(exponent)) + 8ULL * digits +
           static_cast<std::uint64_t>(std::popcount(fraction));
}

std::vector<const TensorRecipe*> tensors_of(const EntryRecipe& entry) {
    std::vector<const TensorRecipe*> all{&entry.parameters, &entry.gradients};
    if (!entry.state) return all;
    all.push_back(&entry.state->first_moment);
    all.push_back(&entry.state->second_moment);
    if (entry.state->max_second_moment) all.push_back(&*entry.state->max_second_moment);
    return all;
}

std::vector<TensorRecipe*> tensors_of(EntryRecipe& entry) {
    std::vector<TensorRecipe*> all;
    for (const TensorRecipe* tensor : tensors_of(std::as_const(entry)))
        all.push_back(const_cast<TensorRecipe*>(tensor));
    return all;
}

Measure measure_of(const CaseRecipe& recipe) {
    Measure measure{};
    measure[kLater] = recipe.later.size();
    measure[kEntries] = recipe.entries.size();
    for (std::size_t i = 0; i < recipe.entries.size(); ++i) {
        const EntryRecipe& entry = recipe.entries[i];
        for (const TensorRecipe* tensor : tensors_of(entry)) {
            measure[kElements] += count_of(*tensor);
            measure[kLayout] += of_layout(*tensor);
            add_array(measure, tensor->values, tensor->dtype);
            measure[kDTypes] += tensor->dtype == DType::kF32 ? 0 : 1;
        }
        if (entry.state) {
            measure[kStates] += entry.state->max_second_moment ? 2 : 1;
            measure[kRest] += of_count(entry.state->step);
        }
        for (const LaterRecipe& later : recipe.later) {
            add_array(measure, later.gradients.at(i), entry.gradients.dtype);
        }
    }
    measure[kOptions] = of_options(recipe);
    measure[kRest] += recipe.schedule_seed != 0 ? 1 : 0;
    return measure;
}

}  // namespace gradguard::harness
