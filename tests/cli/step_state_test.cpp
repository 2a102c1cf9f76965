// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using nlohmann::json;
using testing::bits_in;
using testing::Ended;
using testing::GroupBuilder;
using testing::read_bytes;
using testing::run_program;
using testing::TemporaryFolder;

Ended good_run(const std::vector<std::string>& arguments) {
    Ended ended = run_program(arguments);
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
    return ended;
}

GroupBuilder mixed_group(float factor) {
    return GroupBuilder()
        .entry("a", {0.5F * factor, -0.25F, 0.0F})
        .entry("b", {factor, 2.0F})
        .bf16("b.grad", {factor, 2.0F})
        .entry("c", {})
        .meta("gradient_scale", "4");
}

TEST(StepState, WhatIsWrittenFedBackEqualsTwoStepsInOneRun) {
    for (const std::vector<std::string>& flags :
         std::vector<std::vector<std::string>>{{}, {"--amsgrad", "--maximize"}}) {
        const TemporaryFolder folder;
        const std::string first = mixed_group(1.0F).write(folder);
        const auto run = [&](std::vector<std::string> arguments) {
            arguments.insert(arguments.begin(), "step");
            arguments.insert(arguments.end(), flags.begin(), flags.end());
            good_run(arguments);
        };
        run({first, "--out", folder.path("one")});
        run({folder.path("one"), "--out", folder.path("two")});
        run({first, "--steps", "2", "--out", folder.path("both")});
        EXPECT_EQ(read_bytes(folder.path("two")), read_bytes(folder.path("both")));
        EXPECT_NE(bits_in(folder.path("one"), "a.param"), bits_in(folder.path("two"), "a.param"));
    }
}

TEST(StepState, SeveralFilesBringGradientsAndScaleInTurn) {
    const TemporaryFolder folder;
    const std::string first = mixed_group(1.0F).write(folder, "first");
    const std::string second = GroupBuilder()
                                   .f32("a.grad", {8.0F, 8.0F, 8.0F})
                                   .f32("b.grad", {8.0F, 8.0F})
                                   .f32("c.grad", {})
                                   .meta("gradient_scale", "8")
                                   .write(folder, "second");
    const json steps = good_run({"step", first, second, "--steps", "4", "--json"}).json()["steps"];
    ASSERT_EQ(steps.size(), 4U);
    EXPECT_EQ(steps[0]["gradient_scale"], 4.0);
    EXPECT_EQ(steps[1]["gradient_scale"], 8.0);
    EXPECT_EQ(steps[1]["max_finite_abs"], 1.0);
    EXPECT_EQ(steps[3]["total_norm"], steps[1]["total_norm"]);
    EXPECT_EQ(steps[3]["entries"][0]["step"], 4);
    EXPECT_EQ(steps[3]["entries"][2]["step"], 0) << "an empty entry does not advance";
}

TEST(StepState, TheOutputIsAnInputOfTheSameForm) {
    const TemporaryFolder folder;
    const std::string out = folder.path("out");
    good_run({"step", mixed_group(1.0F).write(folder), "--amsgrad", "--out", out});
    const harness::SafetensorsFile file(out);
    for (const char* name : {"a", "b"}) {
        const std::string entry(name);
        for (const char* suffix : {".param", ".grad", ".exp_avg", ".exp_avg_sq", ".max_exp_avg_sq"}) {
            EXPECT_TRUE(file.tensors().contains(entry + suffix)) << entry << suffix;
        }
        EXPECT_EQ(file.metadata().at(entry + ".step"), "1");
    }
    EXPECT_EQ(file.tensors().at("b.grad").dtype, "BF16");
    EXPECT_EQ(file.metadata().at("c.step"), "0");
    EXPECT_EQ(file.metadata().at("gradient_scale"), "4");
    EXPECT_FALSE(file.tensors().contains("c.exp_avg"));
}

TEST(StepState, StepCountsKeepEveryDigit) {
    const TemporaryFolder folder;
    const GroupBuilder group = GroupBuilder()
                                   .entry("a", {1.0F})
                                   .moments("a", {0.1F}, {0.1F})
                                   .entry("b", {1.0F})
                                   .moments("b", {0.1F}, {0.1F})
                                   .meta("step", "5")
                                   .meta("b.step", "9007199254740993");
    const json entries =
        good_run({"step", group.write(folder), "--json", "--out", folder.path("out")}).json()["steps"][0]["entries"];
    EXPECT_EQ(entries[0]["step"].get<std::uint64_t>(), 6U);
    EXPECT_EQ(entries[1]["step"].get<std::uint64_t>(), 9007199254740994U);
    const harness::SafetensorsFile file(folder.path("out"));
    EXPECT_EQ(file.metadata().at("a.step"), "6");
    EXPECT_EQ(file.metadata().at("b.step"), "9007199254740994");
}

TEST(StepState, ASkippedStepInBetweenChangesNothing) {
    const TemporaryFolder folder;
    const std::string good = mixed_group(1.0F).write(folder, "good");
    const std::string bad = mixed_group(std::numeric_limits<float>::infinity()).write(folder, "bad");
    good_run({"step", good, bad, good, "--out", folder.path("with")});
    good_run({"step", good, good, "--out", folder.path("without")});
    EXPECT_EQ(read_bytes(folder.path("with")), read_bytes(folder.path("without")));
}

TEST(StepState, TheInputMayBeReplacedByTheOutput) {
    const TemporaryFolder folder;
    const std::string path = mixed_group(1.0F).write(folder);
    good_run({"step", path, "--steps", "2", "--out", folder.path("two")});
    good_run({"step", path, "--out", path});
    good_run({"step", path, "--out", path});
    EXPECT_EQ(read_bytes(path), read_bytes(folder.path("two")));
}

TEST(StepState, AStepCountWithoutMomentsIsNotedAndIgnored) {
    const TemporaryFolder folder;
    const Ended ended = good_run({"step", GroupBuilder().entry("w", {1.0F}).meta("step", "9").write(folder), "--json"});
    EXPECT_EQ(ended.json()["steps"][0]["entries"][0]["step"], 1);
    EXPECT_NE(ended.err.find("note: "), std::string::npos);
}

}  // namespace
}  // namespace gradguard
