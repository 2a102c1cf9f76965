// SPDX-License-Identifier: Apache-2.0
// Every device call of a step fails in turn, and every summary is damaged in turn. The losses and damages that are left
// out here for their number run in device_faults_nightly.cpp.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/faults/check_points.h"

namespace gradguard::testing {
namespace {

using harness::Fate;

class EveryCall : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(EveryCall, ThatFailsIsTheContractsErrorAndHarmsNothing) {
    const Group& group = group_named(std::get<0>(GetParam()));
    const Operation& operation = operation_named(std::get<1>(GetParam()));
    const Enumeration found = fail_every_call(group, operation, std::nullopt);
    EXPECT_EQ(found.points, total(contract_calls(group, operation)));
    EXPECT_EQ(found.problems, std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Faults, EveryCall,
                         ::testing::Combine(::testing::Values("first_amsgrad", "later", "bad_skip", "bad_error",
                                                              "small", "empty", "skipped"),
                                            ::testing::ValuesIn(operation_names())),
                         [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

TEST(Faults, ADeviceLostAtAnyCallIsTheContractsErrorAndHarmsNothing) {
    const std::pair<const char*, const char*> steps[] = {
        {"later_amsgrad", "guarded_adamw_step"}, {"bad_error", "guarded_adamw_step"}, {"first", "adamw_step"}};
    for (const auto& [group, operation] : steps) {
        for (const Fate fate : {Fate::kDropped, Fate::kHalfDone, Fate::kDone}) {
            const Enumeration found = fail_every_call(group_named(group), operation_named(operation), fate);
            EXPECT_EQ(found.points, total(contract_calls(group_named(group), operation_named(operation))));
            EXPECT_EQ(found.problems, std::vector<std::string>{}) << group << ' ' << operation;
        }
    }
}

TEST(Faults, EveryDamageToEverySummaryIsRefusedAndHarmsNothing) {
    for (const char* name : {"later_amsgrad", "bad_skip"}) {
        const Group& group = group_named(name);
        const Enumeration found = damage_every_summary(group, operation_named("guarded_adamw_step"));
        EXPECT_EQ(found.points, damages(group).size());
        EXPECT_EQ(found.problems, std::vector<std::string>{}) << name;
    }
}

// 3 non-empty entries: a scan of 1 + 2 launches each with a buffer, 4 outputs each, two modules, one readback.
TEST(Faults, AStepOfThreeTensorsHasThisManyPoints) {
    const Group& group = group_named("later_amsgrad");
    ASSERT_EQ(group.live_sizes(), (std::vector<std::uint64_t>{1500, 40, 2050}));
    const std::size_t copies_in = 3, scratch = 5, scans = 5, modules = 2, readback = 2, outputs = 12, updates = 3,
                      waits = 2, copies_out = 12;
    EXPECT_EQ(fail_every_call(group, operation_named("guarded_adamw_step"), std::nullopt).points,
              copies_in + scratch + scans + modules + readback + outputs + updates + waits + copies_out);
}

TEST(Faults, AStepThatCallsNoDeviceHasNoPoint) {
    for (const Operation& operation : operations()) {
        EXPECT_EQ(fail_every_call(group_named("empty"), operation, std::nullopt).points, 0U) << operation.name;
    }
}

}  // namespace
}  // namespace gradguard::testing
