// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "reference/exact/float_bits.h"
#include "reference/model/update.h"
#include "tests/support/values.h"

namespace gradguard::testing {

/// Words of a fixed sequence (splitmix64), for loops too long for a property.
class Words {
  public:
    explicit Words(std::uint64_t seed) : state_(seed) {}
    std::uint32_t next() {
        state_ += 0x9E3779B97F4A7C15ULL;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
        return static_cast<std::uint32_t>((z ^ (z >> 31U)) >> 32U);
    }

  private:
    std::uint64_t state_;
};

/// An element with its coefficients.
struct Element {
    float raw = 0.0F;
    reference::ElementState<float> old;
    reference::UpdateCoefficients c;
};

/// Options and control of every kind that validation lets through.
inline reference::UpdateCoefficients any_coefficients(Words& words) {
    const auto pick = [&](std::initializer_list<float> values) { return values.begin()[words.next() % values.size()]; };
    AdamWOptions options;
    options.amsgrad = words.next() % 2U == 0;
    options.maximize = words.next() % 2U == 0;
    options.beta1 = pick({0.0F, 0.25F, 0.5F, 0.9F, 0x1.fffffep-1F, 0x1p-149F});
    options.beta2 = pick({0.0F, 0.25F, 0.75F, 0.999F, 0x1.fffffep-1F});
    options.weight_decay = pick({0.0F, 1e-4F, 0.3F, 3.0F});
    options.learning_rate = pick({0.0F, 1e-3F, 0.1F, 1.0F, 0x1p100F});
    options.epsilon = pick({1e-8F, 1e-5F, 1.0F, 0x1p-149F, 0x1p120F});
    const float clip = pick({1.0F, 1.0F, 0.3F, 0.0F, 0x1p-140F});
    const float scale = pick({1.0F, 1.0F, 3.0F, 65536.0F, 0x1p-100F, 0x1p127F});
    return reference::update_coefficients(options, {.gradient_scale = scale}, clip, 1 + words.next() % 100U);
}

/// Values of every class: NaN, infinities and negative second moments among them where `any_bits`.
inline Element any_element(Words& words, bool any_bits) {
    const auto value = [&] { return any_bits ? any_float(words.next()) : spread_float(words.next()); };
    Element e;
    e.c = any_coefficients(words);
    e.raw = value();
    e.old = {value(), value(), value(), value()};
    if (!any_bits || words.next() % 8U != 0) {
        e.old.v = std::fabs(e.old.v);
        e.old.x = std::fabs(e.old.x);
    }
    if (!e.c.amsgrad) e.old.x = 0.0F;
    if (words.next() % 8U == 0) e.old.m = e.old.v = e.old.x = 0.0F;  // a first update
    return e;
}

/// Ordinary magnitudes, for tests that want every intermediate in the normal range.
inline float ordinary(Words& words) {
    return reference::float_of((words.next() & reference::kSignBit) | (0x3C000000U + words.next() % 0x06000000U));
}
inline Element ordinary_element(Words& words) {
    Element e;
    AdamWOptions options;
    options.amsgrad = words.next() % 2U == 0;
    options.beta1 = words.next() % 2U == 0 ? 0.5F : 0.75F;
    options.beta2 = words.next() % 2U == 0 ? 0.5F : 0.625F;
    options.learning_rate = words.next() % 2U == 0 ? 0.1F : 1.0F;
    options.weight_decay = 0.3F;
    e.c = reference::update_coefficients(options, {.gradient_scale = words.next() % 2U == 0 ? 1.0F : 3.0F},
                                         words.next() % 2U == 0 ? 1.0F : 0.7F, 1 + words.next() % 20U);
    e.raw = ordinary(words);
    e.old = {ordinary(words), ordinary(words), std::fabs(ordinary(words)), std::fabs(ordinary(words))};
    return e;
}

/// The lines with each of their three meetings of products and a sum contracted its own way: `way` in [0, 27).
inline reference::ElementState<float> contracted(const Element& e, int way) {
    using reference::FirstFused;
    using reference::Lines;
    using reference::SecondFused;
    using reference::Uncontracted;
    const auto c = reference::line_coefficients<float>(e.c);
    const auto choose = [](int which, auto evaluate) {
        return which == 0   ? evaluate(Lines<Uncontracted>{})
               : which == 1 ? evaluate(Lines<FirstFused>{})
                            : evaluate(Lines<SecondFused>{});
    };
    const float g = Lines<>::effective_gradient(e.raw, c);
    reference::ElementState<float> next;
    next.m = choose(way % 3, [&](auto lines) { return lines.first_moment(e.old.m, g, c); });
    next.v = choose(way / 3 % 3, [&](auto lines) { return lines.second_moment(e.old.v, g, c); });
    const float x = Lines<>::running_maximum(e.old.x, next.v, c);
    if (c.amsgrad) next.x = x;
    next.p = choose(way / 9, [&](auto lines) { return lines.parameter(e.old.p, next.m, x, c); });
    return next;
}

}  // namespace gradguard::testing
