// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/update_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "harness/compare/enclosure.h"
#include "harness/compare/measure.h"
#include "harness/compare/ulp.h"
#include "reference/exact/float_bits.h"
#include "reference/fp64/self_check.h"

namespace gradguard::harness {
namespace {

using reference::ElementState;
using reference::FirstFused;
using reference::LineCoefficients;
using reference::Lines;
using reference::same_float;
using reference::SecondFused;
using reference::Uncontracted;
using reference::UpdateCoefficients;

inline ElementLegalSets evaluate_sets(float raw, const ElementState<float>& old, const ElementState<float>& stored,
                                      const LineCoefficients<float>& c) {
    const float g = Lines<>::effective_gradient(raw, c);
    ElementLegalSets sets;
    sets.m.values = {Lines<Uncontracted>::first_moment(old.m, g, c), Lines<FirstFused>::first_moment(old.m, g, c),
                     Lines<SecondFused>::first_moment(old.m, g, c)};
    sets.v.values = {Lines<Uncontracted>::second_moment(old.v, g, c), Lines<FirstFused>::second_moment(old.v, g, c),
                     Lines<SecondFused>::second_moment(old.v, g, c)};
    if (c.amsgrad) sets.x.values.fill(Lines<>::running_maximum(old.x, stored.v, c));
    const float x = c.amsgrad ? stored.x : stored.v;
    sets.p.values = {Lines<Uncontracted>::parameter(old.p, stored.m, x, c),
                     Lines<FirstFused>::parameter(old.p, stored.m, x, c),
                     Lines<SecondFused>::parameter(old.p, stored.m, x, c)};
    return sets;
}

inline bool inside(const LegalSet& set, float got, bool contracted) {
    const bool plain = same_float(got, set.values[0]);
    return contracted ? plain || same_float(got, set.values[1]) || same_float(got, set.values[2]) : plain;
}

inline bool all_inside(const ElementLegalSets& sets, const ElementState<float>& stored, bool contracted) {
    return inside(sets.v, stored.v, contracted) && inside(sets.m, stored.m, contracted) &&
           same_float(stored.x, sets.x.values[0]) && inside(sets.p, stored.p, contracted);
}

/// Raw pointers to an entry's arrays; null where an operand is absent and counts as +0.
struct Arrays {
    const float *p = nullptr, *m = nullptr, *v = nullptr, *x = nullptr;

    ElementState<float> at(std::uint64_t i) const {
        return {p[i], m != nullptr ? m[i] : 0.0F, v != nullptr ? v[i] : 0.0F, x != nullptr ? x[i] : 0.0F};
    }
};
const float* data_or_null(std::span<const float> values) { return values.empty() ? nullptr : values.data(); }
Arrays old_arrays(const UpdateOperands& o) {
    return {data_or_null(o.old_parameters), data_or_null(o.old_first_moment), data_or_null(o.old_second_moment),
            data_or_null(o.old_max_second_moment)};
}
Arrays stored_arrays(const UpdateOperands& o) {
    return {data_or_null(o.parameters), data_or_null(o.first_moment), data_or_null(o.second_moment),
            data_or_null(o.max_second_moment)};
}

struct Outside {
    std::uint64_t count = 0;
    std::uint64_t first = 0;
};

constexpr std::uint64_t kChunk = 256;

/// Elements [0, count) of a chunk whose gradients are widened already.
Outside judge_chunk(const float* raw, const Arrays& old, const Arrays& stored, std::uint64_t begin, std::uint64_t count,
                    const LineCoefficients<float>& c, bool contracted) {
    Outside outside;
    for (std::uint64_t i = 0; i < count; ++i) {
        const ElementState<float> after = stored.at(begin + i);
        if (all_inside(evaluate_sets(raw[i], old.at(begin + i), after, c), after, contracted)) continue;
        if (outside.count++ == 0) outside.first = begin + i;
    }
    return outside;
}

Outside judge_all(const UpdateOperands& operands, const UpdateCoefficients& given, bool contracted) {
    const auto c = reference::line_coefficients<float>(given);
    const Arrays old = old_arrays(operands);
    const Arrays stored = stored_arrays(operands);
    const auto* data = static_cast<const std::byte*>(operands.gradients.data);
    Outside all;
    for (std::uint64_t begin = 0; begin < operands.gradients.elements; begin += kChunk) {
        const std::uint64_t count = std::min(kChunk, operands.gradients.elements - begin);
        std::array<float, kChunk> raw;
        reference::with_loader(operands.gradients.dtype, [&](auto load) {
            for (std::uint64_t i = 0; i < count; ++i) raw[i] = load.at(data, begin + i);
        });
        const Outside chunk = judge_chunk(raw.data(), old, stored, begin, count, c, contracted);
        if (all.count == 0) all.first = chunk.first;
        all.count += chunk.count;
    }
    return all;
}

void measure_errors(const UpdateOperands& operands, const UpdateCoefficients& given, UpdateVerdict& verdict) {
    const auto c = reference::line_coefficients<double>(given);
    const Arrays old = old_arrays(operands);
    const Arrays stored = stored_arrays(operands);
    const auto* data = static_cast<const std::byte*>(operands.gradients.data);
    reference::with_loader(operands.gradients.dtype, [&](auto load) {
        for (std::uint64_t i = 0; i < operands.gradients.elements; ++i) {
            const float raw = load.at(data, i);
            const ElementState<float> before = old.at(i);
            take_errors(centre_of(raw, before, c), raw, before, stored.at(i), given, i, verdict.worst);
        }
    });
}

template <class State>
auto part_of(const State& state, Operand operand) {
    switch (operand) {
        case Operand::kFirstMoment:
            return state.m;
        case Operand::kSecondMoment:
            return state.v;
        case Operand::kMaxSecondMoment:
            return state.x;
        case Operand::kParameters:
            break;
    }
    return state.p;
}

/// The first operand outside its interval, causes before effects.
std::optional<Operand> first_outside(const ElementIntervals& all, const ElementState<float>& stored) {
    for (const Operand operand :
         {Operand::kSecondMoment, Operand::kFirstMoment, Operand::kMaxSecondMoment, Operand::kParameters}) {
        if (!within(part_of(stored, operand), part_of(all, operand), 0.0).ok) return operand;
    }
    return std::nullopt;
}

Outside judge_by_intervals(const UpdateOperands& operands, const UpdateCoefficients& c, const Abilities& abilities) {
    const Arrays old = old_arrays(operands);
    const Arrays stored = stored_arrays(operands);
    Outside outside;
    for (std::uint64_t i = 0; i < operands.gradients.elements; ++i) {
        const float raw = reference::raw_value(operands.gradients, i);
        if (!first_outside(intervals(raw, old.at(i), c, abilities), stored.at(i))) continue;
        if (outside.count++ == 0) outside.first = i;
    }
    return outside;
}

void check_sizes(const UpdateOperands& o, bool amsgrad) {
    const std::uint64_t n = o.gradients.elements;
    const auto fits = [&](std::span<const float> values, const char* name, bool wanted, bool may_be_absent) {
        if (values.size() == (wanted ? n : 0) || (may_be_absent && values.empty())) return;
        throw std::invalid_argument(std::string("judge_update: ") + name + " has " + std::to_string(values.size()) +
                                    " elements, the gradients " + std::to_string(n));
    };
    fits(o.old_parameters, "old_parameters", true, false);
    fits(o.parameters, "parameters", true, false);
    fits(o.first_moment, "first_moment", true, false);
    fits(o.second_moment, "second_moment", true, false);
    fits(o.max_second_moment, "max_second_moment", amsgrad, false);
    fits(o.old_first_moment, "old_first_moment", true, true);
    fits(o.old_second_moment, "old_second_moment", true, o.old_first_moment.empty());
    fits(o.old_max_second_moment, "old_max_second_moment", amsgrad, o.old_first_moment.empty());
}

}  // namespace

bool judged_by_interval(const Abilities& abilities) { return abilities.reassociates || abilities.flushes; }

std::string_view to_string(Operand operand) {
    switch (operand) {
        case Operand::kParameters:
            return "parameters";
        case Operand::kFirstMoment:
            return "first_moment";
        case Operand::kSecondMoment:
            return "second_moment";
        case Operand::kMaxSecondMoment:
            return "max_second_moment";
    }
    return "?";
}

bool LegalSet::contains(float got, Contraction contraction) const {
    return inside(*this, got, contraction == Contraction::kAllowed);
}

ElementLegalSets legal_sets(float raw, const ElementState<float>& old, const ElementState<float>& stored,
                            const UpdateCoefficients& c) {
    return evaluate_sets(raw, old, stored, reference::line_coefficients<float>(c));
}

std::optional<Operand> first_outside(float raw, const ElementState<float>& old, const ElementState<float>& stored,
                                     const UpdateCoefficients& c, Contraction contraction) {
    const ElementLegalSets sets = legal_sets(raw, old, stored, c);
    if (!sets.v.contains(stored.v, contraction)) return Operand::kSecondMoment;
    if (!sets.m.contains(stored.m, contraction)) return Operand::kFirstMoment;
    if (!sets.x.contains(stored.x, contraction)) return Operand::kMaxSecondMoment;
    if (!sets.p.contains(stored.p, contraction)) return Operand::kParameters;
    return std::nullopt;
}

UpdateVerdict judge_update(const UpdateOperands& operands, const UpdateCoefficients& c, const Abilities& abilities,
                           bool measure) {
    reference::require_sound_arithmetic();
    check_sizes(operands, c.amsgrad);
    UpdateVerdict verdict;
    if (operands.gradients.elements == 0) return verdict;
    const bool by_interval = judged_by_interval(abilities);
    const Outside outside = by_interval ? judge_by_intervals(operands, c, abilities)
                                        : judge_all(operands, c, abilities.contraction == Contraction::kAllowed);
    verdict.outside = outside.count;
    verdict.ok = outside.count == 0;
    if (measure) measure_errors(operands, c, verdict);
    if (abilities.reassociates) {
        for (WorstError& worst : verdict.worst) worst.fraction /= kRegroupedRoundings;
    }
    if (verdict.ok) return verdict;
    const std::uint64_t i = outside.first;
    const float raw = reference::raw_value(operands.gradients, i);
    const ElementState<float> old = old_arrays(operands).at(i);
    const ElementState<float> stored = stored_arrays(operands).at(i);
    Offender offender;
    offender.index = i;
    if (by_interval) {
        const ElementIntervals all = intervals(raw, old, c, abilities);
        offender.operand = first_outside(all, stored).value_or(Operand::kParameters);
        offender.enclosure = part_of(all, offender.operand);
    } else {
        offender.operand = first_outside(raw, old, stored, c, abilities.contraction).value_or(Operand::kParameters);
        offender.want = part_of(legal_sets(raw, old, stored, c), offender.operand);
    }
    offender.got = part_of(stored, offender.operand);
    const reference::Real exact = part_of(reference::exact_update(raw, old, c), offender.operand);
    offender.exact = reference::to_double(exact);
    offender.ulp = ulp_error(offender.got, exact);
    verdict.first = offender;
    return verdict;
}

}  // namespace gradguard::harness
