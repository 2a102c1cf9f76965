// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "harness/compare/update_bound.h"
#include "reference/model/update.h"

namespace gradguard::harness {

/// Reading (a) of one element in FP64 with two errors beside it, in the quantity's own unit (BOUNDS.md, "Fraction of
/// the bound").
struct Centre {
    reference::ElementState<double> exact;  ///< x is 0 without AMSGrad.
    reference::ElementState<double> noise;  ///< FP64's own error is at most this.
    /// The half width of the interval for these inputs (one rounding for each operation that is not exact), to first
    /// order in 2^-24; meaningful where `balanced`.
    reference::ElementState<double> bound;
    /// The two summands of m, of v and of p within a factor of 4 of each other, and every intermediate in the normal
    /// range: only such inputs count for a fraction of the bound.
    bool balanced = false;
};
Centre centre_of(float raw, const reference::ElementState<float>& old, const reference::LineCoefficients<double>& c);

/// Adds one element to the greatest errors. An error that FP64 cannot tell is taken at 256 bits, unless it cannot be
/// the greatest.
void take_errors(const Centre& centre, float raw, const reference::ElementState<float>& old,
                 const reference::ElementState<float>& stored, const reference::UpdateCoefficients& c,
                 std::uint64_t index, std::array<WorstError, kOperands>& worst);

}  // namespace gradguard::harness
