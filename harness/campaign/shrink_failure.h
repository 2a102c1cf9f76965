// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "harness/campaign/properties.h"
#include "harness/generators/recipe.h"

namespace gradguard::harness {

struct ShrunkFailure {
    CaseRecipe recipe;
    PropertyVerdict verdict;
    std::uint64_t evaluations = 0;  ///< Cases run.
    std::uint64_t steps = 0;        ///< Simplifications that still failed.
};

/// The simplest failing recipe that is found greedily: the first simpler one that fails replaces the present one, until
/// none does or `evaluations` cases have been run. `recipe` must fail `check`.
ShrunkFailure shrink_failure(const CaseRecipe& recipe, const std::function<PropertyVerdict(const CaseRecipe&)>& check,
                             std::uint64_t evaluations, const std::atomic<bool>* stop = nullptr);

/// How simple a case is: elements of its gradients, how many of their values (of all steps) are not zero, and of all
/// values.
struct CaseSize {
    std::uint64_t elements = 0, nonzero_gradients = 0, nonzero_values = 0;
};
CaseSize size_of(const Case& c);

}  // namespace gradguard::harness
