// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/hunt_element.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/compare/measure.h"

namespace gradguard::harness {
namespace {

using reference::ElementState;
using reference::FirstFused;
using reference::LineCoefficients;
using reference::Lines;
using reference::SecondFused;
using reference::Uncontracted;

constexpr double kWorst = -std::numeric_limits<double>::infinity();
/// Without a better input among so many tries the climb starts elsewhere.
constexpr std::uint64_t kPatience = 60000;

template <class Evaluate>
float by_choice(int which, Evaluate evaluate) {
    if (which == 1) return evaluate(Lines<FirstFused>{});
    if (which == 2) return evaluate(Lines<SecondFused>{});
    return evaluate(Lines<Uncontracted>{});
}

ElementState<float> update_by(float raw, const ElementState<float>& old, const LineCoefficients<float>& c,
                              const FusedProducts& fused) {
    const float g = Lines<>::effective_gradient(raw, c);
    ElementState<float> next;
    next.m = by_choice(fused.m, [&](auto lines) { return lines.first_moment(old.m, g, c); });
    next.v = by_choice(fused.v, [&](auto lines) { return lines.second_moment(old.v, g, c); });
    const float x = Lines<>::running_maximum(old.x, next.v, c);
    next.p = by_choice(fused.p, [&](auto lines) { return lines.parameter(old.p, next.m, x, c); });
    if (c.amsgrad) next.x = x;
    return next;
}

/// An element with its coefficients worked out.
struct Candidate {
    HuntedElement element;
    LineCoefficients<float> lines;
    LineCoefficients<double> wide;

    void refresh() {
        const auto c = element.coefficients();
        lines = reference::line_coefficients<float>(c);
        wide = reference::line_coefficients<double>(c);
    }
};

/// How far a magnitude is from another: 0 where they are equal, their ratio - 1 elsewhere. No logarithm, which differs
/// from one library to the next.
double apart(double x, double y) {
    const double ratio = std::fabs(x) / y;
    return std::max(ratio, 1.0 / ratio) - 1.0;
}

double score_of(const Candidate& candidate, ElementGoal goal, const FusedProducts& fused) {
    const HuntedElement& e = candidate.element;
    const auto& c = candidate.wide;
    constexpr double kOverflows = 0x1p128 - 0x1p103;
    const double g = e.raw * c.r;
    if (goal == ElementGoal::kUnderflow) {
        // Half the least subnormal: from there down the square is zero.
        return -apart(g * g, 0x1p-150);
    }
    if (goal == ElementGoal::kOverflowV) {
        // v_old < 0 is no state that a step leaves, so that only the product's own overflow can be met.
        return -apart(c.one_minus_beta2 * (g * g), kOverflows);
    }
    const Centre centre = centre_of(e.raw, e.old, c);
    if (goal == ElementGoal::kOverflowP) {
        const double moved = static_cast<double>(e.old.p) * c.decay - centre.exact.p;
        // Of the sign of p, so that the sum is finite where the product alone overflows.
        if (!(moved * static_cast<double>(e.old.p) > 0.0) || !(std::fabs(moved) >= kOverflows)) {
            return -1.0 - apart(moved, kOverflows);
        }
        return -apart(moved, kOverflows);
    }
    if (!centre.balanced) return kWorst;
    const ElementState<float> got = update_by(e.raw, e.old, candidate.lines, fused);
    if (goal == ElementGoal::kFillM) return std::fabs(got.m - centre.exact.m) / centre.bound.m;
    if (goal == ElementGoal::kFillV) return std::fabs(got.v - centre.exact.v) / centre.bound.v;
    return std::fabs(got.p - centre.exact.p) / centre.bound.p;
}

/// A positive number of the binade [2^exponent, 2^(exponent + 1)).
float in_binade(Random& random, int exponent) {
    return std::ldexp(1.0F + static_cast<float>(random.below(1U << 23U)) * 0x1p-23F, exponent);
}

/// Somewhere to start: summands of one size, so that they are soon balanced.
HuntedElement start(ElementGoal goal, Random& random) {
    HuntedElement e;
    e.options.beta1 = in_binade(random, -1);
    e.options.beta2 = in_binade(random, -1);
    e.options.learning_rate = random.percent(30) ? 1.0F : in_binade(random, random.between(-10, -1));
    e.options.epsilon = 1e-8F;
    e.options.weight_decay = random.percent(40) ? 0.0F : in_binade(random, -3);
    e.gradient_scale = random.percent(60) ? 1.0F : in_binade(random, random.between(0, 8));
    e.step = 1 + random.below(60);
    const int size = random.between(-8, 8);
    e.raw = in_binade(random, size) * e.gradient_scale;
    const float g = e.raw / e.gradient_scale;
    const float opposite = random.percent(25) ? -1.0F : 1.0F;
    e.old.m = opposite * g * (1.0F - e.options.beta1) / e.options.beta1;
    e.old.v = g * g * (1.0F - e.options.beta2) / e.options.beta2;
    e.old.p = (random.percent(50) ? -1.0F : 1.0F) * e.options.learning_rate * in_binade(random, -1);
    if (goal == ElementGoal::kOverflowV) {
        e.raw = in_binade(random, 63);
        e.gradient_scale = 1.0F;
    } else if (goal == ElementGoal::kOverflowP) {
        e.options.learning_rate = in_binade(random, 120);
        e.options.weight_decay = 0.0F;
        e.old.p = in_binade(random, 126);
        e.old.m = std::fabs(e.old.m);
    } else if (goal == ElementGoal::kUnderflow) {
        e.raw = in_binade(random, -75);
        e.gradient_scale = 1.0F;
        e.old.v = in_binade(random, -140);
    }
    return e;
}

bool is_valid(const HuntedElement& e) {
    const AdamWOptions& o = e.options;
    return o.beta1 > 0.0F && o.beta1 < 1.0F && o.beta2 > 0.0F && o.beta2 < 1.0F && o.epsilon > 0.0F &&
           o.learning_rate > 0.0F && o.weight_decay >= 0.0F && o.learning_rate * o.weight_decay < 1.0F &&
           e.gradient_scale >= 0x1p-100F;
}

/// One input or option changed; true when the coefficients change with it.
bool mutate(HuntedElement& e, Random& random) {
    switch (random.below(14)) {
        case 0:
        case 1:
        case 2:
            e.raw = mutated(e.raw, random);
            return false;
        case 3:
        case 4:
            e.old.m = mutated(e.old.m, random);
            return false;
        case 5:
        case 6:
            e.old.v = mutated(e.old.v, random);
            return false;
        case 7:
        case 8:
            e.old.p = mutated(e.old.p, random);
            return false;
        case 9:
            e.options.beta1 = mutated(e.options.beta1, random);
            return true;
        case 10:
            e.options.beta2 = mutated(e.options.beta2, random);
            return true;
        case 11:
            e.options.learning_rate = mutated(e.options.learning_rate, random);
            return true;
        case 12:
            e.options.epsilon = mutated(e.options.epsilon, random);
            if (e.options.weight_decay != 0.0F) e.options.weight_decay = mutated(e.options.weight_decay, random);
            return true;
        default:
            if (random.percent(50)) {
                e.step = 1 + random.below(200);
            } else if (e.gradient_scale != 1.0F) {
                e.gradient_scale = mutated(e.gradient_scale, random);
            }
            return true;
    }
}

}  // namespace

ElementFind climb_element(ElementGoal goal, const FusedProducts& fused, Random& random, ClimbBudget& budget) {
    ElementFind best{{}, kWorst};
    while (true) {
        Candidate now{start(goal, random), {}, {}};
        now.refresh();
        double score = is_valid(now.element) ? score_of(now, goal, fused) : kWorst;
        for (std::uint64_t since = 0; since < kPatience; ++since) {
            if (!budget.take()) return best;
            Candidate next = now;
            bool coefficients = mutate(next.element, random);
            if (random.percent(30)) coefficients = mutate(next.element, random) || coefficients;
            if (coefficients) {
                if (!is_valid(next.element)) continue;
                next.refresh();
            }
            const double other = score_of(next, goal, fused);
            if (!(other >= score)) continue;
            if (other > score) since = 0;
            now = next;
            score = other;
            if (score > best.score) best = {now.element, score};
        }
    }
}

}  // namespace gradguard::harness
