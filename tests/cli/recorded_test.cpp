// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::run_program;

/// Runs all steps of one recorded training run, in the order of their file names.
json run_recorded(const std::string& name, const std::vector<std::string>& flags) {
    std::vector<std::string> arguments{"step", "--json"};
    const std::filesystem::path folder =
        std::filesystem::path(GRADGUARD_SOURCE_DIR) / "property_tests" / "recorded" / name;
    for (const auto& file : std::filesystem::directory_iterator(folder)) arguments.push_back(file.path().string());
    std::sort(arguments.begin() + 2, arguments.end());
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
    return ended.json();
}

std::size_t overflows(const json& run) {
    return static_cast<std::size_t>(std::count_if(run["steps"].begin(), run["steps"].end(),
                                                  [](const json& step) { return step["skip_reason"] == "NonFinite"; }));
}

class Recorded : public ::testing::TestWithParam<const char*> {};

TEST_P(Recorded, EveryStepIsWithinBoundsInBothBuilds) {
    for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
             {}, {"--fmad", "off", "--schedule-seed", "7"}, {"--max-norm", "0.1", "--learning-rate", "0.01"}}) {
        const json run = run_recorded(GetParam(), flags);
        EXPECT_EQ(run["within_bounds"], true);
        EXPECT_GE(run["steps"].size(), 2U);
    }
}

TEST_P(Recorded, ObserversFindNothingUnderAnySchedule) {
    for (int seed = 0; seed < 20; ++seed) {
        for (const char* const build : {"on", "off"}) {
            const json run = run_recorded(
                GetParam(), {"--observe", "all", "--fmad", build, "--schedule-seed", std::to_string(seed)});
            EXPECT_EQ(run["findings"], json::array()) << "seed " << seed << " fmad " << build;
            EXPECT_EQ(run["nothing_to_check"], json::array()) << "seed " << seed << " fmad " << build;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Runs, Recorded, ::testing::Values("bf16_transformer", "f16_loss_scaling", "f32_digits"));

TEST(RecordedRun, TheTooLargeLossScaleIsSkippedAndTheRestIsNot) {
    const json run = run_recorded("f16_loss_scaling", {});
    EXPECT_EQ(overflows(run), 1U);
    EXPECT_EQ(run["steps"].back()["skip_reason"], nullptr);
    EXPECT_EQ(overflows(run_recorded("bf16_transformer", {})), 0U);
}

}  // namespace
}  // namespace gradguard
