// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "harness/case/case_file.h"
#include "harness/generators/generators.h"
#include "harness/subjects/subject.h"
#include "tests/cli/program.h"

namespace gradguard {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::run_exactly;
using testing::TemporaryFolder;

/// A drawn case that updates something, in a file.
std::string case_file(const TemporaryFolder& folder, const std::string& property) {
    const auto oracle = harness::make_subject("oracle");
    for (std::uint64_t index = 0;; ++index) {
        harness::CaseShape shape;
        shape.max_elements = 16;
        harness::Case c = realise(harness::draw_case(shape, 0, "cli", index));
        const harness::Outcome outcome = oracle->step(c);
        if (outcome.steps[0].entries.empty() || !outcome.steps[0].entries[0].updated) continue;
        c.property = property;
        harness::write_case(folder.path("case.json"), c);
        return folder.path("case.json");
    }
}

TEST(ReplayCommand, TellsEachStepAndTheVerdict) {
    const TemporaryFolder folder;
    const Ended ended = run_exactly({"replay", case_file(folder, "guarded_step"), "--entry", "0", "--index", "0"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    for (const char* part : {"step 0:", "norm", "entry 0, element 0", "subject vgpu/fmad", "\nwithin bounds\n"}) {
        EXPECT_NE(ended.out.find(part), std::string::npos) << part << "\n" << ended.out;
    }
}

TEST(ReplayCommand, JsonHasTheSame) {
    const TemporaryFolder folder;
    const Ended ended = run_exactly({"replay", case_file(folder, ""), "--json", "--subject", "oracle"});
    const json got = ended.json();
    EXPECT_EQ(got["property"], "guarded_step");
    EXPECT_EQ(got["subject"], "oracle");
    EXPECT_TRUE(got["ok"].get<bool>());
    EXPECT_EQ(got["steps"][0]["oracle"], got["steps"][0]["subject"]);
    EXPECT_FALSE(got["element"]["lines"].empty());
}

TEST(ReplayCommand, BadUsageIsOneLineAndStatusTwo) {
    const TemporaryFolder folder;
    const std::string good = case_file(folder, "guarded_step");
    const std::string unknown = case_file(folder, "no_such_property");
    std::filesystem::rename(unknown, folder.path("unknown.json"));
    const std::string again = case_file(folder, "guarded_step");
    ASSERT_EQ(good, again);
    const std::string broken = folder.write("broken.json", "{\"schema\": 1}");
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{},
                                               {folder.path("none")},
                                               {broken},
                                               {folder.path("unknown.json")},
                                               {good, "--subject", "x"},
                                               {good, "--entry", "99"},
                                               {good, "--index", "-1"},
                                               {good, "--step", "7"}}) {
        std::vector<std::string> words = arguments;
        words.insert(words.begin(), "replay");
        const Ended ended = run_exactly(words);
        EXPECT_EQ(ended.status, 2) << ended.err;
        EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
    }
    EXPECT_EQ(run_exactly({"replay", good, "--device", "cuda:0"}).status, 4);
}

}  // namespace
}  // namespace gradguard
