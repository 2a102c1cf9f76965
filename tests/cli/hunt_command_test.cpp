// SPDX-License-Identifier: Apache-2.0
// `gradguard hunt` as a user sees it: the table, the JSON, the case files that replay.
#include <gtest/gtest.h>
#include <algorithm>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using testing::Ended;
using testing::run_exactly;
using testing::TemporaryFolder;

Ended hunt(const TemporaryFolder& folder, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"hunt", "--evaluations", "20000", "--out", folder.path("finds")});
    return run_exactly(arguments);
}

TEST(HuntCommand, PrintsTheWorstFoundAgainstTheBoundWithItsReplay) {
    const TemporaryFolder folder;
    const Ended ended = hunt(folder, {"--objective", "m/fmad", "--objective", "norm"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    for (const char* part : {"worst found against bound", "m/fmad", "norm", " %", "gradguard replay "}) {
        EXPECT_NE(ended.out.find(part), std::string::npos) << part << " is not in\n" << ended.out;
    }
    EXPECT_EQ(ended.err, "");
}

TEST(HuntCommand, TheJsonNamesEachFindAndItsReplayWorks) {
    const TemporaryFolder folder;
    const Ended ended = hunt(folder, {"--objective", "v/nofmad", "--json"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const auto objectives = ended.json().at("objectives");
    ASSERT_EQ(objectives.size(), 1U);
    EXPECT_EQ(objectives[0].at("name"), "v/nofmad");
    const double fraction = objectives[0].at("worst_fraction_of_bound");
    EXPECT_GT(fraction, 0.0);
    EXPECT_LE(fraction, 1.0);
    const std::string file = folder.path("finds/v-nofmad.json");
    EXPECT_EQ(objectives[0].at("replay"), "gradguard replay " + file);
    const Ended replayed = run_exactly({"replay", file});
    EXPECT_EQ(replayed.status, 0) << replayed.out << replayed.err;
    EXPECT_NE(replayed.out.find("v stored"), std::string::npos) << replayed.out;
}

TEST(HuntCommand, TheSameSeedFindsTheSame) {
    const TemporaryFolder folder;
    const auto find = [&](const char* seed) {
        EXPECT_EQ(hunt(folder, {"--objective", "p/fmad", "--seed", seed}).status, 0);
        return testing::read_bytes(folder.path("finds/p-fmad.json"));
    };
    const std::string first = find("1");
    EXPECT_EQ(find("1"), first);
    EXPECT_NE(find("2"), first);
}

TEST(HuntCommand, BadFlagsAreOneLineAndStatusTwo) {
    const TemporaryFolder folder;
    const std::string file = folder.write("file", "");
    const std::pair<std::vector<std::string>, const char*> rows[] = {
        {{"hunt", "--objective", "q"}, "--objective: want one of norm, "},
        {{"hunt", "--time", "0s"}, "--time: want"},
        {{"hunt", "--time", "-1"}, "--time: want"},
        {{"hunt", "--time", "2d"}, "--time: want"},
        {{"hunt", "--time", "25h"}, "--time: want"},
        {{"hunt", "--seed", "x"}, "--seed: want"},
        {{"hunt", "--evaluations", "1e6"}, "--evaluations: want"},
        {{"hunt", "--out", ""}, "--out: want"},
        {{"hunt", "--objective", "m/fmad", "--out", file}, "cannot make the folder"}};
    for (const auto& [arguments, message] : rows) {
        const Ended ended = run_exactly(arguments);
        EXPECT_EQ(ended.status, 2) << message;
        EXPECT_NE(ended.err.find(message), std::string::npos) << ended.err;
        EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
        EXPECT_EQ(ended.out, "");
    }
}

TEST(HuntCommand, AListSearchesForNothing) {
    const Ended ended = run_exactly({"hunt", "--list"});
    EXPECT_EQ(ended.status, 0);
    for (const char* name : {"norm", "m/fmad", "v/nofmad", "p/overflow/fmad"}) {
        EXPECT_NE(ended.out.find(name), std::string::npos) << name;
    }
}

}  // namespace
}  // namespace gradguard
