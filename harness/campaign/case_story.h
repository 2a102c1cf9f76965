// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/properties.h"

namespace gradguard::harness {

/// An element of an entry in a step, all counted from 0.
struct ElementPlace {
    std::uint64_t step = 0, entry = 0, index = 0;
};

/// What is known of the place to explain; the rest is chosen: where the property failed, else where the error is
/// greatest, else the first updated element.
struct ElementChoice {
    std::optional<std::uint64_t> step, entry, index;
};

/// One step: what the oracle makes of the state that the subject was in, and what the subject did.
struct StepStory {
    std::string control;
    std::vector<std::string> expected, got;  ///< Lines that correspond to each other as far as possible.
    std::vector<std::string> norm;           ///< explain_norm(); empty where there was no scan.
};

/// A case told step by step.
struct CaseStory {
    PropertyVerdict verdict;
    std::vector<StepStory> steps;
    std::optional<ElementPlace> element;  ///< Absent where no element was updated.
    std::vector<std::string> lines;       ///< explain_element() of it.
};

/// Runs the case once for the property and once for the story. Throws std::invalid_argument for a place that the case
/// does not have or that no step updated.
CaseStory tell_case(const Property& property, const Bench& bench, const Case& c, const ElementChoice& choice);

/// The step-th step as a case of its own, from the state that the steps before it left. `outcome` must have those.
Case step_case(const Case& c, const Outcome& outcome, std::size_t step);

}  // namespace gradguard::harness
