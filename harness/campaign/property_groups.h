// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "harness/campaign/properties.h"

namespace gradguard::harness {

/// The parts of properties(), each in its own file.
std::vector<Property> agreement_properties();
std::vector<Property> statistics_properties();
std::vector<Property> update_properties();
std::vector<Property> guarded_properties();
std::vector<Property> rejection_properties();

/// For Property::applies.
inline bool applies_to_all(const Abilities&) { return true; }
inline bool has_contract_tree(const Abilities& abilities) { return abilities.norm == NormKind::kContractTree; }
inline bool has_norm(const Abilities& abilities) { return abilities.norm != NormKind::kNone; }
inline bool can_skip(const Abilities& abilities) { return abilities.skips; }

/// Valid cases of an operation; every 32nd group is of up to 4,200 elements, so that several blocks take part, and a
/// very few are larger where the operation only scans.
CaseShape valid_shape(const Abilities& abilities, Operation operation, std::uint64_t index);
/// Guarded steps of that kind, up to three of them.
inline CaseShape steps_shape(const Abilities& abilities, std::uint64_t index) {
    CaseShape shape = valid_shape(abilities, Operation::kGuardedStep, index);
    shape.max_later_steps = 2;
    return shape;
}

}  // namespace gradguard::harness
