// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "harness/generators/drawing.h"
#include "harness/generators/float_format.h"

namespace gradguard::harness {
namespace {

constexpr std::uint64_t kLastStep = std::numeric_limits<std::uint64_t>::max();

/// What the arrays of one case have in common.
struct Scene {
    const CaseShape& shape;
    int exponent = 0;  ///< The effective gradient is about 2^exponent in size.
    AdamWOptions options;
    std::uint64_t later_steps = 0;
};

struct GradientDraw {
    ArrayRecipe array;
    int exponent = 0;  ///< The stored values are at most about 2^exponent in size.
};

/// `exponent`: what an ordinary stored value should have.
GradientDraw draw_gradient(const Scene& scene, DType dtype, int exponent, Random& random) {
    constexpr std::array<Fill, 25> kFillsByWeight{
        Fill::kOrdinary,    Fill::kOrdinary,    Fill::kOrdinary,   Fill::kOrdinary,   Fill::kOrdinary,
        Fill::kOrdinary,    Fill::kOrdinary,    Fill::kOrdinary,   Fill::kOrdinary,   Fill::kHeavyTailed,
        Fill::kHeavyTailed, Fill::kHeavyTailed, Fill::kMountain,   Fill::kMountain,   Fill::kOneHot,
        Fill::kOneHot,      Fill::kThresholds,  Fill::kThresholds, Fill::kCancelling, Fill::kCancelling,
        Fill::kSubnormal,   Fill::kHuge,        Fill::kAnyBits,    Fill::kAnyBits,    Fill::kZero};
    const FloatFormat& format = format_of(dtype);
    GradientDraw draw;
    draw.array.fill = random.pick(kFillsByWeight);
    draw.array.seed = random.next();
    draw.array.exponent = std::clamp(exponent, format.least_exponent - 4, format.greatest_exponent - 3);
    draw.exponent = draw.array.exponent;
    if (draw.array.fill == Fill::kAnyBits) draw.array.bad = bad_allowed(scene.shape) && random.percent(10);
    switch (draw.array.fill) {
        case Fill::kHeavyTailed:
            draw.exponent += 6;
            break;
        case Fill::kMountain:
            draw.exponent += 3;
            break;
        case Fill::kSubnormal:
            draw.exponent = format.least_exponent - 1;
            break;
        case Fill::kThresholds:
        case Fill::kHuge:
        case Fill::kAnyBits:
            draw.exponent = format.greatest_exponent - 1;
            break;
        default:
            break;
    }
    return draw;
}

std::uint32_t bad_bits(DType dtype, Random& random) {
    const FloatFormat& format = format_of(dtype);
    const std::uint64_t word = random.next();
    const std::uint32_t sign = (word >> 63U) != 0 ? format.sign() : 0;
    if (word % 5 < 2) return sign | format.infinity();
    if (word % 5 == 2) return sign | format.infinity() | format.least_normal() >> 1U;  // quiet, no payload
    return sign | format.infinity() | (static_cast<std::uint32_t>(word >> 8U) % (format.least_normal() - 1) + 1);
}

std::uint64_t draw_place(std::uint64_t n, Random& random) {
    const std::uint64_t word = random.next();
    return word % 4 == 0 ? 0 : word % 4 == 1 ? n - 1 : (word >> 8U) % n;
}

/// An array of the old state or of the parameters. `exponent`: of an ordinary value.
ArrayRecipe draw_old(const Scene& scene, int exponent, std::uint64_t n, Random& random) {
    ArrayRecipe array;
    array.seed = random.next();
    array.exponent = std::clamp(exponent, -140, 124);
    const bool any = scene.shape.any_bits_in_state;
    const std::uint64_t kind = random.below(100);
    constexpr std::array<Fill, 6> kTame{Fill::kHeavyTailed, Fill::kMountain, Fill::kCancelling,
                                        Fill::kOneHot,      Fill::kZero,     Fill::kHeavyTailed};
    constexpr std::array<Fill, 5> kWild{Fill::kThresholds, Fill::kSubnormal, Fill::kHuge, Fill::kAnyBits,
                                        Fill::kAnyBits};
    array.fill = kind < 60 ? Fill::kOrdinary : kind < 82 || !any ? random.pick(kTame) : random.pick(kWild);
    array.bad = any && array.fill == Fill::kAnyBits && random.percent(50);
    if (!any || n == 0 || kind % 16 > 1) return array;
    // Something bad, or the other zero: of two zeros the running maximum is +0.
    const std::uint64_t place = draw_place(n, random);
    const std::uint32_t bits = kind % 16 == 0 ? bad_bits(DType::kF32, random) : format_of(DType::kF32).sign();
    array.overrides.push_back({place, bits});
    return array;
}

std::uint64_t draw_step(std::uint64_t n, const Scene& scene, Random& random) {
    const std::uint64_t kind = random.below(100);
    std::uint64_t step = 0;
    if (kind < 40) {
        step = 1 + random.below(4);
    } else if (kind < 58) {
        step = 1 + random.below(2000);
    } else if (kind < 80) {
        // Where a step count kept as FP32 stops, and where 2^24 times that FP32 gap does.
        constexpr std::array<std::uint64_t, 4> kPlaces{1ULL << 24U, 1ULL << 25U, 1ULL << 31U, 1ULL << 32U};
        // One draw to a statement: the order of operands is the compiler's choice.
        const std::uint64_t place = random.pick(kPlaces);
        step = place + random.below(5) - 2;
    } else if (kind < 95) {
        const std::uint64_t word = random.next();
        step = 1 + (word >> (1 + random.below(62)));
    } else {
        step = kLastStep - 1;
    }
    if (n == 0 && kind == 99) return kLastStep;  // An empty entry does not advance.
    return std::min(step, kLastStep - 1 - scene.later_steps);
}

/// One second moment in twelve has signs: its root is NaN.
void draw_state(EntryRecipe& entry, std::uint64_t n, const Scene& scene, Random& random) {
    StateRecipe& state = entry.state.emplace();
    state.step = draw_step(n, scene, random);
    const auto& shape = entry.parameters.shape;
    place(state.first_moment, DType::kF32, shape, random);
    place(state.second_moment, DType::kF32, shape, random);
    state.first_moment.values = draw_old(scene, scene.exponent + random.between(-3, 1), n, random);
    const int square = 2 * scene.exponent;
    state.second_moment.values = draw_old(scene, square + random.between(-6, 1), n, random);
    const bool tame = !scene.shape.any_bits_in_state;
    state.second_moment.values.absolute = tame || !random.percent(8);
    if (!scene.options.amsgrad) return;
    TensorRecipe& maximum = state.max_second_moment.emplace();
    place(maximum, DType::kF32, shape, random);
    maximum.values = draw_old(scene, square + random.between(-5, 3), n, random);
    maximum.values.absolute = tame || !random.percent(8);
    // Beside a negative number a maximum of -0 stays -0; it must not become the +0 of two zeros.
    if (state.second_moment.values.absolute || n == 0) return;
    maximum.values.overrides.push_back({draw_place(n, random), format_of(DType::kF32).sign()});
}

EntryRecipe draw_entry(std::uint64_t n, const Scene& scene, Random& random) {
    EntryRecipe entry;
    const std::vector<std::uint64_t> shape = draw_dimensions(n, random);
    place(entry.gradients, draw_dtype(scene.shape.abilities, random), shape, random);
    if (scene.shape.operation == Operation::kStatistics) {
        // A scan reads gradients only.
        entry.parameters.shape = shape;
        return entry;
    }
    place(entry.parameters, DType::kF32, shape, random);
    // Parameters about as large as the change of them in a third of the cases.
    const float rate = scene.options.learning_rate;
    const bool small = random.percent(35) && rate > 0;
    entry.parameters.values = draw_old(scene, small ? exponent_of(rate) + 1 : random.between(-5, 1), n, random);
    if (!random.percent(28)) draw_state(entry, n, scene, random);
    return entry;
}

/// In one of eight cases one or two values are bad, anywhere in the group.
void put_bad_values(const std::vector<std::uint64_t>& sizes, const std::vector<ArrayRecipe*>& arrays,
                    const std::vector<EntryRecipe>& entries, const StepControl& control, Random& random) {
    if (sizes.empty() || !random.percent(13)) return;
    for (std::uint64_t times = 1 + random.below(2); times > 0; --times) {
        const std::size_t at = random.below(sizes.size());
        if (sizes[at] == 0) continue;
        const DType dtype = entries[at].gradients.dtype;
        std::uint32_t bits = bad_bits(dtype, random);
        // Finite as stored, infinite once unscaled.
        const bool overflows = dtype != DType::kF16 && control.gradient_scale < 0.9F;
        if (overflows && random.percent(50)) bits = format_of(dtype).greatest();
        arrays[at]->overrides.push_back({draw_place(sizes[at], random), bits});
    }
}

/// Fills the gradients of one step; returns about what the norm will be.
double draw_gradients(const Scene& scene, const StepControl& control, const std::vector<std::uint64_t>& sizes,
                      const std::vector<EntryRecipe>& entries, const std::vector<ArrayRecipe*>& arrays,
                      Random& random) {
    const int scale = exponent_of(control.gradient_scale);
    double sum = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        // One in twelve ignores the loss scale.
        const int exponent = random.below(12) == 0 ? random.between(-60, 40) : scene.exponent + scale;
        const GradientDraw draw =
            draw_gradient(scene, entries[i].gradients.dtype, exponent + random.between(-1, 1), random);
        *arrays[i] = draw.array;
        if (draw.array.fill == Fill::kZero) continue;
        const auto n = static_cast<double>(draw.array.fill == Fill::kOneHot ? 4 : sizes[i]);
        sum += n * std::ldexp(1.0, 2 * (draw.exponent - scale));
    }
    if (bad_allowed(scene.shape)) put_bad_values(sizes, arrays, entries, control, random);
    return std::sqrt(sum);
}

LaterRecipe draw_later(const Scene& scene, const CaseRecipe& recipe, const std::vector<std::uint64_t>& sizes,
                       Random& random) {
    LaterRecipe later;
    later.control = draw_control(scene.shape, random);
    if (random.percent(60)) later.control.gradient_scale = recipe.control.gradient_scale;
    later.gradients.resize(sizes.size());
    std::vector<ArrayRecipe*> arrays;
    for (ArrayRecipe& array : later.gradients) arrays.push_back(&array);
    draw_gradients(scene, later.control, sizes, recipe.entries, arrays, random);
    return later;
}

}  // namespace

DType draw_dtype(const Abilities& abilities, Random& random) {
    constexpr std::array<DType, 10> kByWeight{DType::kF32, DType::kF32, DType::kF32,  DType::kF32,  DType::kF16,
                                              DType::kF16, DType::kF16, DType::kBF16, DType::kBF16, DType::kBF16};
    const DType drawn = random.pick(kByWeight);
    if (abilities.takes(drawn)) return drawn;
    for (const DType dtype : kAllDTypes) {
        if (abilities.takes(dtype)) return dtype;
    }
    return DType::kF32;
}

CaseRecipe draw_ordinary(const CaseShape& shape, Random& random) {
    CaseRecipe recipe;
    recipe.operation = shape.operation;
    Scene scene{shape, random.percent(85) ? random.between(-12, 3) : random.between(-50, 30), {}, 0};
    recipe.control = draw_control(shape, random);
    const bool steps = shape.operation != Operation::kStatistics;
    if (steps) recipe.options = draw_options(shape, scene.exponent, random);
    scene.options = recipe.options;
    if (steps && shape.max_later_steps != 0 && random.percent(60))
        scene.later_steps = 1 + random.below(shape.max_later_steps);
    const std::vector<std::uint64_t> sizes = draw_sizes(shape, random);
    recipe.entries.reserve(sizes.size());
    for (const std::uint64_t n : sizes) recipe.entries.push_back(draw_entry(n, scene, random));
    std::vector<ArrayRecipe*> arrays;
    for (EntryRecipe& entry : recipe.entries) arrays.push_back(&entry.gradients.values);
    const double norm = draw_gradients(scene, recipe.control, sizes, recipe.entries, arrays, random);
    if (shape.operation == Operation::kGuardedStep) recipe.guard = draw_guard(shape, norm, random);
    for (std::uint64_t i = 0; i < scene.later_steps; ++i) {
        recipe.later.push_back(draw_later(scene, recipe, sizes, random));
    }
    recipe.schedule_seed = random.next();
    return recipe;
}

}  // namespace gradguard::harness
