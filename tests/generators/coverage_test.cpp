// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/generators/recipes.h"

namespace gradguard::harness {
namespace {

struct NamedShape {
    const char* name;
    CaseShape shape;
};

NamedShape shape_of(const char* name, Operation operation, std::uint64_t most, bool invalid = false) {
    NamedShape named{name, {}};
    named.shape.operation = operation;
    named.shape.max_elements = most;
    named.shape.invalid = invalid;
    named.shape.max_later_steps = 2;
    return named;
}

std::vector<NamedShape> shapes() {
    std::vector<NamedShape> all{shape_of("guarded", Operation::kGuardedStep, 256),
                                shape_of("guarded_large", Operation::kGuardedStep, 4097),
                                shape_of("guarded_8", Operation::kGuardedStep, 8),
                                shape_of("unguarded", Operation::kUnguardedStep, 256),
                                shape_of("statistics", Operation::kStatistics, 1100),
                                shape_of("exact", Operation::kGuardedStep, 64),
                                shape_of("invalid", Operation::kGuardedStep, 64, true),
                                shape_of("invalid_scan", Operation::kStatistics, 64, true),
                                shape_of("invalid_step", Operation::kUnguardedStep, 64, true),
                                shape_of("good", Operation::kGuardedStep, 64),
                                shape_of("one_entry", Operation::kGuardedStep, 64)};
    all[5].shape.exact_group_elements = true;
    all[9].shape.bad_values = false;
    all[9].shape.any_bits_in_state = false;
    all[10].shape.max_entries = 1;
    return all;
}

class CoverageOf : public ::testing::TestWithParam<NamedShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, CoverageOf, ::testing::ValuesIn(shapes()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(CoverageOf, TheFloorIsReached) {
    constexpr std::uint64_t kCases = 24000;
    Coverage coverage;
    for (std::uint64_t index = 0; index < kCases; ++index) {
        add_coverage(coverage, realise(draw_case(GetParam().shape, 1, "coverage", index)));
    }
    const std::vector<std::string> floor = coverage_floor(GetParam().shape, kCases);
    EXPECT_GE(floor.size(), GetParam().shape.invalid ? 3U : 20U);
    // A promise of one in n is kept with room to spare: chance alone never fails a run.
    for (const std::string& name : floor) EXPECT_GE(coverage[name], 40U) << name;
}

TEST(CoverageFloor, AShortRunPromisesNothing) { EXPECT_TRUE(coverage_floor({}, 100).empty()); }

TEST(CoverageFloor, WhatTheSubjectDoesNotTakeIsNotPromised) {
    CaseShape shape;
    shape.abilities.f16 = false;
    shape.abilities.amsgrad = false;
    for (const std::string& name : coverage_floor(shape, 1000000)) {
        EXPECT_NE(name, "dtype/F16");
        EXPECT_NE(name, "options/amsgrad");
    }
}

CaseRecipe group_of(const std::vector<std::uint64_t>& sizes) {
    CaseRecipe recipe;
    for (const std::uint64_t n : sizes) {
        EntryRecipe& entry = recipe.entries.emplace_back();
        entry.parameters.shape = entry.gradients.shape = {n};
    }
    return recipe;
}

Coverage coverage_of(const CaseRecipe& recipe) {
    Coverage coverage;
    add_coverage(coverage, realise(recipe));
    return coverage;
}

TEST(Coverage, EmptiesAreToldByTheirPlace) {
    const Coverage first = coverage_of(group_of({0, 3}));
    EXPECT_TRUE(first.contains("entries/empty first"));
    EXPECT_FALSE(first.contains("entries/empty last"));
    const Coverage between = coverage_of(group_of({3, 0, 3}));
    EXPECT_TRUE(between.contains("entries/empty between"));
    EXPECT_FALSE(between.contains("entries/empty first"));
    const Coverage only = coverage_of(group_of({0, 0}));
    EXPECT_TRUE(only.contains("entries/only empty"));
    EXPECT_TRUE(only.contains("skip/Empty"));
    EXPECT_TRUE(coverage_of(group_of({})).contains("entries/none"));
}

TEST(Coverage, AFiniteValueThatOverflowsOnUnscalingCounts) {
    CaseRecipe recipe = group_of({2});
    recipe.entries[0].gradients.values.overrides = {{1, 0x7F7FFFFFU}};
    EXPECT_FALSE(coverage_of(recipe).contains("gradients/infinite once unscaled"));
    recipe.control.gradient_scale = 0.5F;
    EXPECT_TRUE(coverage_of(recipe).contains("gradients/infinite once unscaled"));
    EXPECT_TRUE(coverage_of(recipe).contains("skip/NonFinite"));
}

TEST(Coverage, AnInvalidCaseCountsAsItsViolationAlone) {
    CaseRecipe recipe = group_of({2});
    recipe.options.beta1 = 1.0F;
    EXPECT_EQ(coverage_of(recipe), (Coverage{{"invalid/InvalidOption beta1", 1}, {"operation/guarded_step", 1}}));
}

TEST(Coverage, ClassesOfGradientsAreCountedOnce) {
    CaseRecipe recipe = group_of({5});
    recipe.entries[0].gradients.values.overrides = {{0, 0x80000000U}, {1, 1}, {2, 0x7FC00000U}, {3, 0x7F800001U}};
    const Coverage coverage = coverage_of(recipe);
    for (const char* name : {"zero", "minus zero", "subnormal", "quiet NaN", "signalling NaN"}) {
        EXPECT_EQ(coverage.at(std::string("gradients/") + name), 1U) << name;
    }
    EXPECT_FALSE(coverage.contains("gradients/infinity"));
}

}  // namespace
}  // namespace gradguard::harness
