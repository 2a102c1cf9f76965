// SPDX-License-Identifier: Apache-2.0
// Every planted fault is found by the campaign and shrunk to the least case that shows it; the clean twins pass.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <filesystem>

#include "harness/campaign/shrink_failure.h"
#include "harness/subjects/planted.h"
#include "property_tests/subject_factory.h"

namespace gradguard::testing {
namespace {

constexpr std::uint64_t kCasesToFind = 20000;
constexpr std::uint64_t kCasesOfATwin = 3000;
constexpr std::uint64_t kMostNonzero = 4;

std::vector<std::string> names(bool clean) {
    std::vector<std::string> result;
    for (const harness::PlantedFault& fault : harness::planted_faults()) {
        if ((fault.level == "clean") == clean) result.emplace_back(fault.name);
    }
    return result;
}

harness::CampaignOptions search(const std::string& fault, std::uint64_t cases) {
    harness::CampaignOptions options;
    options.cases = cases;
    options.subjects = {"planted/" + fault};
    for (const harness::Property& property : harness::properties()) options.properties.push_back(&property);
    options.factory = subjects();
    options.failure_folder = std::string(GRADGUARD_BINARY_DIR) + "/planted-cases";
    return options;
}

std::string test_name(std::string name) {
    for (char& letter : name) {
        if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
    }
    return name;
}

class PlantedFault : public ::testing::TestWithParam<std::string> {};

TEST_P(PlantedFault, IsFoundAndShrunkToTheLeastCaseThatShowsIt) {
    const harness::CampaignResult result = run_campaign(search(GetParam(), kCasesToFind));
    ASSERT_EQ(result.failures.size(), 1) << "not found in " << result.cases << " cases";
    const harness::CampaignFailure& failure = result.failures[0];
    const harness::CaseSize size = size_of(failure.shrunk);
    std::printf("%-32s case %5llu, %4llu elements, %llu values not zero, %s\n", GetParam().c_str(),
                static_cast<unsigned long long>(failure.number.value()), static_cast<unsigned long long>(size.elements),
                static_cast<unsigned long long>(size.nonzero_values), failure.property.c_str());
    EXPECT_LE(size.nonzero_values, kMostNonzero) << show(failure.shrunk);
    for (const harness::PlantedFault& fault : harness::planted_faults()) {
        if (fault.name != GetParam()) continue;
        EXPECT_EQ(size.elements, fault.least_elements) << show(failure.shrunk);
    }
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedFault, ::testing::ValuesIn(names(false)),
                         [](const auto& fault) { return test_name(fault.param); });

class CleanTwin : public ::testing::TestWithParam<std::string> {};

TEST_P(CleanTwin, Passes) {
    const harness::CampaignResult result = run_campaign(search(GetParam(), kCasesOfATwin));
    EXPECT_EQ(problems_of(result), "");
}

INSTANTIATE_TEST_SUITE_P(Each, CleanTwin, ::testing::ValuesIn(names(true)),
                         [](const auto& twin) { return test_name(twin.param); });

}  // namespace
}  // namespace gradguard::testing
