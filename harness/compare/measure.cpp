// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "harness/compare/ulp.h"

namespace gradguard::harness {
namespace {

using reference::ElementState;
using reference::LineCoefficients;

constexpr double kUnit = 0x1p-24;   // one rounding to nearest
constexpr double kNoise = 0x1p-49;  // FP64's own, of everything that enters a sum
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// kUnit for an operation that rounds; 0 for a product with a factor 1.
double unit_unless_one(double factor) { return factor == 1.0 ? 0.0 : kUnit; }

bool within_a_factor_of_4(double a, double b) {
    return std::fabs(a) <= 4.0 * std::fabs(b) && std::fabs(b) <= 4.0 * std::fabs(a);
}

/// The intermediates of the lines, by their names in contract section 6.
struct Intermediates {
    double unscaled, g, m_kept, m_added, square, v_kept, v_added, x, numerator, under_root, root, denominator, ratio,
        decayed, moved;

    bool all_normal(const ElementState<double>& result) const {
        const double all[] = {unscaled,  g,          m_kept, m_added,     result.m, square,  v_kept, v_added, result.v,
                              numerator, under_root, root,   denominator, ratio,    decayed, moved,  result.p};
        double least = kInfinity;
        double greatest = 0.0;
        for (const double value : all) {
            least = std::min(least, std::fabs(value));
            greatest = std::max(greatest, std::fabs(value));
        }
        // Written so that NaN fails. Half a binade of room at either end: roundings move no value out of the range.
        return least >= 0x1.8p-126 && greatest <= 0x1p127;
    }
};

Intermediates intermediates(float raw, const ElementState<float>& old, const LineCoefficients<double>& c) {
    Intermediates i;
    i.unscaled = raw * c.r;
    i.g = i.unscaled;
    if (c.clips) i.g *= c.clip;
    if (c.maximize) i.g = -i.g;
    i.m_kept = c.beta1 * old.m;
    i.m_added = c.one_minus_beta1 * i.g;
    i.square = i.g * i.g;
    i.v_kept = c.beta2 * old.v;
    i.v_added = c.one_minus_beta2 * i.square;
    const double v = i.v_kept + i.v_added;
    i.x = c.amsgrad ? reference::maximum(static_cast<double>(old.x), v) : v;
    i.numerator = (i.m_kept + i.m_added) * c.inverse_bias1;
    i.under_root = i.x * c.inverse_bias2;
    i.root = std::sqrt(i.under_root);
    i.denominator = i.root + c.epsilon;
    i.ratio = i.numerator / i.denominator;
    i.decayed = old.p * c.decay;
    i.moved = c.learning_rate * i.ratio;
    return i;
}

/// Half widths to first order: each operation that rounds adds kUnit of its result to what its operands bring.
ElementState<double> half_widths(const Intermediates& i, const ElementState<double>& result, float old_x,
                                 const LineCoefficients<double>& c) {
    const double g = unit_unless_one(c.r) + (c.clips ? kUnit : 0.0);  // relative, as are the next ones with a "_rel"
    ElementState<double> width;
    width.m = kUnit * (std::fabs(i.m_kept) + std::fabs(result.m)) +
              std::fabs(i.m_added) * (unit_unless_one(c.one_minus_beta1) + g);
    width.v = kUnit * (std::fabs(i.v_kept) + std::fabs(result.v)) +
              std::fabs(i.v_added) * (unit_unless_one(c.one_minus_beta2) + kUnit + 2.0 * g);
    const bool kept_maximum = c.amsgrad && static_cast<double>(old_x) > result.v + width.v;
    width.x = c.amsgrad && !kept_maximum ? width.v : 0.0;
    const double x_width = kept_maximum ? 0.0 : width.v;
    const double numerator_rel = width.m / std::fabs(result.m) + unit_unless_one(c.inverse_bias1);
    const double root_rel = 0.5 * (x_width / i.x + unit_unless_one(c.inverse_bias2)) + kUnit;
    const double denominator_rel = i.root * root_rel / i.denominator + kUnit;
    const double moved_rel = numerator_rel + denominator_rel + kUnit + unit_unless_one(c.learning_rate);
    width.p =
        std::fabs(i.moved) * moved_rel + std::fabs(i.decayed) * unit_unless_one(c.decay) + kUnit * std::fabs(result.p);
    return width;
}

/// FP64 holds every intermediate of finite operands without over- or underflow, so that its error is a few 2^-53 of the
/// summands.
ElementState<double> own_noise(const Intermediates& i, const ElementState<double>& result) {
    ElementState<double> noise;
    noise.m = kNoise * (std::fabs(i.m_kept) + std::fabs(i.m_added));
    noise.v = kNoise * (std::fabs(i.v_kept) + std::fabs(i.v_added));
    noise.x = noise.v;
    const double from_m = result.m == 0.0 ? 0.0 : std::fabs(i.moved) * (noise.m / std::fabs(result.m));
    noise.p = kNoise * (std::fabs(i.decayed) + std::fabs(i.moved)) + from_m;
    // A negative v under the root, an infinite operand: IEEE rules on both sides, and a sum of v's summands that may
    // cancel: told at 256 bits.
    if (!(i.v_kept >= 0.0)) noise.v = noise.x = noise.p = kInfinity;
    if (std::isnan(noise.p)) noise.p = kInfinity;
    return noise;
}

}  // namespace

Centre centre_of(float raw, const ElementState<float>& old, const LineCoefficients<double>& c) {
    const Intermediates i = intermediates(raw, old, c);
    Centre centre;
    centre.exact.m = i.m_kept + i.m_added;
    centre.exact.v = i.v_kept + i.v_added;
    centre.exact.x = c.amsgrad ? i.x : 0.0;
    centre.exact.p = i.decayed - i.moved;
    centre.noise = own_noise(i, centre.exact);
    centre.balanced = within_a_factor_of_4(i.m_kept, i.m_added) && within_a_factor_of_4(i.v_kept, i.v_added) &&
                      within_a_factor_of_4(i.decayed, i.moved) && i.all_normal(centre.exact);
    if (centre.balanced) centre.bound = half_widths(i, centre.exact, old.x, c);
    return centre;
}

void take_errors(const Centre& centre, float raw, const ElementState<float>& old, const ElementState<float>& stored,
                 const reference::UpdateCoefficients& c, std::uint64_t index,
                 std::array<WorstError, kOperands>& worst) {
    std::optional<ElementState<reference::Real>> exact;
    const auto take = [&](Operand operand, float got, double want, double noise, double bound, auto part) {
        WorstError& now = worst[static_cast<std::size_t>(operand)];
        double ulp = ulp_error(got, want);
        const double unsure = noise / ulp_of(want);
        if (!(ulp + unsure <= now.ulp) && !(unsure <= 0x1p-16) && want - want == 0.0) {
            if (!exact) exact = reference::exact_update(raw, old, c);
            ulp = ulp_error(got, part(*exact));
        }
        if (ulp > now.ulp) {
            now.ulp = ulp;
            now.index = index;
        }
        if (!centre.balanced || !(bound > 0.0)) return;
        const double fraction = std::fabs(static_cast<double>(got) - want) / bound;
        if (fraction > now.fraction) {
            now.fraction = fraction;
            now.fraction_index = index;
        }
    };
    take(Operand::kParameters, stored.p, centre.exact.p, centre.noise.p, centre.bound.p, [](auto& s) { return s.p; });
    take(Operand::kFirstMoment, stored.m, centre.exact.m, centre.noise.m, centre.bound.m, [](auto& s) { return s.m; });
    take(Operand::kSecondMoment, stored.v, centre.exact.v, centre.noise.v, centre.bound.v, [](auto& s) { return s.v; });
    if (!c.amsgrad) return;
    take(Operand::kMaxSecondMoment, stored.x, centre.exact.x, centre.noise.x, centre.bound.x,
         [](auto& s) { return s.x; });
}

}  // namespace gradguard::harness
