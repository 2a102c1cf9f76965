// SPDX-License-Identifier: Apache-2.0
// `gradguard run` with a program in plain C that is linked against libcuda (tests/vdriver/program.c), and with shells.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/program.h"

namespace gradguard::testing {
namespace {

std::vector<std::string> run_of(std::vector<std::string> flags, const std::vector<std::string>& program) {
    flags.insert(flags.begin(), {"run", "--virtual-gpu"});
    flags.emplace_back("--");
    flags.insert(flags.end(), program.begin(), program.end());
    return flags;
}
Ended run_c_program(const std::vector<std::string>& flags, const std::vector<std::string>& arguments = {}) {
    std::vector<std::string> program{GRADGUARD_C_PROGRAM};
    program.insert(program.end(), arguments.begin(), arguments.end());
    return run_exactly(run_of(flags, program));
}
Ended run_shell(const std::string& script, const std::vector<std::string>& flags = {}) {
    return run_exactly(run_of(flags, {"sh", "-c", script}));
}
/// The last line of standard output.
nlohmann::json last_line(const Ended& ended) {
    const std::string text = ended.out.substr(0, ended.out.find_last_not_of('\n') + 1);
    return nlohmann::json::parse(text.substr(text.rfind('\n') + 1));
}

TEST(RunCommand, TellsWhatTheKernelsOfTheProgramDid) {
    const Ended ended = run_c_program({});
    EXPECT_EQ(ended.status, 0) << ended.err;
    for (const char* words :
         {"virtual GPU (not hardware): 1 launch of 1 kernel", "twice", "observed: bounds", "no finding"})
        EXPECT_NE(ended.err.find(words), std::string::npos) << words << "\n" << ended.err;
}

TEST(RunCommand, PrintsItsObjectAfterTheOutputOfTheProgram) {
    const TemporaryFolder folder;
    const Ended ended = run_c_program({"--json", "--count", "--seed", "7", "--report", folder.path("r.json")});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const nlohmann::json json = last_line(ended);
    EXPECT_EQ(json["status"], 0);
    EXPECT_EQ(json["program"][0], GRADGUARD_C_PROGRAM);
    EXPECT_EQ(json["configuration"]["seed"], 7);
    EXPECT_EQ(json["kernels"][0]["kernel"], "twice");
    EXPECT_EQ(json["kernels"][0]["launches"], 1);
    EXPECT_FALSE(json["kernels"][0]["instructions"].empty());
    EXPECT_EQ(json, nlohmann::json::parse(read_bytes(folder.path("r.json"))));
    EXPECT_EQ(folder.entries(), 1U);
}

TEST(RunCommand, AddsUpTheProcessesOfAProgram) {
    const std::string program = GRADGUARD_C_PROGRAM;
    const Ended ended = run_shell("'" + program + "' && '" + program + "'", {"--json"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const nlohmann::json json = last_line(ended);
    EXPECT_EQ(json["processes"], 2);
    ASSERT_EQ(json["kernels"].size(), 1U);
    EXPECT_EQ(json["kernels"][0]["launches"], 2);
}

TEST(RunCommand, EndsAsTheProgramEnds) {
    EXPECT_EQ(run_shell("exit 7").status, 7);
    EXPECT_EQ(run_shell("kill -TERM $$").status, 128 + 15);
}

TEST(RunCommand, ASuccessThatLaunchedNothingIsNone) {
    const Ended ended = run_shell("true");
    EXPECT_EQ(ended.status, 4);
    EXPECT_NE(ended.err.find("nothing was launched on the virtual GPU"), std::string::npos) << ended.err;
}

TEST(RunCommand, LeavesNoFolderBehind) {
    const TemporaryFolder folder;
    const Ended ended = run_shell("echo $LD_LIBRARY_PATH");
    const std::string first = ended.out.substr(0, ended.out.find_first_of(":\n"));
    EXPECT_NE(first.find("gradguard-run-"), std::string::npos) << ended.out;
    EXPECT_FALSE(std::filesystem::exists(first));
}

TEST(RunCommand, PassesTheArgumentsOfTheProgramOn) {
    const Ended ended = run_exactly(run_of({}, {"sh", "-c", "echo \"$1|$2\"", "sh", "--json", "a b"}));
    EXPECT_EQ(ended.out, "--json|a b\n");
}

TEST(RunCommand, AsksForAProgramAndForTheDevice) {
    const Ended none = run_exactly({"run", "--virtual-gpu"});
    EXPECT_EQ(none.status, 2);
    EXPECT_EQ(none.err, "gradguard: run: want a program behind --, got none\n");
    const Ended nowhere = run_exactly({"run", "--", "true"});
    EXPECT_EQ(nowhere.status, 2);
    EXPECT_NE(nowhere.err.find("want --virtual-gpu"), std::string::npos) << nowhere.err;
    const Ended missing = run_exactly(run_of({}, {"/no/such/program"}));
    EXPECT_EQ(missing.status, 2);
    EXPECT_EQ(missing.err, "gradguard: run: cannot start /no/such/program: No such file or directory\n");
    EXPECT_EQ(run_exactly(run_of({"--observe", "nobody"}, {"true"})).status, 2);
    EXPECT_EQ(run_exactly(run_of({"--seed", "x"}, {"true"})).status, 2);
    EXPECT_EQ(run_exactly(run_of({"--compute-capability", "9"}, {"true"})).status, 2);
}

}  // namespace
}  // namespace gradguard::testing
