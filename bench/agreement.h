// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "bench/step_group.h"
#include "reference/fp64/coefficients.h"

namespace gradguard::bench {

/// What a comparison of two paths' parameters and moments saw.
struct Agreement {
    std::uint64_t values = 0;    ///< Compared.
    std::uint64_t enclosed = 0;  ///< Of them with other bits; both within the enclosure.
};

/// Holds what two paths made of `start` against each other: every parameter and moment has the same bits; where the
/// kernels may contract, values that differ must both lie in the enclosure of the contract's lines with either product
/// fused, over all steps (harness/compare/BOUNDS.md, "Interval"). `steps`: the coefficients of each step from `start`.
/// Throws BenchFailure, which names entry, operand, element, and both values.
class AgreementCheck {
  public:
    AgreementCheck(const Entries& start, bool contracted, std::span<const reference::UpdateCoefficients> steps)
        : start_(start), contracted_(contracted), steps_(steps) {}

    Agreement compare(const Entries& one, const std::string& one_name, const Entries& other,
                      const std::string& other_name) const;

  private:
    const Entries& start_;
    bool contracted_;
    std::span<const reference::UpdateCoefficients> steps_;
};

}  // namespace gradguard::bench
