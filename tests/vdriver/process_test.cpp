// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "tests/support/temporary_folder.h"
#include "tests/vdriver/fixture.h"

// The driver in processes of their own: in front of a program in plain C, by LD_LIBRARY_PATH.
namespace gradguard::cuda {
namespace {

struct Ran {
    int status = -1;
    std::string output;  ///< Both streams.
};

Ran run(const std::string& environment) {
    const std::string command =
        "LD_LIBRARY_PATH=" GRADGUARD_VDRIVER_FOLDER " " + environment + " " GRADGUARD_C_PROGRAM " 2>&1";
    Ran result;
    std::FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return result;
    std::array<char, 256> buffer;
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) result.output += buffer.data();
    const int status = pclose(pipe);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
}

TEST(Process, AProgramInCThatIsLinkedToADriverRuns) {
    const Ran ran = run("");
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.output, "gradguard virtual GPU: 2 4 6 8\n");
}

TEST(Process, TheReportIsWrittenAfterTheProgramsOwnExitHandlers) {
    const testing::TemporaryFolder folder;
    const std::string path = folder.path("report.json");
    const Ran ran = run(R"(GRADGUARD_VDRIVER='{"observers": "all", "report": ")" + path + R"("}')");
    EXPECT_EQ(ran.status, 0) << ran.output;
    std::ifstream file(path);
    const nlohmann::json report = nlohmann::json::parse(file);
    EXPECT_EQ(report["kernels"][0]["kernel"], "twice");
    EXPECT_TRUE(report["findings"].empty());
    // An exit handler of the program frees it.
    EXPECT_TRUE(report["live"]["allocations"].empty());
    EXPECT_EQ(report["live"]["contexts"], 1);
}

TEST(Process, TheReportsNameMayHoldTheProcessId) {
    const testing::TemporaryFolder folder;
    const Ran ran = run(R"(GRADGUARD_VDRIVER='{"report": ")" + folder.path("report-%p.json") + R"("}')");
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(folder.entries(), 1U);
    EXPECT_NE(std::filesystem::directory_iterator(folder.path(""))->path().filename(), "report-%p.json");
}

TEST(Process, AWrongConfigurationInTheEnvironmentIsToldAndNothingRuns) {
    const Ran ran = run("GRADGUARD_VDRIVER='{\"sed\": 1}'");
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.output.find("GRADGUARD_VDRIVER: configuration: unknown member \"sed\""), std::string::npos)
        << ran.output;
    EXPECT_NE(ran.output.find("cuInit: 1"), std::string::npos) << ran.output;
}

TEST(Process, OnlyTheApiIsExported) {
    // What the library carries with it must not meet the like of it in the program.
    EXPECT_EQ(dlsym(loaded_library(), "_ZN9gradguard4vgpu7MachineD1Ev"), nullptr);
    EXPECT_EQ(dlsym(loaded_library(), "__cxa_atexit"), dlsym(RTLD_DEFAULT, "__cxa_atexit"));
}

}  // namespace
}  // namespace gradguard::cuda
