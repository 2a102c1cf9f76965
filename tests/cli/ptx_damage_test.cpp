// SPDX-License-Identifier: Apache-2.0
// PTX that is damaged, unknown or no PTX at all: one line that names file, line and instruction, exit status 2, listed
// or run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using testing::Ended;
using testing::run_program;
using testing::TemporaryFolder;

constexpr const char* kGood =
    ".version 8.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".visible .entry k(.param .u64 out)\n"
    "{\n"
    "    .reg .pred %p<3>;\n"
    "    .reg .b32 %r<5>;\n"
    "    .reg .f32 %f<3>;\n"
    "    .reg .b64 %rd<5>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    setp.eq.u32 %p1, %r1, 7;\n"
    "    @%p1 bra END;\n"
    "    st.global.u32 [%rd1], %r1;\n"
    "END:\n"
    "    ret;\n"
    "}\n";
constexpr const char* kStore = "st.global.u32 [%rd1], %r1;";

std::string with(const std::string& part, const std::string& instead) {
    std::string text = kGood;
    return text.replace(text.find(part), part.size(), instead);
}

/// Listed and run: the same line of standard error.
void expect_refusal(const std::string& text, int line, const std::string& reason) {
    const TemporaryFolder folder;
    folder.write("bad.ptx", text);
    const std::string path = folder.path("bad.ptx");
    for (const bool runs : {false, true}) {
        std::vector<std::string> words{"ptx", path};
        if (runs) words.insert(words.end(), {"--entry", "k", "--arg", "u32[1]:zero"});
        const Ended ended = run_program(words);
        EXPECT_EQ(ended.status, 2) << reason;
        EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
        EXPECT_NE(ended.err.find(path + ":" + std::to_string(line) + ": "), std::string::npos) << ended.err;
        EXPECT_NE(ended.err.find(reason), std::string::npos) << ended.err;
        if (runs) {
            EXPECT_EQ(ended.out, "");
        }
    }
}

TEST(PtxDamage, TheWholeFileRuns) {
    const TemporaryFolder folder;
    folder.write("good.ptx", kGood);
    EXPECT_EQ(run_program({"ptx", folder.path("good.ptx"), "--entry", "k", "--arg", "u32[1]:zero"}).status, 0);
}

TEST(PtxDamage, WhatIsUnknownIsNamed) {
    expect_refusal(with(kStore, "frob.u32 %r1, %r2;"), 14,
                   "instruction 'frob.u32' is not supported: frob.u32 %r1, %r2;");
    expect_refusal(with("st.global", "st.global.shiny"), 14, "('.shiny')");
    expect_refusal(with(kStore, "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r1}, {%r2}, {%r3}, {%r4};"), 14,
                   "instruction 'mma.sync.aligned");
    expect_refusal(with(kStore, "tex.1d.v4.s32.s32 {%r1,%r2,%r3,%r4}, [t, {%r1}];"), 14,
                   "instruction 'tex.1d.v4.s32.s32' is not supported");
    expect_refusal(with("%tid.x", "%warpcolor"), 11, "'%warpcolor'");
    expect_refusal(with("%tid.x", "%envreg1"), 11, "'%envreg1' is set by the driver");
    expect_refusal(with("    .reg .b64", "    .wibble 4;\n    .reg .b64"), 9, "directive '.wibble'");
    expect_refusal(with(".visible", ".global .texref t;\n.visible"), 4, "'.texref'");
    expect_refusal(with(kStore, "call.uni vprintf, ();"), 14, "function 'vprintf' has no body in this module");
    expect_refusal(with(kStore, "sin.approx.f32 %f1, %f2;"), 14, "approximate instruction 'sin.approx.f32' is refused");
}

TEST(PtxDamage, WhatDoesNotFitIsNamed) {
    expect_refusal(with(kStore, "add.u32 %r1, %rd1, %r2;"), 14, "'%rd1' is of the wrong type");
    expect_refusal(with(kStore, "add.u32 %r1, %r2;"), 14, "wrong number of operands");
    expect_refusal(with(kStore, "add.u32 %r1, %r2, %r9;"), 14, "'%r9' is neither declared");
    expect_refusal(with("END:\n", "END:\nEND:\n"), 16, "label 'END' is defined twice");
    expect_refusal(with("bra END", "bra ELSEWHERE"), 13, "'ELSEWHERE' is not defined");
    expect_refusal(with("@%p1", "@%r1"), 13, "'%r1' is no predicate register");
    expect_refusal(with("%tid.x;", "%tid.x"), 11, "expected ',', got 'setp'");
}

TEST(PtxDamage, ModulesForOtherMachinesAreRefused) {
    expect_refusal(with("size 64", "size 32"), 3, "only .address_size 64 is supported");
    expect_refusal(with("sm_80", "gfx90a"), 2, "'gfx90a' is not supported");
    expect_refusal(with("sm_80", "sm_999"), 2, "'sm_999' is not supported");
    expect_refusal(with("8.0", "99.7"), 1, ".version 99.7 is not supported");
    expect_refusal(with(".version 8.0\n", ""), 17, "module without .version");
}

TEST(PtxDamage, WhatIsCutOffSaysWhere) {
    const std::string text = kGood;
    expect_refusal(text.substr(0, text.find(kStore) + 14), 14, "got the end of the file");
    expect_refusal(text.substr(0, text.rfind('}')), 17, "'{' without its '}'");
    expect_refusal(with("ret;", "/* ret;"), 16, "comment without end");
}

TEST(PtxDamage, WhatIsNoPtxSaysWhatItIs) {
    expect_refusal(std::string("\x7f"
                               "ELF\x02\x01\x01\x33",
                               8) +
                       std::string(200, '\0'),
                   1, "ELF");
    expect_refusal("\x50\xed\x55\xba" + std::string(100, '\0'), 1, "fatbin");
    expect_refusal("", 1, "nothing in it");
    expect_refusal("\n \n", 1, "nothing in it");
    std::string junk;
    for (int i = 1; i < 3000; ++i) junk += static_cast<char>(i * 37);
    const TemporaryFolder folder;
    folder.write("junk.ptx", junk);
    const Ended ended = run_program({"ptx", folder.path("junk.ptx")});
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
}

TEST(PtxApproximate, RunsWhenAskedForAndTheRunSaysSo) {
    const TemporaryFolder folder;
    folder.write("sine.ptx", with(kStore,
                                  "mov.f32 %f1, 0f3F800000;\n    sin.approx.f32 %f2, %f1;\n"
                                  "    st.global.f32 [%rd1], %f2;"));
    const std::string path = folder.path("sine.ptx");
    EXPECT_EQ(run_program({"ptx", path, "--allow-approximate"}).status, 0);
    const Ended text = run_program({"ptx", path, "--allow-approximate", "--entry", "k", "--arg", "f32[1]:zero"});
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_NE(text.out.find("approximate: sin.approx.f32"), std::string::npos) << text.out;
    const Ended ran = run_program(
        {"ptx", path, "--allow-approximate", "--entry", "k", "--arg", "f32[1]:zero", "--json", "--seed", "3"});
    EXPECT_EQ(ran.json()["approximate_instructions"], nlohmann::json({"sin.approx.f32"}));
    const double sine = ran.json()["buffers"][0]["values"][0];
    const double documented_error = std::exp2(-20.5);  // PTX ISA, sin: in the range of 2 pi
    EXPECT_LE(std::abs(sine - std::sin(1.0)), documented_error);
    EXPECT_NE(run_program({"ptx", "--help"}).out.find("--allow-approximate"), std::string::npos);
}

}  // namespace
}  // namespace gradguard
