// SPDX-License-Identifier: Apache-2.0
// A long campaign over everything, for the nightly run.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "property_tests/subject_factory.h"

namespace gradguard::testing {
namespace {

constexpr std::uint64_t kCases = 200000;

TEST(LongCampaign, EveryPropertyHoldsAndEveryClassIsHit) {
    harness::CampaignOptions options;
    options.seed = 1;
    options.cases = kCases;
    options.jobs = std::max(1U, std::thread::hardware_concurrency());
    options.subjects = {"vgpu/fmad", "vgpu/nofmad"};
    for (const harness::Property& property : harness::properties()) options.properties.push_back(&property);
    options.factory = subjects();
    options.failure_folder = std::string(GRADGUARD_BINARY_DIR) + "/gradguard-cases";
    const harness::CampaignResult result = run_campaign(options);
    EXPECT_EQ(problems_of(result), "");
    EXPECT_EQ(result.cases, kCases);
    RecordProperty("worst_ulp", harness::short_number(harness::total_of(result).worst_ulp()));
    RecordProperty("worst_fraction_of_bound", harness::short_number(harness::total_of(result).worst_fraction()));
}

}  // namespace
}  // namespace gradguard::testing
