// SPDX-License-Identifier: Apache-2.0
// The program with --compiler nvrtc, on recorded gradients and on drawn cases.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/nvrtc/installed.h"
#include "tests/nvrtc/tool.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::testing {
namespace {

const std::string kGroup = GRADGUARD_SOURCE_DIR "/property_tests/recorded/bf16_transformer/step_000.safetensors";

ToolResult gradguard(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GRADGUARD_BINARY_DIR "/gradguard");
    return run_tool(arguments);
}

/// The words that a program prints of what it computed, without how long it took or what was run.
std::string results_of(const ToolResult& ran) {
    EXPECT_EQ(ran.status, 0) << ran.output;
    auto json = nlohmann::json::parse(ran.output);
    for (const char* of_the_run : {"replay", "seconds", "compiler"}) json.erase(of_the_run);
    return json.dump();
}

class NvrtcProgram : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        if (installed_nvrtcs(why).empty()) GTEST_SKIP() << "blocked: " << why;
    }
    TemporaryFolder folder_;
};

TEST_F(NvrtcProgram, ScansToTheSameBits) {
    EXPECT_EQ(results_of(gradguard({"stats", kGroup, "--json", "--compiler", "nvrtc"})),
              results_of(gradguard({"stats", kGroup, "--json", "--compiler", "ptx"})));
}

TEST_F(NvrtcProgram, StepsToTheSameState) {
    for (const char* compiler : {"ptx", "nvrtc"}) {
        const ToolResult ran =
            gradguard({"step", kGroup, "--fmad", "off", "--compiler", compiler, "--out", folder_.path(compiler)});
        ASSERT_EQ(ran.status, 0) << ran.output;
    }
    EXPECT_TRUE(read_bytes(folder_.path("nvrtc")) == read_bytes(folder_.path("ptx")));
}

TEST_F(NvrtcProgram, ChecksTheLibraryCompiledByIt) {
    const ToolResult ran = gradguard({"check", "--cases", "50", "--compiler", "nvrtc", "--corpus", "none"});
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_NE(ran.output.find("check of vgpu/fmad+nvrtc, vgpu/nofmad+nvrtc"), std::string::npos) << ran.output;
}

TEST_F(NvrtcProgram, ReplaysACaseOfOtherKernelsOnIt) {
    const ToolResult ran = gradguard({"replay", GRADGUARD_SOURCE_DIR "/property_tests/corpus/bias-power-fp32.json",
                                      "--subject", "vgpu/fmad", "--compiler", "nvrtc"});
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_NE(ran.output.find("subject vgpu/fmad+nvrtc"), std::string::npos) << ran.output;
}

TEST_F(NvrtcProgram, HuntsOnTheLibraryCompiledByIt) {
    const ToolResult ran = gradguard({"hunt", "--objective", "norm", "--evaluations", "50", "--compiler", "nvrtc",
                                      "--out", folder_.path("finds"), "--json"});
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_NE(ran.output.find("\"vgpu/fmad+nvrtc\""), std::string::npos) << ran.output;
}

TEST(CompilerFlag, AMissingCompilerIsSaidWithItsOwnExitStatus) {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"stats", kGroup},
                                                    {"step", kGroup},
                                                    {"check", "--cases", "1"},
                                                    {"check", "--cases", "1", "--subject", "vgpu/nofmad+nvrtc"}}) {
        std::vector<std::string> arguments = command;
        arguments.insert(arguments.end(), {"--nvrtc", GRADGUARD_BINARY_DIR "/no-such-folder"});
        if (command.back() != "vgpu/nofmad+nvrtc") arguments.insert(arguments.end(), {"--compiler", "nvrtc"});
        const ToolResult ran = gradguard(arguments);
        EXPECT_EQ(ran.status, 4) << ran.output;
        EXPECT_NE(ran.output.find("gradguard: UnsupportedDevice: no NVRTC of version 12 or 13: "), std::string::npos)
            << ran.output;
    }
}

TEST(CompilerFlag, WhatHasNoKernelsToCompileIsAUsageError) {
    for (const char* subject : {"oracle", "planted/clean-device", "ptx:kernels"}) {
        const ToolResult ran = gradguard({"check", "--cases", "1", "--subject", subject, "--compiler", "nvrtc"});
        EXPECT_EQ(ran.status, 2) << ran.output;
        EXPECT_NE(ran.output.find("--compiler: subject " + std::string(subject) + " has no kernels for NVRTC"),
                  std::string::npos)
            << ran.output;
    }
    EXPECT_EQ(gradguard({"stats", kGroup, "--kernels", ".", "--compiler", "nvrtc"}).status, 2);
    EXPECT_EQ(gradguard({"stats", kGroup, "--compiler", "gcc"}).status, 2);
    EXPECT_EQ(gradguard({"stats", kGroup, "--nvrtc", ""}).status, 2);
}

}  // namespace
}  // namespace gradguard::testing
