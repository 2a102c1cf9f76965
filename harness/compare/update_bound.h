// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "harness/case/abilities.h"
#include "harness/compare/interval.h"
#include "reference/fp64/coefficients.h"
#include "reference/model/gradient_view.h"
#include "reference/model/update.h"

namespace gradguard::harness {

/// The operands of an update, in the order they are judged.
enum class Operand : std::uint8_t { kParameters, kFirstMoment, kSecondMoment, kMaxSecondMoment };
inline constexpr int kOperands = 4;
/// "parameters", "first_moment", "second_moment" or "max_second_moment".
std::string_view to_string(Operand operand);

/// The legal values of one element: uncontracted, first product fused, second product fused; equal ones are kept.
struct LegalSet {
    std::array<float, 3> values{};

    /// Any NaN equals any NaN; otherwise the bits must be equal.
    bool contains(float got, Contraction contraction) const;
};

/// Legal m and v from the old state; legal x from the v that the subject stored; legal p from the m and the x (or v)
/// that the subject stored: right and strict for a kernel that computes them once.
struct ElementLegalSets {
    LegalSet p, m, v, x;  ///< x has one value, three times; all 0 without AMSGrad.
};
ElementLegalSets legal_sets(float raw, const reference::ElementState<float>& old,
                            const reference::ElementState<float>& stored, const reference::UpdateCoefficients& c);

/// The first operand of one element that is outside its legal set, in the order second moment, first moment, maximum,
/// parameter (causes before effects); nothing when all are inside.
std::optional<Operand> first_outside(float raw, const reference::ElementState<float>& old,
                                     const reference::ElementState<float>& stored,
                                     const reference::UpdateCoefficients& c, Contraction contraction);

/// One entry's update: what went in and what the subject stored, [n] each. Old moments are empty on a first update;
/// maxima are empty without AMSGrad (and the old maximum on a first update).
struct UpdateOperands {
    reference::GradientView gradients;
    std::span<const float> old_parameters, old_first_moment, old_second_moment, old_max_second_moment;
    std::span<const float> parameters, first_moment, second_moment, max_second_moment;
};

/// Greatest error of one operand against reading (a) from the old state, and where: in FP32 ulp of the exact result,
/// and as a share of the interval's half width (BOUNDS.md, "Fraction of the bound"; on balanced inputs only).
struct WorstError {
    double ulp = 0.0;
    std::uint64_t index = 0;
    double fraction = 0.0;
    std::uint64_t fraction_index = 0;
};

/// An element outside what is admitted.
struct Offender {
    Operand operand = Operand::kParameters;
    std::uint64_t index = 0;
    float got = 0.0F;
    std::optional<LegalSet> want;       ///< The legal set, where that is what judges.
    std::optional<Interval> enclosure;  ///< The interval, where it is.
    double exact = 0.0;                 ///< Reading (a), rounded to FP64.
    double ulp = 0.0;                   ///< Of `got` against it.
};

struct UpdateVerdict {
    bool ok = true;
    std::uint64_t outside = 0;                  ///< Elements outside.
    std::optional<Offender> first;              ///< The one of least index.
    std::array<WorstError, kOperands> worst{};  ///< By Operand.

    const WorstError& worst_of(Operand operand) const { return worst[static_cast<std::size_t>(operand)]; }
};

/// Whether the interval judges a subject's updates, and not the legal set.
bool judged_by_interval(const Abilities& abilities);

/// Judges all elements of one entry: by the legal set, or by the interval for a subject that declares reassociation or
/// flushing. `measure` false leaves `worst` at 0 and is faster. Throws std::invalid_argument when the spans' sizes do
/// not fit each other.
UpdateVerdict judge_update(const UpdateOperands& operands, const reference::UpdateCoefficients& c,
                           const Abilities& abilities, bool measure = true);
inline UpdateVerdict judge_update(const UpdateOperands& operands, const reference::UpdateCoefficients& c,
                                  Contraction contraction, bool measure = true) {
    Abilities abilities;
    abilities.contraction = contraction;
    return judge_update(operands, c, abilities, measure);
}

}  // namespace gradguard::harness
