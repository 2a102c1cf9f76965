// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using nlohmann::json;
using testing::bits_in;
using testing::Ended;
using testing::GroupBuilder;
using testing::run_program;
using testing::TemporaryFolder;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

json run_json(const GroupBuilder& group, std::vector<std::string> flags = {}) {
    const TemporaryFolder folder;
    flags.insert(flags.begin(), {"step", group.write(folder), "--json"});
    const Ended ended = run_program(flags);
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
    return ended.json();
}

GroupBuilder three_and_four() { return GroupBuilder().entry("a", {3.0F}).entry("b", {4.0F}); }

TEST(StepCommand, OneNormForTheWholeGroup) {
    const json run = run_json(three_and_four());
    EXPECT_EQ(run["device"], "vgpu");
    EXPECT_EQ(run["within_bounds"], true);
    ASSERT_EQ(run["steps"].size(), 1U);
    const json& step = run["steps"][0];
    EXPECT_EQ(step["total_norm"], 5.0);
    EXPECT_EQ(step["exact_norm"], 5.0);
    EXPECT_EQ(step["max_finite_abs"], 4.0);
    EXPECT_EQ(step["all_finite"], true);
    EXPECT_EQ(step["elements"], 2);
    EXPECT_EQ(step["tensors"], 2);
    EXPECT_EQ(step["gradient_scale"], 1.0);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(step["clip_multiplier"].get<float>()), 0x3E4CCCCAU);
    EXPECT_TRUE(step["skip_reason"].is_null());
    EXPECT_EQ(step["reduction_launches"], 2);
    EXPECT_EQ(step["update_launches"], 2);
    EXPECT_EQ(step["readback_bytes"], 24);
    EXPECT_EQ(step["scratch_bytes"], 24);
    EXPECT_EQ(step["within_bounds"], true);
    EXPECT_EQ(step["entries"][0]["name"], "a");
    EXPECT_EQ(step["entries"][0]["step"], 1);
    EXPECT_EQ(step["entries"][0]["norm"], 3.0);
    EXPECT_EQ(step["entries"][0]["bad"], false);
    EXPECT_TRUE(step["entries"][0]["first_bad"].is_null());
    EXPECT_TRUE(step["entries"][0]["max_ulp"]["param"].is_number());
    EXPECT_TRUE(step["entries"][0]["max_ulp"]["exp_avg_sq"].is_number());
    EXPECT_TRUE(step["entries"][0]["max_ulp"]["max_exp_avg_sq"].is_null());
}

TEST(StepCommand, WithoutAMaximumNothingIsClipped) {
    const json step = run_json(three_and_four(), {"--max-norm", "none"})["steps"][0];
    EXPECT_EQ(step["total_norm"], 5.0);
    EXPECT_EQ(step["clip_multiplier"], 1.0);
}

TEST(StepCommand, TheGoldenValuesHoldWithoutContraction) {
    const TemporaryFolder folder;
    const std::string out = folder.path("out");
    const Ended ended =
        run_program({"step", GroupBuilder().entry("w", {0.5F}).write(folder), "--fmad", "off", "--out", out});
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(bits_in(out, "w.param"), std::vector<std::uint32_t>{0x3F7FBE75});
    EXPECT_EQ(bits_in(out, "w.exp_avg"), std::vector<std::uint32_t>{0x3D4CCCD0});
    EXPECT_EQ(bits_in(out, "w.exp_avg_sq"), std::vector<std::uint32_t>{0x39831200});
}

TEST(StepCommand, EntriesComeInTheOrderOfTheirBytes) {
    const json entries = run_json(GroupBuilder()
                                      .entry("a", {1.0F})
                                      .entry("B", {1.0F})
                                      .entry("a.b", {1.0F})
                                      .entry("a-b", {1.0F})
                                      .entry("\xc3\xa4", {1.0F}))["steps"][0]["entries"];
    std::vector<std::string> names;
    for (const json& entry : entries) names.push_back(entry["name"]);
    EXPECT_EQ(names, (std::vector<std::string>{"B", "a", "a-b", "a.b", "\xc3\xa4"}));
}

TEST(StepCommand, ABadGroupIsSkippedAndSaysWhere) {
    const TemporaryFolder folder;
    const GroupBuilder group = GroupBuilder().entry("a", {1.0F, 2.0F}).entry("b", {1.0F, kInf, kNan});
    const std::string out = folder.path("out");
    const Ended ended = run_program({"step", group.write(folder), "--json", "--out", out});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const json step = ended.json()["steps"][0];
    EXPECT_EQ(step["skip_reason"], "NonFinite");
    EXPECT_EQ(step["total_norm"], "inf");
    EXPECT_EQ(step["exact_norm"], "inf");
    EXPECT_EQ(step["all_finite"], false);
    EXPECT_EQ(step["max_finite_abs"], 2.0);
    EXPECT_EQ(step["clip_multiplier"], 1.0);
    EXPECT_EQ(step["update_launches"], 0);
    EXPECT_EQ(step["entries"][0]["bad"], false);
    EXPECT_EQ(step["entries"][1]["bad"], true);
    EXPECT_EQ(step["entries"][1]["first_bad"], 1);
    EXPECT_EQ(step["entries"][1]["norm"], "inf");
    EXPECT_EQ(step["entries"][1]["step"], 0);
    const harness::SafetensorsFile written(out);
    EXPECT_FALSE(written.tensors().contains("a.exp_avg")) << "an absent state stays absent";
    EXPECT_EQ(bits_in(out, "a.param"), (std::vector<std::uint32_t>{0x3F800000, 0x3F800000}));
}

TEST(StepCommand, ARequestedSkipHasNoReport) {
    const json step = run_json(three_and_four(), {"--skip-update"})["steps"][0];
    EXPECT_EQ(step["skip_reason"], "Requested");
    for (const char* field : {"total_norm", "exact_norm", "max_finite_abs", "all_finite", "elements", "tensors"}) {
        EXPECT_TRUE(step[field].is_null()) << field;
    }
    for (const char* field : {"reduction_launches", "update_launches", "readback_bytes", "scratch_bytes"}) {
        EXPECT_EQ(step[field], 0) << field;
    }
}

TEST(StepCommand, AGroupOfEmptyTensorsIsEmpty) {
    const json empty = run_json(GroupBuilder().entry("w", {}))["steps"][0];
    EXPECT_EQ(empty["skip_reason"], "Empty");
    EXPECT_TRUE(empty["total_norm"].is_null());
    EXPECT_EQ(run_json(GroupBuilder())["steps"][0]["skip_reason"], "Empty");
}

TEST(StepCommand, AnEmptyEntryInALiveGroupDoesNotAdvance) {
    const json step = run_json(GroupBuilder()
                                   .entry("a", {})
                                   .moments("a", {}, {})
                                   .entry("b", {1.0F})
                                   .moments("b", {0.1F}, {0.1F})
                                   .meta("step", "7"))["steps"][0];
    EXPECT_EQ(step["entries"][0]["step"], 7);
    EXPECT_EQ(step["entries"][1]["step"], 8);
    EXPECT_EQ(step["tensors"], 2);
    EXPECT_EQ(step["readback_bytes"], 12);
    EXPECT_EQ(step["update_launches"], 1);
}

TEST(StepCommand, StatisticsDoNotDependOnTheBuildOrTheSchedule) {
    std::vector<float> values;
    for (int i = 0; i < 5000; ++i) values.push_back(static_cast<float>(i % 97) * 0x1.3p-7F - 0.3F);
    const GroupBuilder group = GroupBuilder().entry("w", values).bf16("w.grad", values);
    const json plain = run_json(group)["steps"][0];
    EXPECT_EQ(plain["reduction_launches"], 2);
    EXPECT_EQ(plain["scratch_bytes"], 12 * 5 + 12);
    for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
             {"--fmad", "off"}, {"--schedule-seed", "1"}, {"--schedule-seed", "99"}}) {
        const json other = run_json(group, flags)["steps"][0];
        EXPECT_EQ(other["total_norm"], plain["total_norm"]);
        EXPECT_EQ(other["clip_multiplier"], plain["clip_multiplier"]);
    }
}

TEST(StepCommand, TextIsForPeople) {
    const TemporaryFolder folder;
    const Ended one = run_program({"step", three_and_four().write(folder)});
    EXPECT_EQ(one.status, 0);
    for (const char* word : {"norm", "exact norm", "clipped by 0.19999996", "36.0 %", "64.0 %", "within bounds"}) {
        EXPECT_NE(one.out.find(word), std::string::npos) << word << " in\n" << one.out;
    }
    EXPECT_EQ(one.out.find('\033'), std::string::npos) << "no colours away from a terminal";
    EXPECT_EQ(one.err, "");
    const Ended several = run_program({"step", three_and_four().write(folder), "--steps", "3"});
    EXPECT_NE(several.out.find("3 steps"), std::string::npos) << several.out;
}

}  // namespace
}  // namespace gradguard
