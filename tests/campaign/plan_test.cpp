// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace gradguard::testing {
namespace {

using harness::Abilities;
using harness::Plan;
using harness::Property;

std::vector<const Property*> all() {
    std::vector<const Property*> result;
    for (const Property& property : harness::properties()) result.push_back(&property);
    return result;
}

TEST(Plan, EachPairGetsCasesByItsWeight) {
    const Plan plan(all(), {{"a", {}}, {"b", {}}});
    std::uint64_t round = 0;
    for (const auto& pair : plan.pairs()) round += pair.property->weight;
    std::map<std::size_t, unsigned> seen;
    for (std::uint64_t number = 0; number < 3 * round; ++number) ++seen[plan.at(number).pair];
    ASSERT_EQ(seen.size(), plan.pairs().size());
    for (const auto& [pair, cases] : seen) EXPECT_EQ(cases, 3 * plan.pairs()[pair].property->weight);
}

TEST(Plan, APropertyNeverDrawsTheSameCaseTwice) {
    const Plan plan(all(), {{"a", {}}, {"b", {}}});
    std::map<const Property*, std::set<std::uint64_t>> indices;
    for (std::uint64_t number = 0; number < 2000; ++number) {
        const Plan::Place place = plan.at(number);
        EXPECT_TRUE(indices[plan.pairs()[place.pair].property].insert(place.index).second);
    }
}

TEST(Plan, EveryPropertyComesEarly) {
    const Plan plan(all(), {{"a", {}}});
    std::set<std::size_t> seen;
    for (std::uint64_t number = 0; number < 60; ++number) seen.insert(plan.at(number).pair);
    EXPECT_EQ(seen.size(), plan.pairs().size());
}

TEST(Plan, ASubjectGetsOnlyWhatItOffers) {
    Abilities foreign;
    foreign.norm = harness::NormKind::kWithinBound;
    foreign.skips = foreign.validates = foreign.unguarded = foreign.maximize = false;
    const Plan plan(all(), {{"foreign", foreign}});
    std::set<std::string> names;
    for (const auto& pair : plan.pairs()) names.insert(pair.property->name);
    EXPECT_TRUE(names.contains("guarded_step"));
    EXPECT_TRUE(names.contains("tensor_split"));
    for (const char* name : {"unguarded_step", "skip_changes_nothing", "invalid_guarded_step", "maximize_mirrors",
                             "scan_repeated", "values_times_power"}) {
        EXPECT_FALSE(names.contains(name)) << name;
    }
}

TEST(Properties, NamesAreDistinctAndFound) {
    std::set<std::string> names;
    for (const Property& property : harness::properties()) {
        EXPECT_TRUE(names.insert(property.name).second) << property.name;
        EXPECT_EQ(harness::find_property(property.name), &property);
    }
    EXPECT_EQ(harness::find_property("no_such"), nullptr);
    EXPECT_EQ(harness::find_property("")->name, "guarded_step");
}

}  // namespace
}  // namespace gradguard::testing
