// SPDX-License-Identifier: Apache-2.0
// All losses of the device at every call, and all damages to every summary: every group with every operation.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/faults/check_points.h"

namespace gradguard::testing {
namespace {

using harness::Fate;

class EveryFault : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
  protected:
    const Group& group() const { return group_named(std::get<0>(GetParam())); }
    const Operation& operation() const { return operation_named(std::get<1>(GetParam())); }
};

TEST_P(EveryFault, OfACallHarmsNothing) {
    const Enumeration found = fail_every_call(group(), operation(), std::nullopt);
    EXPECT_EQ(found.points, total(contract_calls(group(), operation())));
    EXPECT_EQ(found.problems, std::vector<std::string>{});
}

TEST_P(EveryFault, ThatLosesTheDeviceHarmsNothing) {
    for (const Fate fate : {Fate::kDropped, Fate::kHalfDone, Fate::kDone}) {
        const Enumeration found = fail_every_call(group(), operation(), fate);
        EXPECT_EQ(found.points, total(contract_calls(group(), operation())));
        EXPECT_EQ(found.problems, std::vector<std::string>{});
    }
}

TEST_P(EveryFault, ThatDamagesASummaryHarmsNothing) {
    const CallCounts calls = contract_calls(group(), operation());
    if (!calls.contains(harness::DeviceCall::kReadback)) {
        EXPECT_FALSE(calls.contains(harness::DeviceCall::kReadbackWait));
        return;  // nothing is read back that could be damaged
    }
    const Enumeration found = damage_every_summary(group(), operation());
    EXPECT_EQ(found.points, damages(group()).size());
    EXPECT_EQ(found.problems, std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Faults, EveryFault,
                         ::testing::Combine(::testing::ValuesIn(group_names()), ::testing::ValuesIn(operation_names())),
                         [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

}  // namespace
}  // namespace gradguard::testing
