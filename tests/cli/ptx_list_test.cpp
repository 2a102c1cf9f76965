// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::run_program;

std::string program(const std::string& name) {
    return std::string(GRADGUARD_SOURCE_DIR) + "/tests/cli/programs/" + name;
}

TEST(PtxList, NamesEntriesWithParametersAndLimits) {
    const Ended ended = run_program({"ptx", program("small.ptx"), "--json"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const json listed = ended.json();
    ASSERT_EQ(listed["entries"].size(), 5U);
    EXPECT_EQ(listed["refusals"], json::array());
    const json& saxpy = listed["entries"][0];
    EXPECT_EQ(saxpy["name"], "saxpy");
    EXPECT_EQ(saxpy["line"], 9);
    EXPECT_EQ(saxpy["parameter_bytes"], 24);
    ASSERT_EQ(saxpy["parameters"].size(), 4U);
    EXPECT_EQ(saxpy["parameters"][1]["name"], "saxpy_param_1");
    EXPECT_EQ(saxpy["parameters"][1]["offset"], 4);
    EXPECT_EQ(saxpy["parameters"][3]["offset"], 16);
    EXPECT_EQ(saxpy["parameters"][3]["bytes"], 8);
    EXPECT_EQ(saxpy["max_threads"], 128);
    EXPECT_EQ(saxpy["dynamic_shared"], false);
    const json& reverse = listed["entries"][1];
    EXPECT_EQ(reverse["required_block"], json({64, 1, 1}));
    EXPECT_EQ(reverse["dynamic_shared"], true);
    EXPECT_EQ(listed["entries"][3]["parameters"][0]["bytes"], 24);
    EXPECT_TRUE(listed["entries"][4]["max_threads"].is_null());
}

TEST(PtxList, TextNamesThemToo) {
    const Ended ended = run_program({"ptx", program("small.ptx")});
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.err, "");
    for (const char* word :
         {":9: entry saxpy", "saxpy_param_2", "at most 128", "(64,1,1)", "a dynamic part", "refused: nothing"}) {
        EXPECT_NE(ended.out.find(word), std::string::npos) << word << " in\n" << ended.out;
    }
}

TEST(PtxList, EveryRefusedLineIsNamed) {
    const std::string file = program("refused.ptx");
    const Ended ended = run_program({"ptx", file, "--json"});
    EXPECT_EQ(ended.status, 2);
    const json refusals = ended.json()["refusals"];
    ASSERT_EQ(refusals.size(), 3U) << refusals;
    EXPECT_EQ(refusals[0]["line"], 14);
    EXPECT_EQ(refusals[1]["line"], 17);
    EXPECT_EQ(refusals[2]["line"], 26);
    EXPECT_NE(refusals[0]["message"].get<std::string>().find("frobnicate.u32 %r2, %r1"), std::string::npos) << refusals;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_NE(ended.err.find(file + ":14: "), std::string::npos) << ended.err;
    EXPECT_EQ(ended.json()["entries"].size(), 2U) << "what it holds is listed all the same";
}

TEST(PtxList, ARunOfARefusedFileIsOneLineAndStatusTwo) {
    const std::string file = program("refused.ptx");
    const Ended ended = run_program({"ptx", file, "--entry", "second"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_NE(ended.err.find(file + ":14: "), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("frobnicate.u32"), std::string::npos) << ended.err;
}

TEST(PtxList, WhatIsNoPtxIsRefusedWithItsLine) {
    const testing::TemporaryFolder folder;
    const std::string path = folder.write("bad.ptx", ".version 7.0\n.target sm_80\n.address_size 32\n");
    const Ended ended = run_program({"ptx", path, "--json"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.json()["error"]["kind"], "InvalidFile");
    EXPECT_EQ(ended.json()["refusals"][0]["line"], 3);
    EXPECT_NE(ended.err.find(path + ":3: "), std::string::npos) << ended.err;
    EXPECT_EQ(run_program({"ptx", folder.path("absent.ptx")}).status, 2);
    EXPECT_EQ(run_program({"ptx", folder.path("")}).status, 2) << "a folder is no file";
}

TEST(PtxList, ALineThatBreaksTheGrammarHidesNoOther) {
    const testing::TemporaryFolder folder;
    const std::string path = folder.write("mixed.ptx",
                                          ".version 7.0\n.target sm_80\n.address_size 64\n"
                                          ".visible .entry k()\n{\n"
                                          "    .reg .b32 %r<3>;\n"
                                          "    mov.u32 %r1, %no_such_register;\n"
                                          "    frobnicate.u32 %r2, %r1;\n"
                                          "    add.u32 %r2, %r1, ;\n"
                                          "    ret;\n}\n");
    const Ended ended = run_program({"ptx", path, "--json"});
    EXPECT_EQ(ended.status, 2);
    const json refusals = ended.json()["refusals"];
    ASSERT_EQ(refusals.size(), 3U) << refusals;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(refusals[i]["line"], 7 + i) << refusals;
    EXPECT_EQ(ended.json()["entries"][0]["name"], "k");
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
}

TEST(PtxList, OurOwnKernelsAreNotRefused) {
    for (const char* name : {"statistics.fmad", "statistics.nofmad", "update.fmad", "update.nofmad"}) {
        const std::string path = std::string(GRADGUARD_SOURCE_DIR) + "/kernels/ptx/" + name + ".ptx";
        EXPECT_EQ(run_program({"ptx", path}).status, 0) << name;
    }
}

}  // namespace
}  // namespace gradguard
