// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/contract/report.h"

namespace gradguard::kernels {

/// The host's half of the statistics (contract section 4): combines the summaries of the non-empty tensors in input
/// order.
class SummaryTotals {
  public:
    /// Throws Error{InvalidSummary} that names `entry` and leaves the totals unchanged when the summary breaks a rule
    /// of contract section 3, the running sum would not be finite or a counter would overflow.
    void add(std::size_t entry, const GradientSummary& summary, std::uint64_t elements);
    void add_empty() { ++tensors_; }

    GradientStats stats(float gradient_scale) const;

  private:
    double sum_of_squares_ = 0.0;
    float max_finite_abs_ = 0.0F;
    bool all_finite_ = true;
    std::uint64_t elements_ = 0;
    std::uint64_t tensors_ = 0;
};

}  // namespace gradguard::kernels
