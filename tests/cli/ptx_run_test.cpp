// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::run_program;
using testing::TemporaryFolder;
using Words = std::vector<std::string>;

const std::string kSmall = std::string(GRADGUARD_SOURCE_DIR) + "/tests/cli/programs/small.ptx";

Ended run(const std::string& entry, const Words& more) {
    Words words{"ptx", kSmall, "--entry", entry};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
}

json run_json(const std::string& entry, Words more, int status = 0) {
    more.emplace_back("--json");
    const Ended ended = run(entry, more);
    EXPECT_EQ(ended.status, status) << ended.out << ended.err;
    return ended.json();
}

void expect_usage_error(const std::string& entry, const Words& more, const std::string& part) {
    const Ended ended = run(entry, more);
    EXPECT_EQ(ended.status, 2) << ended.out << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
}

const Words kSaxpy{"--grid", "2", "--block", "64", "--arg", "u32:100", "--arg", "f32:0x1p-1"};

Words saxpy(const Words& more) {
    Words words = kSaxpy;
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(PtxRun, ScalarsAndBuffersReachTheKernel) {
    const json ran = run_json("saxpy", saxpy({"--arg", "f32[100]:iota", "--arg", "f32[100]:zero", "--values", "4"}));
    EXPECT_EQ(ran["completed"], true);
    ASSERT_EQ(ran["buffers"].size(), 2U);
    EXPECT_EQ(ran["buffers"][1]["argument"], "3");
    EXPECT_EQ(ran["buffers"][1]["parameter"], "saxpy_param_3");
    EXPECT_EQ(ran["buffers"][1]["values"], json({0.0, 0.5, 1.0, 1.5}));
    EXPECT_EQ(ran["findings"], json::array());
}

TEST(PtxRun, FilesComeInAndGoOut) {
    const TemporaryFolder folder;
    const std::vector<float> values{1.0F, 2.0F, -4.0F};
    std::string bytes(12, '\0');
    std::memcpy(bytes.data(), values.data(), 12);
    const std::string in = folder.path("x.bin"), out = folder.path("y.bin"), named = folder.path("z.bin");
    folder.write("x.bin", bytes);
    const Ended ended = run("saxpy", {"--block", "32", "--arg", "u32:3", "--arg", "f32:2", "--arg", "f32[3]:" + in,
                                      "--arg", "f32[3]:" + in, "--out", "3=" + out, "--out", "saxpy_param_2=" + named});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const std::vector<float> wanted{3.0F, 6.0F, -12.0F};
    const std::string written = testing::read_bytes(out);
    ASSERT_EQ(written.size(), 12U);
    EXPECT_EQ(std::memcmp(written.data(), wanted.data(), 12), 0);
    EXPECT_EQ(testing::read_bytes(named), bytes);
    EXPECT_NE(ended.out.find("3 6 -12"), std::string::npos) << ended.out;
}

TEST(PtxRun, AStructIsWrittenMemberByMember) {
    const json ran = run_json("members", {"--arg", "{s32[3]:poison, u8:0xff, s16:-2, f64:-0x1.9p6}"});
    EXPECT_EQ(ran["buffers"][0]["argument"], "0.0");
    EXPECT_EQ(ran["buffers"][0]["values"], json({255, -2, -100}));
}

TEST(PtxRun, DynamicSharedMemoryAndTheRequiredBlock) {
    const json ran =
        run_json("reverse", {"--shared", "256", "--arg", "u32[64]:iota", "--arg", "u32[64]:poison", "--values", "2"});
    EXPECT_EQ(ran["block"], json({64, 1, 1}));
    EXPECT_EQ(ran["buffers"][1]["values"], json({63, 62}));
    std::vector<std::string> names;
    for (const json& observer : ran["observers"]) names.push_back(observer["name"]);
    EXPECT_EQ(names, (Words{"bounds", "init", "registers", "races", "barriers", "inputs", "leaks", "counts"}));
}

TEST(PtxRun, ARaceIsAFindingWithBothPlaces) {
    const Words arguments{"--block", "64", "--shared", "256", "--arg", "u32[64]:iota", "--arg", "u32[64]:poison"};
    const json ran = run_json("reverse_race", arguments, 4);
    const auto race =
        std::ranges::find_if(ran["findings"], [](const json& finding) { return finding["kind"] == "race"; });
    ASSERT_NE(race, ran["findings"].end()) << ran["findings"];
    const json& finding = *race;
    EXPECT_EQ(finding["kernel"], "reverse_race");
    EXPECT_EQ(finding["space"], "shared");
    const std::vector<int> lines{finding["ptx_line"], finding["other"]["ptx_line"]};
    EXPECT_TRUE(std::ranges::is_permutation(lines, std::vector<int>{97, 100})) << finding;
    const Ended text = run("reverse_race", arguments);
    EXPECT_EQ(text.status, 4);
    EXPECT_NE(text.out.find("finding: race: "), std::string::npos) << text.out;
    EXPECT_EQ(std::count(text.err.begin(), text.err.end(), '\n'), 1) << text.err;
    Words unobserved = arguments;
    unobserved.insert(unobserved.end(), {"--observe", "none"});
    EXPECT_EQ(run("reverse_race", unobserved).status, 0);
}

TEST(PtxRun, AFaultKeepsNoResults) {
    const TemporaryFolder folder;
    const std::string out = folder.path("y.bin");
    const Words arguments = saxpy({"--arg", "f32[99]:iota", "--arg", "f32[100]:zero", "--out", "3=" + out});
    const json ran = run_json("saxpy", arguments, 4);
    EXPECT_EQ(ran["completed"], false);
    EXPECT_EQ(ran["findings"][0]["kind"], "out of bounds");
    EXPECT_EQ(ran["findings"][0]["thread"], json({35, 0, 0}));
    EXPECT_EQ(ran["written"], json::array());
    EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(PtxRun, PoisonIsMemoryThatNobodyWrote) {
    const json ran = run_json("saxpy", saxpy({"--arg", "f32[100]:iota", "--arg", "f32[100]:poison"}), 4);
    EXPECT_EQ(ran["findings"][0]["kind"], "uninitialized read");
}

TEST(PtxRun, AReadOnlyBufferMayNotBeWritten) {
    const Words arguments = saxpy({"--arg", "f32[100]:iota", "--arg", "f32[100]:zero", "--read-only", "2"});
    EXPECT_EQ(run_json("saxpy", arguments)["nothing_to_check"].size(), 1U) << "no barriers in this kernel";
    Words wrong = arguments;
    wrong.back() = "saxpy_param_3";
    EXPECT_EQ(run_json("saxpy", wrong, 4)["findings"][0]["kind"], "write to input");
}

TEST(PtxRun, ASpinningKernelIsStuckWithinItsBudget) {
    const json ran = run_json("spin", {"--budget", "10000"}, 4);
    EXPECT_EQ(ran["findings"][0]["kind"], "no progress");
}

TEST(PtxRun, CountsAreExact) {
    const json ran = run_json("saxpy", saxpy({"--arg", "f32[100]:iota", "--arg", "f32[100]:zero", "--count"}));
    const json& saxpy = ran["counts"]["kernels"][0];
    EXPECT_EQ(saxpy["kernel"], "saxpy");
    EXPECT_EQ(saxpy["launches"], 1);
    EXPECT_EQ(saxpy["blocks"], 2);
    EXPECT_EQ(saxpy["instructions"]["fma.rn.f32"], 100);
    EXPECT_EQ(saxpy["instructions"]["mad.lo.s32"], 128);
    EXPECT_EQ(saxpy["global_read"]["bytes"], 800);
    EXPECT_EQ(saxpy["global_read"]["sectors"], 26);
    EXPECT_EQ(saxpy["global_written"]["bytes"], 400);
    EXPECT_EQ(saxpy["global_written"]["sectors"], 13);
}

TEST(PtxRun, TheSameSeedGivesTheSameRun) {
    const Words arguments{"--block",        "64",     "--shared", "256",   "--arg", "u32[64]:iota", "--arg",
                          "u32[64]:poison", "--seed", "77",       "--json"};
    EXPECT_EQ(run("reverse_race", arguments).out, run("reverse_race", arguments).out);
}

TEST(PtxRun, EveryTypeTakesItsRangeAndNoMore) {
    const auto members = [](const std::string& u8, const std::string& s16) {
        return Words{"--arg", "{s32[3]:zero," + u8 + "," + s16 + ",f64:1}"};
    };
    for (const char* text : {"u8:0", "u8:255", "s8:-128", "b8:0xff", "b8:-1"}) {
        EXPECT_EQ(run("members", members(text, "s16:0")).status, 0) << text;
    }
    for (const char* text : {"s16:32767", "b16:0xffff", "f16:65504", "bf16:0x1p127"}) {
        EXPECT_EQ(run("members", members("u8:0", text)).status, 0) << text;
    }
    for (const char* text : {"u8:256", "u8:-1", "s8:128", "s8:-129", "u8:1.5", "u8:", "u8: 1", "u9:1", "f8:1"}) {
        expect_usage_error("members", members(text, "s16:0"), text);
    }
}

TEST(PtxRun, HalvesAreRoundedToNearestEven) {
    const auto bits = [](const std::string& value) {
        const json ran = run_json("members", {"--arg", "{s32[3]:zero,u8:0," + value + ",f64:1}"});
        return ran["buffers"][0]["values"][1].get<int>() & 0xFFFF;
    };
    EXPECT_EQ(bits("f16:1"), 0x3C00);
    EXPECT_EQ(bits("f16:-65520"), 0xFC00);
    EXPECT_EQ(bits("f16:65519.9"), 0x7BFF);
    EXPECT_EQ(bits("f16:0x1.002p0"), 0x3C00) << "a tie goes to even";
    EXPECT_EQ(bits("f16:0x1.006p0"), 0x3C02);
    EXPECT_EQ(bits("f16:0x1.ffep0"), 0x4000) << "a carry goes into the exponent";
    EXPECT_EQ(bits("f16:0x1p-24"), 0x0001);
    EXPECT_EQ(bits("f16:0x1p-25"), 0x0000);
    EXPECT_EQ(bits("f16:0x1.8p-25"), 0x0001);
    EXPECT_EQ(bits("f16:0x1.ff8p-15"), 0x03FF) << "the largest subnormal";
    EXPECT_EQ(bits("f16:0x1.ffcp-15"), 0x0400);
    EXPECT_EQ(bits("f16:inf"), 0x7C00);
    EXPECT_EQ(bits("bf16:-1.5"), 0xBFC0);
    EXPECT_EQ(bits("bf16:0x1.01p0"), 0x3F80);
    EXPECT_EQ(bits("bf16:1e39"), 0x7F80);
}

TEST(PtxRun, IotaCountsInEveryType) {
    for (const std::string type : {"u8", "s16", "u32", "s64", "f16", "bf16", "f32", "f64"}) {
        const json ran =
            run_json("saxpy", {"--arg", "u32:0", "--arg", "f32:0", "--arg", type + "[3]:iota", "--arg", "b16[2]:iota"});
        EXPECT_EQ(ran["buffers"][0]["values"], json({0, 1, 2})) << type;
        EXPECT_EQ(ran["buffers"][1]["values"], json({"0x0000", "0x0001"}));
    }
}

TEST(PtxRun, MistakesAreOneClearLine) {
    expect_usage_error("nobody", {}, "saxpy");
    expect_usage_error("saxpy", {}, "takes 4 arguments, got 0");
    expect_usage_error("saxpy", saxpy({"--arg", "u32:1", "--arg", "f32[4]:zero"}), "saxpy_param_2 has 8 bytes");
    expect_usage_error("saxpy", saxpy({"--arg", "f32[4]", "--arg", "f32[4]:zero"}), "f32[4]");
    expect_usage_error("saxpy", saxpy({"--arg", "f32[x]:zero", "--arg", "f32[4]:zero"}), "number of elements");
    expect_usage_error("saxpy", saxpy({"--arg", "f32[4]:/absent", "--arg", "f32[4]:zero"}), "/absent");
    expect_usage_error("saxpy", saxpy({"--arg", "f32[4]:" + kSmall, "--arg", "f32[4]:zero"}), "want 16 bytes");
    expect_usage_error("saxpy", saxpy({"--arg", "f32[4]:zero", "--arg", "f32[4]:zero", "--out", "0=x"}), "no buffer");
    expect_usage_error("saxpy", saxpy({"--arg", "f32[4]:zero", "--arg", "f32[4]:zero", "--out", "4=x"}), "first is 0");
    expect_usage_error(
        "saxpy", {"--block", "129", "--arg", "u32:0", "--arg", "f32:0", "--arg", "f32[1]:zero", "--arg", "f32[1]:zero"},
        "129");
    expect_usage_error("members", {"--arg", "{s32[3]:zero,u8:0}"}, "has 24 bytes, the members make 16");
    expect_usage_error("spin", {"--grid", "0"}, "--grid");
    expect_usage_error("spin", {"--block", "1,2,3,4"}, "--block");
    expect_usage_error("spin", {"--observe", "gossip"}, "gossip");
    expect_usage_error("spin", {"--out", "0"}, "ARGUMENT=FILE");
}

TEST(PtxRun, OptionsOfARunNeedAnEntry) {
    const Ended ended = run_program({"ptx", kSmall, "--grid", "2"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.err.find("--grid: needs --entry"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace gradguard
