// SPDX-License-Identifier: Apache-2.0
// Agreement with the oracle: the oracle is the model, and each step is judged from the state that the subject itself
// left.
#include "harness/campaign/property_groups.h"

namespace gradguard::harness {
namespace {

constexpr std::uint32_t kTrajectorySteps = 5;

PropertyVerdict agrees(const Property& /*property*/, const Bench& bench, const Case& c) {
    Subject& subject = bench.subject();
    return {true, judge_case(c, subject.step(c), subject.abilities())};
}

CaseShape guarded_shape(const Abilities& abilities, std::uint64_t index) {
    return valid_shape(abilities, Operation::kGuardedStep, index);
}

CaseShape trajectory_shape(const Abilities& abilities, std::uint64_t index) {
    CaseShape shape = guarded_shape(abilities, index);
    shape.max_later_steps = kTrajectorySteps;
    return shape;
}

CaseShape balanced_shape(const Abilities& abilities, std::uint64_t index) {
    CaseShape shape = guarded_shape(abilities, index);
    shape.balanced = true;
    shape.bad_values = false;
    shape.any_bits_in_state = false;
    return shape;
}

CaseShape update_shape(const Abilities& abilities, std::uint64_t index) {
    CaseShape shape = valid_shape(abilities, Operation::kUnguardedStep, index);
    shape.max_later_steps = 2;
    return shape;
}

CaseShape statistics_shape(const Abilities& abilities, std::uint64_t index) {
    return valid_shape(abilities, Operation::kStatistics, index);
}

bool has_unguarded(const Abilities& abilities) { return abilities.unguarded; }

}  // namespace

std::vector<Property> agreement_properties() {
    return {
        {"guarded_step",
         "a guarded step agrees with the oracle: statistics, decision, coefficients, update, step counts", 8,
         applies_to_all, guarded_shape, agrees},
        {"trajectory", "several guarded steps, some of them skipped, agree with the oracle one by one", 4,
         applies_to_all, trajectory_shape, agrees},
        {"balanced_step", "a guarded step agrees with the oracle on inputs that can fill the bounds", 4, applies_to_all,
         balanced_shape, agrees},
        {"unguarded_step", "unguarded steps agree with the oracle, non-finite gradients included", 4, has_unguarded,
         update_shape, agrees},
        {"statistics", "the statistics of a scan agree with the oracle", 4, has_norm, statistics_shape, agrees},
    };
}

}  // namespace gradguard::harness
