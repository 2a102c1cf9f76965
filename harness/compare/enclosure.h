// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "harness/case/abilities.h"
#include "harness/compare/interval.h"
#include "reference/fp64/coefficients.h"
#include "reference/model/update.h"

namespace gradguard::harness {

/// Roundings that other people's grouping takes where the contract's line has one, at most (BOUNDS.md, "Interval with
/// reassociation").
inline constexpr int kRegroupedRoundings = 4;

/// Intervals for what one element's update may store.
struct ElementIntervals {
    Interval p, m, v, x;  ///< x is {0, 0} without AMSGrad.
};

/// The contract's lines over RoundedInterval, from the old state (BOUNDS.md, "Interval"): for a subject that may fuse
/// (EitherFused unless its contraction is forbidden), reassociate (four roundings for each operation) or flush, as
/// `abilities` declares.
ElementIntervals intervals(float raw, const reference::ElementState<float>& old, const reference::UpdateCoefficients& c,
                           const Abilities& abilities);

/// The hull of the legal set from the old state: all 27 ways to contract m, v and p (BOUNDS.md, "Hull"). FP32
/// operations on FP32 ends; attained.
struct Hull {
    float lo = 0.0F;
    float hi = 0.0F;
    bool may_be_nan = false;

    Interval interval() const { return {lo, hi, may_be_nan}; }
};
struct ElementHulls {
    Hull p, m, v, x;  ///< x is {0, 0} without AMSGrad.
};
ElementHulls legal_hulls(float raw, const reference::ElementState<float>& old, const reference::UpdateCoefficients& c);

}  // namespace gradguard::harness
