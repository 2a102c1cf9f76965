// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/generators/generators.h"

/// Parts of shrink(), for this folder alone.
namespace gradguard::harness {

/// How far a recipe is from the simplest one, the weightiest first: later steps, entries, elements, state, layout,
/// options, dtypes, fills, overrides, the numbers themselves. Compared in this order, which has no infinite descent.
using Measure = std::array<std::uint64_t, 11>;
Measure measure_of(const CaseRecipe& recipe);

/// How much there is to read in a number: 0 for +0, then 1, powers of two, short mantissas; infinity and NaN last.
std::uint64_t complexity(std::uint32_t bits, DType dtype);

/// Every tensor of an entry, parameters first.
std::vector<TensorRecipe*> tensors_of(EntryRecipe& entry);
std::vector<const TensorRecipe*> tensors_of(const EntryRecipe& entry);

/// Collects candidates: what is not strictly simpler, or not valid in the same way, is left out.
class Candidates {
  public:
    explicit Candidates(const CaseRecipe& original);

    const CaseRecipe& original() const { return original_; }
    /// `change` makes the original simpler.
    template <std::invocable<CaseRecipe&> Change>
    void propose(Change&& change) {
        CaseRecipe candidate = original_;
        change(candidate);
        consider(std::move(candidate));
    }
    std::vector<CaseRecipe> take() { return std::move(accepted_); }

  private:
    void consider(CaseRecipe candidate);

    const CaseRecipe& original_;
    Measure measure_;
    std::string violation_;
    std::vector<CaseRecipe> accepted_;
};

/// Fewer elements, literal arrays, fewer overrides, simpler numbers.
void propose_lengths(Candidates& candidates);
void propose_values(Candidates& candidates);
void propose_options(Candidates& candidates);

}  // namespace gradguard::harness
