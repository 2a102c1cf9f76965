// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <cmath>

#include "harness/generators/drawing.h"
#include "harness/generators/float_format.h"
#include "reference/fp64/option_rules.h"

namespace gradguard::harness {
namespace {

constexpr float kGreatest = 0x1.fffffep127F;
constexpr float kLeast = 0x1p-149F;
/// 1 - 2^-24, 1 - 2^-23, ..: beta^t stays near 1 up to steps near 2^24.
constexpr std::array<float, 4> kBelowOne{0x1.fffffep-1F, 0x1.fffffcp-1F, 0x1.fffff8p-1F, 0x1.fffp-1F};

float draw_learning_rate(Random& random) {
    constexpr std::array<float, 4> kUsual{1e-3F, 0.1F, 0.01F, 3e-4F};
    const std::uint64_t kind = random.below(20);
    if (kind < 8) return random.pick(kUsual);
    if (kind < 18) return draw_number(random, -10, 0);
    constexpr std::array<float, 8> kEdge{0.0F, -0.0F, kLeast, 0x1p-126F, 1e-30F, 1e30F, kGreatest, 1.0F};
    return random.pick(kEdge);
}

float draw_beta(Random& random, float usual) {
    const std::uint64_t kind = random.below(20);
    if (kind < 9) return usual;
    if (kind < 15) {
        // 1 - 2^-e * [1, 2) or a number in [0, 1).
        const float gap = draw_number(random, -12, -2);
        return random.percent(60) ? 1.0F - gap : gap;
    }
    if (kind < 18) return random.pick(kBelowOne);
    constexpr std::array<float, 6> kEdge{0.0F, 0.0F, -0.0F, 0.5F, kLeast, 0.25F};
    return random.pick(kEdge);
}

float draw_epsilon(Random& random, float usual, int exponent) {
    const std::uint64_t kind = random.below(20);
    if (kind < 7) return usual;
    if (kind < 14) return draw_number(random, exponent - 5, exponent + 2);
    if (kind < 17) return draw_number(random, -30, -5);
    constexpr std::array<float, 8> kEdge{kLeast, 0x1p-126F, 1e-8F, 1e-30F, 1.0F, 1e30F, kGreatest, 0x1p-75F};
    return random.pick(kEdge);
}

float draw_weight_decay(Random& random) {
    constexpr std::array<float, 4> kUsual{1e-4F, 0.01F, 0.1F, 0.3F};
    const std::uint64_t kind = random.below(20);
    if (kind < 2) return 0.0F;
    if (kind < 8) return random.pick(kUsual);
    if (kind < 18) return draw_number(random, -7, 2);
    constexpr std::array<float, 6> kEdge{-0.0F, kLeast, 1e-30F, 1e30F, kGreatest, 1000.0F};
    return random.pick(kEdge);
}

float draw_scale(Random& random) {
    constexpr std::array<float, 5> kUsual{1.0F, 3.0F, 65536.0F, 128.0F, 1.0F};
    const std::uint64_t kind = random.below(20);
    if (kind < 7) return random.pick(kUsual);
    if (kind < 14) return draw_number(random, -2, 16);
    if (kind < 16) return std::bit_cast<float>(encode(kF32Format, random.between(-20, 40), 0));
    if (kind < 17) return draw_number(random, -126, 127);
    constexpr std::array<float, 7> kEdge{0x1p-112F, 0x1p-113F, kGreatest, 0x1p-127F, 0x1p-126F, 0x1p127F, 5.0F};
    return random.pick(kEdge);
}

}  // namespace

float draw_number(Random& random, int low, int high) {
    const std::uint64_t word = random.next();
    const int exponent = low + static_cast<int>((word >> 32U) % static_cast<std::uint64_t>(high - low + 1));
    const std::uint32_t bits = encode(kF32Format, exponent, static_cast<std::uint32_t>(word) & 0x7FFFFFU);
    return std::bit_cast<float>(bits == 0 ? 1U : bits);
}

int exponent_of(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const auto exponent = static_cast<int>(bits >> 23U & 0xFFU);
    return exponent != 0 ? exponent - 127 : 31 - std::countl_zero((bits & 0x7FFFFFU) | 1U) - 149;
}

AdamWOptions draw_options(const CaseShape& shape, int exponent, Random& random) {
    AdamWOptions options;
    options.learning_rate = draw_learning_rate(random);
    options.beta1 = draw_beta(random, 0.9F);
    options.beta2 = draw_beta(random, 0.999F);
    options.epsilon = draw_epsilon(random, 1e-5F, exponent);
    options.weight_decay = draw_weight_decay(random);
    if (!reference::has_finite_product(options.learning_rate, options.weight_decay)) options.weight_decay = 0.01F;
    if (!reference::has_finite_product(options.learning_rate, options.weight_decay)) options.learning_rate = 0.1F;
    options.amsgrad = shape.abilities.amsgrad && random.percent(45);
    options.maximize = shape.abilities.maximize && random.percent(30);
    return options;
}

StepControl draw_control(const CaseShape& shape, Random& random) {
    StepControl control;
    control.gradient_scale = draw_scale(random);
    // A small scale makes infinities out of finite gradients.
    if (!bad_allowed(shape) && control.gradient_scale < 1.0F) control.gradient_scale = 3.0F;
    control.skip_update = shape.operation != Operation::kStatistics && shape.abilities.skips && random.percent(3);
    return control;
}

GradientGuardOptions draw_guard(const CaseShape& shape, double norm, Random& random) {
    GradientGuardOptions guard;
    const auto bounded = static_cast<float>(norm > 0x1p100 ? 0x1p100 : norm < 0x1p-120 ? 0x1p-120 : norm);
    const std::uint64_t kind = random.below(20);
    if (kind < 3) {
        guard.max_norm.reset();
    } else if (kind < 5) {
        guard.max_norm = 1.0F;
    } else if (kind < 13) {
        // Well below the norm: clipping is at work.
        guard.max_norm = bounded * draw_number(random, -7, -2);
    } else if (kind < 16) {
        guard.max_norm = bounded * draw_number(random, -1, 3);
    } else if (kind < 17) {
        guard.max_norm = draw_number(random, -149, 127);
    } else {
        constexpr std::array<float, 6> kEdge{0.0F, 0.0F, -0.0F, kGreatest, kLeast, 0x1p-126F};
        guard.max_norm = random.pick(kEdge);
    }
    guard.epsilon = draw_epsilon(random, 1e-6F, exponent_of(bounded));
    if (shape.abilities.skips && random.percent(20)) guard.nonfinite = NonFinitePolicy::kError;
    return guard;
}

}  // namespace gradguard::harness
