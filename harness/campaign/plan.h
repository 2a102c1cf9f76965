// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/campaign/properties.h"

namespace gradguard::harness {

/// A property on a subject.
struct Pair {
    const Property* property = nullptr;
    std::string subject;
    Abilities abilities;
};

/// Which case a number stands for: a fixed interleaving of all pairs by their weights, endless.
class Plan {
  public:
    /// Every property on every subject that it applies to.
    struct SubjectAbilities {
        std::string name;
        Abilities abilities;
    };
    Plan(const std::vector<const Property*>& properties, const std::vector<SubjectAbilities>& subjects);

    const std::vector<Pair>& pairs() const { return pairs_; }

    struct Place {
        std::size_t pair = 0;
        std::uint64_t index = 0;  ///< For draw_case(); the same property has other indices on other subjects.
    };
    /// There must be a pair.
    Place at(std::uint64_t number) const;

  private:
    struct Slot {
        std::size_t pair;
        unsigned position;  ///< Which of the pair's cases in one round.
    };
    std::vector<Pair> pairs_;
    std::vector<std::uint64_t> subject_of_;  ///< By pair: which of the property's subjects, and how many there are.
    std::vector<std::uint64_t> subjects_of_;
    std::vector<Slot> round_;
};

/// The recipe of a pair's case.
CaseRecipe recipe_of(const Pair& pair, const ShapeOptions& options, std::uint64_t seed, std::uint64_t index);
/// Filled, with the names of property and subject in it.
Case case_of(const Pair& pair, const CaseRecipe& recipe);

}  // namespace gradguard::harness
