// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "harness/generators/drawing.h"
#include "reference/fp64/coefficients.h"

namespace gradguard::harness {
namespace {

/// e such that 2^e lies in [x / sqrt(2), x * sqrt(2)]: the power of two nearest to x > 0.
int nearest_exponent(double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    return fraction >= 0x1.6a09e667f3bcdp-1 ? exponent : exponent - 1;
}

/// e such that 2^e lies in [x, 2 x).
int exponent_above(double x) {
    int exponent = 0;
    return std::frexp(x, &exponent) == 0.5 ? exponent - 1 : exponent;
}

AdamWOptions draw_options_in_range(const CaseShape& shape, Random& random) {
    constexpr std::array<float, 3> kBeta1{0.9F, 0.5F, 0.95F};
    constexpr std::array<float, 3> kBeta2{0.999F, 0.99F, 0.95F};
    AdamWOptions options;
    options.learning_rate = draw_number(random, -13, -4);
    options.beta1 = random.percent(40) ? random.pick(kBeta1) : 1.0F - draw_number(random, -6, -2);
    options.beta2 = random.percent(40) ? random.pick(kBeta2) : 1.0F - draw_number(random, -10, -2);
    options.weight_decay = draw_number(random, -10, -2);
    options.amsgrad = shape.abilities.amsgrad && random.percent(45);
    options.maximize = shape.abilities.maximize && random.percent(30);
    return options;
}

/// Mean of x^2 for x uniform in [1, 1.5).
constexpr double kMeanSquare = (1.5 * 1.5 * 1.5 - 1.0) / 1.5;

/// A tensor with kBalanced values. An odd seed turns the signs.
void give(TensorRecipe& tensor, const std::vector<std::uint64_t>& shape, int exponent, bool turned, Random& random) {
    place(tensor, DType::kF32, shape, random);
    tensor.values.fill = Fill::kBalanced;
    tensor.values.exponent = exponent;
    tensor.values.seed = (random.next() & ~std::uint64_t{1}) | (turned ? 1U : 0U);
}

/// The old values whose share in each line is about that of a gradient of effective size `g` = 2^k * [1, 1.5) * clip.
/// Why that keeps summands within a factor of 4: the group's norm, so the clip factor, is known to
/// [1 / 1.26, 1.5 / 1.26], so the effective gradient to g * [0.84, 1.89] and its square to g^2 * [0.70, 3.56] (both
/// ends not at once: all alike, or one against many). beta1 m = (1 - beta1) g * [0.71, 1.41] [1, 1.5] / [0.84, 1.89]
/// and beta2 v = (1 - beta2) g^2 * 0.9 [1, 2] [1, 1.5] / [0.70, 3.56] lie within.
void draw_old_values(EntryRecipe& entry, double g, const AdamWOptions& options, Random& random) {
    const double beta1 = options.beta1;
    const double beta2 = options.beta2;
    const auto& shape = entry.parameters.shape;
    StateRecipe& state = entry.state.emplace();
    state.step = random.percent(80) ? 1 + random.below(1000) : (1ULL << 24U) - 2 + random.below(5);
    const int m_exponent = nearest_exponent((1 - beta1) * g / beta1);
    const int v_exponent = exponent_above(0.9 * (1 - beta2) * g * g / beta2);
    give(state.first_moment, shape, m_exponent, options.maximize, random);
    give(state.second_moment, shape, v_exponent, false, random);
    state.second_moment.values.absolute = true;
    double v = 1.25 * beta2 * std::ldexp(1.0, v_exponent) + (1 - beta2) * kMeanSquare * g * g;
    if (options.amsgrad) {
        TensorRecipe& maximum = state.max_second_moment.emplace();
        give(maximum, shape, nearest_exponent(v / 1.25), false, random);
        maximum.values.absolute = true;
        v *= 1.1;
    }
    const double m = 1.25 * (beta1 * std::ldexp(1.0, m_exponent) + (1 - beta1) * g);
    const double root = std::sqrt(v * reference::inverse_bias(options.beta2, state.step + 1));
    const double ratio = m * reference::inverse_bias(options.beta1, state.step + 1) / (root + options.epsilon);
    give(entry.parameters, shape, nearest_exponent(options.learning_rate * ratio / 1.25), random.percent(50), random);
}

}  // namespace

CaseRecipe draw_balanced(const CaseShape& shape, Random& random) {
    CaseRecipe recipe;
    recipe.operation = shape.operation;
    const bool statistics = shape.operation == Operation::kStatistics;
    const AdamWOptions options = draw_options_in_range(shape, random);
    if (!statistics) recipe.options = options;
    constexpr std::array<float, 4> kScales{1.0F, 3.0F, 128.0F, 65536.0F};
    recipe.control.gradient_scale = random.percent(50) ? random.pick(kScales) : draw_number(random, 0, 16);
    const double r = reference::reciprocal_scale(recipe.control.gradient_scale);

    double sum = 0;
    for (const std::uint64_t n : draw_sizes(shape, random)) {
        EntryRecipe& entry = recipe.entries.emplace_back();
        const std::vector<std::uint64_t> dimensions = draw_dimensions(n, random);
        const int exponent = random.between(-8, 8);
        give(entry.gradients, dimensions, exponent, false, random);
        entry.gradients.byte_offset = 0;
        entry.gradients.dtype = draw_dtype(shape.abilities, random);
        entry.parameters.shape = dimensions;
        const double size = std::ldexp(r, exponent);
        sum += static_cast<double>(n) * kMeanSquare * size * size;
    }
    const double norm = std::sqrt(sum);
    double clip = 1.0;
    if (shape.operation == Operation::kGuardedStep) {
        recipe.guard.max_norm.reset();
        recipe.guard.epsilon = 0x1p-60F;  // No part of the norm, however small that is.
        if (norm > 0 && random.percent(50)) {
            clip = draw_number(random, -4, -2);
            recipe.guard.max_norm = static_cast<float>(clip * norm);
        }
    }
    if (statistics) return recipe;
    // Epsilon beside a root of about the first entry's gradient, or far below.
    const double first =
        recipe.entries.empty() ? 1.0 : std::ldexp(r * clip, recipe.entries[0].gradients.values.exponent);
    const int place = exponent_of(static_cast<float>(first));
    recipe.options.epsilon = random.percent(50) ? 1e-10F : draw_number(random, place - 6, place - 1);
    for (EntryRecipe& entry : recipe.entries) {
        draw_old_values(entry, std::ldexp(r * clip, entry.gradients.values.exponent), recipe.options, random);
    }
    const std::uint64_t later = shape.max_later_steps == 0 ? 0 : random.below(shape.max_later_steps + 1ULL);
    for (std::uint64_t i = 0; i < later; ++i) {
        LaterRecipe& step = recipe.later.emplace_back();
        step.control = recipe.control;
        for (const EntryRecipe& entry : recipe.entries) {
            step.gradients.push_back(entry.gradients.values);
            step.gradients.back().seed = random.next() & ~std::uint64_t{1};
        }
    }
    recipe.schedule_seed = random.next();
    return recipe;
}

}  // namespace gradguard::harness
