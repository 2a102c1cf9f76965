// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/case/case.h"
#include "harness/compare/case_judge.h"
#include "harness/generators/generators.h"
#include "harness/subjects/subject.h"

namespace gradguard::harness {

/// Opens a subject by name, a new one for the caller; make_subject() with its options bound.
using SubjectFactory = std::function<std::unique_ptr<Subject>(std::string_view name)>;

/// The subject that a property looks at and, for relations between two subjects, the way to others. One for each
/// thread.
class Bench {
  public:
    Bench(Subject& subject, const SubjectFactory& factory) : subject_(subject), factory_(factory) {}

    Subject& subject() const { return subject_; }
    /// Another subject, opened on first use and kept.
    Subject& other(const std::string& name) const;

  private:
    Subject& subject_;
    const SubjectFactory& factory_;
    mutable std::map<std::string, std::unique_ptr<Subject>> others_;
};

/// What a property found in one case.
struct PropertyVerdict {
    bool applicable = true;  ///< False: the case does not meet the relation's preconditions, and nothing was asserted.
    CaseVerdict verdict;

    bool failed() const { return applicable && !verdict.ok(); }
};

/// What narrows the cases of a property beyond its own wishes.
struct ShapeOptions {
    std::optional<std::uint64_t> elements;  ///< The group has exactly so many.
};

/// Something that is true of every right subject, looked at case by case.
struct Property {
    std::string name;  ///< Stable: it stands in case files.
    std::string fact;  ///< One sentence.
    unsigned weight;   ///< How many cases it gets among those of the others.
    /// Whether the subject offers what is asserted.
    bool (*applies)(const Abilities&);
    /// Which cases it wants. `index`: of the case; a few indices get large groups.
    CaseShape (*shape)(const Abilities&, std::uint64_t index);
    PropertyVerdict (*check)(const Property&, const Bench&, const Case&);
};

/// All, in a fixed order: agreement with the oracle, the relations of the update, of the statistics and of the guard,
/// rejection.
std::span<const Property> properties();
/// Null for an unknown name. An empty name is the first one: agreement of guarded steps with the oracle.
const Property* find_property(std::string_view name);

/// The shape of a property's index-th case.
CaseShape shape_of(const Property& property, const Abilities& abilities, const ShapeOptions& options,
                   std::uint64_t index);

/// Whether the property asserts something of such a case on a subject with these abilities: a case file may come from
/// another subject.
bool accepts(const Property& property, const Abilities& abilities, const Case& c);

}  // namespace gradguard::harness
