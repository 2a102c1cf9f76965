// SPDX-License-Identifier: Apache-2.0
// Every property on every available device, both builds of the kernels, all observers on, several schedules: each drawn
// case brings its own schedule seed.
#include <gtest/gtest.h>

#include <cctype>

#include "property_tests/subject_factory.h"

namespace gradguard::testing {
namespace {

constexpr std::uint64_t kCases = 200;
constexpr std::uint64_t kFewCases = 40;  ///< Of the properties that run twenty scans for one case.
constexpr std::uint64_t kSeed = 20240229;

struct PropertyOnSubject {
    std::string property, subject;
};
void PrintTo(const PropertyOnSubject& pair, std::ostream* stream) {
    *stream << pair.property << " on " << pair.subject;
}

std::vector<PropertyOnSubject> all_pairs() {
    std::vector<PropertyOnSubject> pairs;
    for (const harness::Property& property : harness::properties()) {
        for (const char* subject : {"vgpu/fmad", "vgpu/nofmad"}) pairs.push_back({property.name, subject});
    }
    return pairs;
}

class Property : public ::testing::TestWithParam<PropertyOnSubject> {};

TEST_P(Property, HoldsInEveryDrawnCase) {
    harness::CampaignOptions options;
    options.seed = kSeed;
    options.cases = GetParam().property == "scan_repeated" ? kFewCases : kCases;
    options.subjects = {GetParam().subject};
    options.properties = {harness::find_property(GetParam().property)};
    options.factory = subjects();
    options.failure_folder = std::string(GRADGUARD_BINARY_DIR) + "/gradguard-cases";
    const harness::CampaignResult result = run_campaign(options);
    EXPECT_EQ(problems_of(result), "");
    EXPECT_EQ(result.cases, *options.cases);
}

INSTANTIATE_TEST_SUITE_P(Each, Property, ::testing::ValuesIn(all_pairs()), [](const auto& pair) {
    std::string name = pair.param.property + "_" + pair.param.subject;
    for (char& letter : name) {
        if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
    }
    return name;
});

}  // namespace
}  // namespace gradguard::testing
