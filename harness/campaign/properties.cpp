// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/properties.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "harness/campaign/property_groups.h"

namespace gradguard::harness {
namespace {

constexpr std::uint64_t kUsualElements = 256;
constexpr std::uint64_t kSeveralBlocks = 4200;
constexpr std::uint64_t kLargeScan = 70000;

std::vector<Property> all_properties() {
    std::vector<Property> all;
    for (auto* const group :
         {agreement_properties, update_properties, guarded_properties, statistics_properties, rejection_properties}) {
        std::vector<Property> part = group();
        all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
    }
    return all;
}

bool takes(const Abilities& abilities, const Case& c) {
    if (c.options.amsgrad && !abilities.amsgrad && c.operation != Operation::kStatistics) return false;
    if (c.options.maximize && !abilities.maximize && c.operation != Operation::kStatistics) return false;
    if (c.operation == Operation::kUnguardedStep && !abilities.unguarded) return false;
    return std::ranges::all_of(c.entries,
                               [&](const CaseEntry& entry) { return abilities.takes(entry.gradients.layout.dtype); });
}

}  // namespace

Subject& Bench::other(const std::string& name) const {
    std::unique_ptr<Subject>& kept = others_[name];
    if (kept == nullptr) kept = factory_(name);
    return *kept;
}

std::span<const Property> properties() {
    static const std::vector<Property> all = all_properties();
    return all;
}

const Property* find_property(std::string_view name) {
    const std::span<const Property> all = properties();
    if (name.empty()) return all.data();
    const auto at = std::ranges::find(all, name, &Property::name);
    return at == all.end() ? nullptr : &*at;
}

CaseShape valid_shape(const Abilities& abilities, Operation operation, std::uint64_t index) {
    CaseShape shape;
    shape.abilities = abilities;
    shape.operation = operation;
    shape.max_elements = index % 32 == 31 ? kSeveralBlocks : kUsualElements;
    if (operation == Operation::kStatistics && index % 256 == 255) shape.max_elements = kLargeScan;
    return shape;
}

CaseShape shape_of(const Property& property, const Abilities& abilities, const ShapeOptions& options,
                   std::uint64_t index) {
    CaseShape shape = property.shape(abilities, index);
    if (options.elements) {
        shape.max_elements = *options.elements;
        shape.exact_group_elements = true;
    }
    return shape;
}

bool accepts(const Property& property, const Abilities& abilities, const Case& c) {
    return property.applies(abilities) && takes(abilities, c);
}

}  // namespace gradguard::harness
