// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/abilities.h"
#include "harness/generators/recipe.h"
#include "reference/fp64/violation.h"

namespace gradguard::harness {

/// What kind of case is wanted. Everything valid that the contract allows is drawn unless it is narrowed here.
struct CaseShape {
    Abilities abilities;  ///< Draws nothing that the subject does not claim to take.
    Operation operation = Operation::kGuardedStep;
    std::uint64_t max_elements = 256;  ///< Of the whole group; sizes straddle every constant up to it.
    std::uint64_t min_elements = 0;
    std::uint32_t max_entries = 6;
    std::uint32_t max_later_steps = 0;
    bool bad_values = true;         ///< NaN and infinities among the gradients (in some cases).
    bool any_bits_in_state = true;  ///< Old parameters and moments of every class, not only ordinary ones.
    bool balanced = false;          ///< Fill::kBalanced throughout, clip 1 or ordinary: inputs that can fill a bound.
    bool invalid = false;           ///< Exactly one rule of contract section 3 is broken, at a drawn place.
    bool exact_group_elements = false;  ///< The group has max_elements elements (for throughput figures).
};

/// The `index`-th case of a property under `seed`: a random stream of its own made from the three, so that it does not
/// depend on which others were drawn. Same arguments, same recipe, on every machine.
CaseRecipe draw_case(const CaseShape& shape, std::uint64_t seed, std::string_view property, std::uint64_t index);

/// Names of the rules that CaseShape::invalid may break in a case of this operation, each as likely as the others.
std::vector<std::string_view> invalid_rules(Operation operation);

/// What the oracle finds wrong with a case before its first step or with a later step's control; nothing for a valid
/// one. Looks at no values.
std::optional<reference::Violation> violation_of(const Case& c);
std::optional<reference::Violation> violation_of(const CaseRecipe& recipe);

/// Simpler recipes, most aggressive first: fewer entries, fewer steps, shorter tensors, plain options, then simpler
/// fills (zero with few overrides), then simpler numbers. Each is strictly simpler by a well-founded measure, so that
/// repeated shrinking ends. Valid recipes shrink to valid ones; an invalid one keeps its broken rule.
std::vector<CaseRecipe> shrink(const CaseRecipe& recipe);

/// What was hit, by name ("gradients/subnormal", "dtype/BF16", "geometry/1025", "options/amsgrad", "entries/empty
/// first", "skip/NonFinite", ...): counts of cases.
using Coverage = std::map<std::string, std::uint64_t>;
void add_coverage(Coverage& total, const Case& c);
/// Names that any long enough run of this shape must hit; the campaign fails when one was not hit in `cases` cases.
/// Empty for runs that are too short to promise anything.
std::vector<std::string> coverage_floor(const CaseShape& shape, std::uint64_t cases);

}  // namespace gradguard::harness
