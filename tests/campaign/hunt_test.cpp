// SPDX-License-Identifier: Apache-2.0
// The search for worst inputs: it finds what fills the bounds, the device does what the model said, and a find is a
// case like any other.
#include "harness/campaign/hunt.h"

#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>

#include "harness/campaign/hunt_element.h"
#include "harness/campaign/hunt_norm.h"
#include "harness/case/case_file.h"

namespace gradguard::harness {
namespace {

/// The climb ends by its evaluations, so that the finds are the same on every machine, however slow.
HuntOptions options(std::uint64_t evaluations) {
    HuntOptions options;
    options.seconds = 600.0;
    options.evaluations = evaluations;
    return options;
}

TEST(Hunt, FillsTheBoundsOnBalancedInputs) {
    const std::pair<const char*, double> rows[] = {{"m/fmad", 0.6},   {"v/fmad", 0.6},   {"p/fmad", 0.5},
                                                   {"m/nofmad", 0.8}, {"v/nofmad", 0.8}, {"p/nofmad", 0.65}};
    for (const auto& [name, least] : rows) {
        const Find find = hunt(name, options(2000000));
        EXPECT_GE(find.fraction, least) << name;
        EXPECT_LE(find.fraction, 1.0) << name;
        EXPECT_TRUE(find.verdict.ok()) << name;
    }
}

TEST(Hunt, FillsTheTreesBoundInOneBlockAndInSeveral) {
    for (const char* name : {"norm", "norm/4096"}) {
        const Find find = hunt(name, options(2000000));
        EXPECT_GE(find.fraction, 0.4) << name;
        EXPECT_LE(find.fraction, 1.0) << name;
        EXPECT_TRUE(find.verdict.ok()) << name;
    }
}

TEST(Hunt, TheDeviceDoesWhatTheClimbPredicted) {
    // What the climb takes for a share of the bound is its first order; the judge measures the same.
    for (const char* name : {"m/fmad", "v/nofmad", "p/fmad"}) {
        const Find find = hunt(name, options(300000));
        EXPECT_EQ(find.verdict.worst[static_cast<std::size_t>(find.objective.quantity)].fraction, find.climbed) << name;
    }
}

TEST(Hunt, DrivesIntermediatesToTheEdgesOfTheRange) {
    for (const auto& objective : hunt_objectives()) {
        if (objective.fills_bound) continue;
        const Find find = hunt(objective.name, options(300000));
        EXPECT_GT(find.climbed, -0x1p-10) << objective.name;  // as a share of the edge
        EXPECT_TRUE(find.verdict.ok()) << objective.name;
        EXPECT_FALSE(find.place.empty());
    }
}

TEST(Hunt, TheSameSeedFindsTheSameAndAnotherAnother) {
    const auto text = [](std::uint64_t seed) {
        HuntOptions o = options(20000);
        o.seed = seed;
        return case_to_json(hunt("p/fmad", o).worst_case);
    };
    EXPECT_EQ(text(1), text(1));
    EXPECT_NE(text(1), text(2));
}

TEST(Hunt, AFindIsACaseThatReplays) {
    const Find find = hunt("v/fmad", options(20000));
    const Case again = case_from_json(case_to_json(find.worst_case));
    const auto subject = make_subject(find.objective.subject);
    const CaseVerdict verdict = judge_case(again, subject->step(again), subject->abilities());
    EXPECT_TRUE(verdict.ok());
    const auto v = static_cast<std::size_t>(Quantity::kSecondMoment);
    EXPECT_EQ(verdict.worst[v].fraction, find.verdict.worst[v].fraction);
    EXPECT_EQ(again.subject, "vgpu/fmad");
}

TEST(Hunt, ObjectivesHaveTheirOwnNamesAndAnUnknownOneIsRefused) {
    std::set<std::string> names;
    for (const auto& objective : hunt_objectives()) names.insert(objective.name);
    EXPECT_EQ(names.size(), hunt_objectives().size());
    EXPECT_TRUE(names.contains("norm"));
    try {
        hunt("q", options(1));
        ADD_FAILURE() << "no error was thrown";
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("m/nofmad"), std::string::npos);
    }
}

TEST(Climb, AMutationKeepsSignAndFiniteness) {
    Random random(1);
    std::set<float> seen;
    for (int i = 0; i < 10000; ++i) {
        const float x = mutated(i % 2 == 0 ? -3.4e38F : 1.5F, random);
        EXPECT_TRUE(std::isfinite(x));
        EXPECT_EQ(x < 0.0F, i % 2 == 0);
        seen.insert(x);
    }
    EXPECT_GT(seen.size(), 1000U);
}

TEST(Climb, ABudgetEndsByEvaluationsOrByTime) {
    ClimbBudget few(600.0, 3);
    EXPECT_TRUE(few.take() && few.take() && few.take());
    EXPECT_FALSE(few.take());
    EXPECT_EQ(few.used(), 3U);
    ClimbBudget none(0.0, 0);
    EXPECT_FALSE(none.take());
}

TEST(Climb, ANormOfAnotherShapeIsRefused) {
    Random random(1);
    ClimbBudget budget(1.0, 10);
    for (const std::uint64_t elements : {0U, 100U, 300U, 3U * 1024U, 1U << 20U}) {
        EXPECT_THROW(climb_norm(elements, random, budget), std::invalid_argument) << elements;
    }
}

TEST(Climb, NormValuesStayBalanced) {
    Random random(1);
    ClimbBudget budget(600.0, 1200000);
    const NormFind find = climb_norm(512, random, budget);
    ASSERT_EQ(find.values.size(), 512U);
    for (const float value : find.values) {
        EXPECT_GE(value, 1.0F);
        EXPECT_LE(value, 2.0F);
    }
}

}  // namespace
}  // namespace gradguard::harness
