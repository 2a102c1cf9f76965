// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/enclosure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reference/exact/float_bits.h"

namespace gradguard::harness {
namespace {

using reference::ElementState;
using reference::FirstFused;
using reference::LineCoefficients;
using reference::Lines;
using reference::SecondFused;
using reference::Uncontracted;
using reference::UpdateCoefficients;

template <class T, class Products>
ElementIntervals lines_over(float raw, const ElementState<float>& old, const UpdateCoefficients& c) {
    const ElementState<T> wide{T(old.p), T(old.m), T(old.v), T(old.x)};
    const ElementState<T> next = Lines<Products>::update(T(raw), wide, reference::line_coefficients<T>(c));
    return {next.p.interval(), next.m.interval(), next.v.interval(), next.x.interval()};
}

template <int kRoundings, bool kFlushes>
ElementIntervals lines_over(float raw, const ElementState<float>& old, const UpdateCoefficients& c, bool contracts) {
    using T = RoundedInterval<kRoundings, kFlushes>;
    return contracts ? lines_over<T, EitherFused>(raw, old, c) : lines_over<T, Uncontracted>(raw, old, c);
}

void include(Hull& hull, float value) {
    if (std::isnan(value)) {
        hull.may_be_nan = true;
        return;
    }
    hull.lo = std::min(hull.lo, value);
    hull.hi = std::max(hull.hi, value);
}

Hull hull_of_nothing() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return {kInfinity, -kInfinity, false};
}

Hull hull_of(const std::array<float, 3>& values) {
    Hull hull = hull_of_nothing();
    for (const float value : values) include(hull, value);
    return hull;
}

bool is_ordinary(const Hull& hull) { return !hull.may_be_nan && std::isfinite(hull.lo) && std::isfinite(hull.hi); }

/// The three legal p from one m and one x.
void include_parameters(Hull& hull, float p_old, float m, float x, const LineCoefficients<float>& c) {
    include(hull, Lines<Uncontracted>::parameter(p_old, m, x, c));
    include(hull, Lines<FirstFused>::parameter(p_old, m, x, c));
    include(hull, Lines<SecondFused>::parameter(p_old, m, x, c));
}

}  // namespace

Within within(float got, const Interval& interval, double centre) {
    if (std::isnan(got)) return {interval.may_be_nan, 0.0};
    const double value = got;
    Within result{interval.lo <= value && value <= interval.hi, 0.0};
    const double end = value < centre ? interval.lo : interval.hi;
    const double used = std::fabs(value - centre);
    const double bound = std::fabs(end - centre);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (!(used > 0.0)) return result;  // none of it, or no number to measure from
    if (bound < kInfinity) result.fraction = bound > 0.0 ? used / bound : kInfinity;
    if (!result.ok && !(result.fraction > 1.0)) result.fraction = kInfinity;
    return result;
}

ElementIntervals intervals(float raw, const ElementState<float>& old, const UpdateCoefficients& c,
                           const Abilities& abilities) {
    const bool contracts = abilities.contraction == Contraction::kAllowed;
    if (abilities.reassociates) {
        return abilities.flushes ? lines_over<kRegroupedRoundings, true>(raw, old, c, contracts)
                                 : lines_over<kRegroupedRoundings, false>(raw, old, c, contracts);
    }
    return abilities.flushes ? lines_over<1, true>(raw, old, c, contracts)
                             : lines_over<1, false>(raw, old, c, contracts);
}

ElementHulls legal_hulls(float raw, const ElementState<float>& old, const UpdateCoefficients& given) {
    const auto c = reference::line_coefficients<float>(given);
    const float g = Lines<>::effective_gradient(raw, c);
    const std::array<float, 3> m{Lines<Uncontracted>::first_moment(old.m, g, c),
                                 Lines<FirstFused>::first_moment(old.m, g, c),
                                 Lines<SecondFused>::first_moment(old.m, g, c)};
    const std::array<float, 3> v{Lines<Uncontracted>::second_moment(old.v, g, c),
                                 Lines<FirstFused>::second_moment(old.v, g, c),
                                 Lines<SecondFused>::second_moment(old.v, g, c)};
    std::array<float, 3> x{};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = Lines<>::running_maximum(old.x, v[i], c);
    ElementHulls hulls{hull_of_nothing(), hull_of(m), hull_of(v), {}};
    const Hull used = hull_of(x);
    if (c.amsgrad) hulls.x = used;
    // p falls with m, and rises or falls with x as m is positive or not: its ends are attained at theirs. Where
    // something is infinite, NaN or has no root, an inner value may be the one that is left, so that all are taken.
    if (is_ordinary(hulls.m) && is_ordinary(used) && used.lo >= 0.0F) {
        for (const float one_m : {hulls.m.lo, hulls.m.hi}) {
            include_parameters(hulls.p, old.p, one_m, used.lo, c);
            if (used.hi != used.lo) include_parameters(hulls.p, old.p, one_m, used.hi, c);
            if (hulls.m.hi == hulls.m.lo) break;
        }
        return hulls;
    }
    for (const float one_m : m) {
        for (const float one_x : x) include_parameters(hulls.p, old.p, one_m, one_x, c);
    }
    return hulls;
}

}  // namespace gradguard::harness
