// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::run_exactly;
using testing::TemporaryFolder;

/// `check` that neither reads nor writes a corpus of the source tree.
Ended check(const TemporaryFolder& folder, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"check", "--corpus", folder.path("corpus")});
    return run_exactly(arguments);
}

struct Bad {
    std::vector<std::string> arguments;
    std::string message;  ///< Must occur.
};

TEST(CheckCommand, EachBadFlagIsOneLineAndStatusTwo) {
    const TemporaryFolder folder;
    const std::string file = folder.write("file", "");
    const std::vector<Bad> all = {
        {{"--time", "0"}, "--time: want"},
        {{"--time", "fast"}, "--time: want"},
        {{"--time", "60x"}, "--time: want"},
        {{"--time", "-1s"}, "--time: want"},
        {{"--time", "99999999999999999999s"}, "--time: want"},
        {{"--time", "1000h"}, "--time: want"},
        {{"--cases", "0"}, "--cases: want"},
        {{"--cases", "many"}, "--cases: want"},
        {{"--cases", "1e3"}, "--cases: want"},
        {{"--shard", "0/2"}, "--shard: want"},
        {{"--shard", "3/2"}, "--shard: want"},
        {{"--shard", "2"}, "--shard: want"},
        {{"--shard", "a/b"}, "--shard: want"},
        {{"--seed", "-1"}, "--seed: want"},
        {{"--seed", "18446744073709551616"}, "--seed: want"},
        {{"--jobs", "0"}, "--jobs: want"},
        {{"--jobs", "1000"}, "--jobs: want"},
        {{"--elements", "0"}, "--elements: want"},
        {{"--subject", "vgpu/none"}, "--subject: unknown subject"},
        {{"--only", "nothing"}, "--only: no property is named \"nothing\""},
        {{"--report", file}, "cannot make this folder"},
        {{"--corpus", file}, "is no folder"},
        {{"stray"}, ""},
    };
    for (const Bad& bad : all) {
        std::vector<std::string> arguments = bad.arguments;
        arguments.insert(arguments.begin(), "check");
        const Ended ended = run_exactly(arguments);
        EXPECT_EQ(ended.status, 2) << ended.err;
        EXPECT_NE(ended.err.find(bad.message), std::string::npos) << ended.err;
        EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
        EXPECT_EQ(ended.out, "");
    }
}

TEST(CheckCommand, AnUnavailableDeviceIsStatusFour) {
    const TemporaryFolder folder;
    const Ended ended = check(folder, {"--device", "cuda:0", "--cases", "1"});
    EXPECT_EQ(ended.status, 4) << ended.err;
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
}

TEST(CheckCommand, ListNamesPropertiesAndSubjects) {
    const Ended ended = run_exactly({"check", "--list"});
    EXPECT_EQ(ended.status, 0);
    for (const char* name : {"guarded_step", "good_skip_good", "vgpu/fmad", "vgpu/nofmad", "oracle"}) {
        EXPECT_NE(ended.out.find(name), std::string::npos) << name;
    }
}

TEST(CheckCommand, ListIsJsonWhereThatIsAskedFor) {
    const json got = run_exactly({"check", "--list", "--json"}).json();
    EXPECT_EQ(got["properties"][0]["name"], "guarded_step");
    EXPECT_EQ(got["subjects"][0]["name"], "vgpu/fmad");
}

TEST(CheckCommand, ARightSubjectEndsWithATableAndStatusZero) {
    const TemporaryFolder folder;
    const Ended ended = check(folder, {"--cases", "120"});
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
    EXPECT_NE(ended.out.find("within bounds: every property held in every case\n"), std::string::npos) << ended.out;
    EXPECT_EQ(ended.err, "") << "no progress line outside of a terminal";
}

TEST(CheckCommand, TheSameSeedGivesTheSameJsonWhateverTheJobs) {
    const TemporaryFolder folder;
    json first;
    for (const char* jobs : {"1", "2", "3"}) {
        json got = check(folder, {"--cases", "150", "--seed", "5", "--json", "--jobs", jobs}).json();
        EXPECT_EQ(got["jobs"], std::stoi(jobs));
        for (const char* varies : {"seconds", "cases_per_second", "jobs"}) got.erase(varies);
        if (first.is_null()) first = got;
        EXPECT_EQ(got, first);
    }
    EXPECT_EQ(first["seed"], 5);
    EXPECT_EQ(first["cases"], 150);
}

TEST(CheckCommand, ElementsMeasureGuardedSteps) {
    const TemporaryFolder folder;
    const json got = check(folder, {"--cases", "60", "--elements", "64", "--jobs", "1", "--json"}).json();
    ASSERT_EQ(got["properties"].size(), 1);
    EXPECT_EQ(got["properties"][0]["name"], "guarded_step");
    EXPECT_GT(got["cases_per_second"].get<double>(), 0);
}

TEST(CheckCommand, ATimeIsKept) {
    const TemporaryFolder folder;
    const json got = check(folder, {"--time", "300ms", "--json"}).json();
    EXPECT_GT(got["cases"], 0);
    EXPECT_GE(got["seconds"].get<double>(), 0.3);
}

TEST(CheckCommand, AReportIsWritten) {
    const TemporaryFolder folder;
    const Ended ended = check(folder, {"--cases", "100", "--report", folder.path("new/report")});
    EXPECT_EQ(ended.status, 0) << ended.err;
    for (const char* name : {"report.json", "junit.xml", "report.html"}) {
        EXPECT_GT(std::filesystem::file_size(folder.path(std::string("new/report/") + name)), 0) << name;
    }
    EXPECT_EQ(json::parse(testing::read_bytes(folder.path("new/report/report.json")))["cases"], 100);
}

/// A folder with kernels that are wrong: every multiplication by the learning rate's sign is gone.
std::string wrong_kernels(const TemporaryFolder& folder) {
    std::string ptx = testing::read_bytes(std::string(GRADGUARD_SOURCE_DIR) + "/kernels/ptx/update.fmad.ptx");
    const std::string right = "sqrt.rn.f32", wrong = "rcp.rn.f32";
    for (std::size_t at = 0; (at = ptx.find(right, at)) != std::string::npos;) ptx.replace(at, right.size(), wrong);
    std::filesystem::create_directories(folder.path("kernels"));
    folder.write("kernels/update.ptx", ptx);
    return "ptx:" + folder.path("kernels");
}

TEST(CheckCommand, AFailureIsOneScreenOneCommandAndStatusOne) {
    const TemporaryFolder folder;
    const Ended ended = check(folder, {"--subject", wrong_kernels(folder), "--only", "guarded_step"});
    EXPECT_EQ(ended.status, 1) << ended.out << ended.err;
    EXPECT_NE(ended.out.find("FAILED: "), std::string::npos);
    const std::size_t at = ended.out.find("replay: gradguard replay ");
    ASSERT_NE(at, std::string::npos) << ended.out;
    EXPECT_NE(ended.out.find("out of bounds: a property failed\n", at), std::string::npos);
}

TEST(CheckCommand, AFailureIsReplayedAndRunsFirstNextTime) {
    const TemporaryFolder folder;
    const std::string subject = wrong_kernels(folder);
    const json got = check(folder, {"--subject", subject, "--only", "guarded_step", "--json"}).json();
    ASSERT_EQ(got["failures"].size(), 1) << got;
    const std::string file = got["failures"][0]["case_file"];
    EXPECT_EQ(got["failures"][0]["elements"], 1);
    const Ended replayed = run_exactly({"replay", file});
    EXPECT_EQ(replayed.status, 1) << replayed.out << replayed.err;
    EXPECT_EQ(run_exactly({"replay", file, "--subject", "vgpu/fmad"}).status, 0);
    const json again = check(folder, {"--subject", subject, "--only", "guarded_step", "--json"}).json();
    EXPECT_EQ(again["cases"], 0);
    EXPECT_EQ(again["failures"][0]["case_file"], file);
}

TEST(CheckCommand, ABrokenCorpusFileIsNamed) {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.path("corpus"));
    folder.write("corpus/bad.json", "[]");
    const Ended ended = check(folder, {"--cases", "1"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.err.find("corpus/bad.json"), std::string::npos) << ended.err;
}

/// Starts a long campaign, interrupts it after a while, and gives its status; standard output goes to `out`.
int interrupted_check(const TemporaryFolder& folder, const std::string& out) {
    std::vector<std::string> words = {std::string(GRADGUARD_BINARY_DIR) + "/gradguard",
                                      "check",
                                      "--corpus",
                                      folder.path("corpus"),
                                      "--time",
                                      "100s",
                                      "--report",
                                      folder.path("report"),
                                      "--json"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
    pid_t child = 0;
    const int failure = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    ::kill(child, SIGINT);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(CheckCommand, AnInterruptedRunPrintsWhatWasDoneAndLeavesNoHalfFile) {
    const TemporaryFolder folder;
    EXPECT_EQ(interrupted_check(folder, folder.path("out")), 130);
    const json got = json::parse(testing::read_bytes(folder.path("out")));
    EXPECT_TRUE(got["interrupted"].get<bool>());
    EXPECT_GT(got["cases"], 0);
    EXPECT_TRUE(got["failures"].empty());
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path("report"))) {
        EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    }
    EXPECT_EQ(json::parse(testing::read_bytes(folder.path("report/report.json")))["cases"], got["cases"]);
}

}  // namespace
}  // namespace gradguard
