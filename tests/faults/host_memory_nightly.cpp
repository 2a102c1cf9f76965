// SPDX-License-Identifier: Apache-2.0
// The host runs out of memory at every allocation of a step that also loads and decodes the kernels, and of one that
// all observers watch.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/faults/allocation_points.h"

namespace gradguard::testing {
namespace {

void expect_harmless(const AllocationPoints& found) {
    EXPECT_GT(found.thrown, 0U);
    for (const std::string& problem : found.problems) ADD_FAILURE() << problem;
}

// One module each: loading it takes most of some 18,000 allocations.
TEST(HostMemory, EveryAllocationOfAFirstScanThatFailsHarmsNothing) {
    expect_harmless(
        fail_every_allocation(group_named("one_element"), operation_named("gradient_stats_sync"), Bench::kCold));
}

TEST(HostMemory, EveryAllocationOfAFirstUpdateThatFailsHarmsNothing) {
    expect_harmless(fail_every_allocation(group_named("one_element"), operation_named("adamw_step"), Bench::kCold));
}

using Step = std::tuple<std::string, std::string>;
class EveryAllocation : public ::testing::TestWithParam<Step> {
  protected:
    const Group& group() const { return group_named(std::get<0>(GetParam())); }
    const Operation& operation() const { return operation_named(std::get<1>(GetParam())); }
};

TEST_P(EveryAllocation, OfAStepThatFailsHarmsNothing) {
    expect_harmless(fail_every_allocation(group(), operation(), Bench::kWarm));
}

TEST_P(EveryAllocation, OfAnObservedStepThatFailsHarmsNothing) {
    expect_harmless(fail_every_allocation(group(), operation(), Bench::kObserved));
}

INSTANTIATE_TEST_SUITE_P(HostMemory, EveryAllocation,
                         ::testing::Combine(::testing::Values("first", "later_amsgrad", "bad_skip", "bad_error"),
                                            ::testing::ValuesIn(operation_names())),
                         [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

}  // namespace
}  // namespace gradguard::testing
