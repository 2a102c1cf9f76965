// SPDX-License-Identifier: Apache-2.0
// Contract section 3: every invalid case is refused, with the kind and the place that the oracle names, before any
// device call.
#include "harness/campaign/property_groups.h"

namespace gradguard::harness {
namespace {

PropertyVerdict refuses(const Property& property, const Bench& bench, const Case& c) {
    Subject& subject = bench.subject();
    PropertyVerdict result{true, judge_case(c, subject.step(c), subject.abilities())};
    for (Failure& failure : result.verdict.failures) failure.notes.push_back("property " + property.fact);
    return result;
}

template <Operation operation>
CaseShape invalid_shape(const Abilities& abilities, std::uint64_t /*index*/) {
    CaseShape shape;
    shape.abilities = abilities;
    shape.operation = operation;
    shape.max_elements = 64;
    shape.bad_values = false;
    shape.invalid = true;
    return shape;
}

bool validates(const Abilities& abilities) { return abilities.validates; }
bool validates_unguarded(const Abilities& abilities) { return abilities.validates && abilities.unguarded; }
bool validates_scans(const Abilities& abilities) { return abilities.validates && has_norm(abilities); }

}  // namespace

std::vector<Property> rejection_properties() {
    return {
        {"invalid_guarded_step", "an invalid guarded step is refused as section 3 says, before any device call", 3,
         validates, invalid_shape<Operation::kGuardedStep>, refuses},
        {"invalid_unguarded_step", "an invalid unguarded step is refused as section 3 says, before any device call", 1,
         validates_unguarded, invalid_shape<Operation::kUnguardedStep>, refuses},
        {"invalid_statistics", "an invalid scan is refused as section 3 says, before any device call", 1,
         validates_scans, invalid_shape<Operation::kStatistics>, refuses},
    };
}

}  // namespace gradguard::harness
