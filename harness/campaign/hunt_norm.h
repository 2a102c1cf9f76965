// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "harness/campaign/climb.h"

namespace gradguard::harness {

struct NormFind {
    std::vector<float> values;  ///< [elements], in [1, 2]: squares within a factor of 4 of each other.
    double fraction = 0.0;      ///< Of the tree's bound on sumsq.
};

/// Builds the tree's worst inputs from its leaves up, keeping the best subtrees of each level, then climbs over the
/// bits of single values. `elements`: 256 times a power of two, at most 2^18; throws std::invalid_argument for others.
NormFind climb_norm(std::uint64_t elements, Random& random, ClimbBudget& budget);

}  // namespace gradguard::harness
