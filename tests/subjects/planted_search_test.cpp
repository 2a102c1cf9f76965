// SPDX-License-Identifier: Apache-2.0
// Drawn cases and the judge against every planted fault, and against what has none.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "harness/compare/case_judge.h"
#include "harness/compare/report.h"
#include "harness/generators/generators.h"
#include "harness/subjects/planted.h"

namespace gradguard {
namespace {

using namespace harness;

constexpr std::uint64_t kCases = 20'000;
constexpr std::uint64_t kSeed = 1;

/// The first drawn case on which the judge finds something; its words go to `failure`.
std::optional<std::uint64_t> first_failure(Subject& subject, std::uint64_t max_elements, std::string& failure) {
    CaseShape shape;
    shape.abilities = subject.abilities();
    shape.max_elements = max_elements;
    for (std::uint64_t i = 0; i < kCases; ++i) {
        const Case c = realise(draw_case(shape, kSeed, "agreement", i));
        const CaseVerdict verdict = judge_case(c, subject.step(c), subject.abilities(), {.measure = false});
        if (verdict.ok()) continue;
        failure = describe(verdict.failures.front());
        return i;
    }
    return std::nullopt;
}

class PlantedSearch : public ::testing::TestWithParam<std::string> {};

TEST_P(PlantedSearch, FaultIsFound) {
    const auto& faults = planted_faults();
    const auto fault = std::find_if(faults.begin(), faults.end(), [](const auto& f) { return f.name == GetParam(); });
    ASSERT_NE(fault, faults.end());
    const auto subject = make_planted_subject(*fault, {});
    std::string failure;
    const auto found = first_failure(*subject, fault->least_elements > 64 ? 4096 : 64, failure);
    ASSERT_TRUE(found) << "not in " << kCases << " cases";
    RecordProperty("cases", std::to_string(*found + 1));
}

class CleanSearch : public ::testing::TestWithParam<std::string> {};

TEST_P(CleanSearch, NothingIsFound) {
    const auto subject = make_subject(GetParam());
    std::string failure;
    const auto found = first_failure(*subject, 64, failure);
    EXPECT_FALSE(found) << "case " << *found << ": " << failure;
}

std::vector<std::string> names_of_faults() {
    std::vector<std::string> names;
    for (const PlantedFault& fault : planted_faults()) {
        if (fault.level != "clean") names.emplace_back(fault.name);
    }
    return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedSearch, ::testing::ValuesIn(names_of_faults()), test_name);
INSTANTIATE_TEST_SUITE_P(All, CleanSearch,
                         ::testing::Values("vgpu/fmad", "vgpu/nofmad", "oracle", "planted/clean-device",
                                           "planted/clean-host"),
                         test_name);

}  // namespace
}  // namespace gradguard
