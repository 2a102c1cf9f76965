// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::GroupBuilder;
using testing::run_program;
using testing::TemporaryFolder;

/// Runs `step` with these flags on a good group; says what the error is.
json step_error(std::vector<std::string> flags, int status) {
    const TemporaryFolder folder;
    flags.insert(flags.begin(), {"step", GroupBuilder().entry("w", {0.5F}).write(folder), "--json"});
    const Ended ended = run_program(flags);
    EXPECT_EQ(ended.status, status) << ended.out << ended.err;
    EXPECT_FALSE(ended.err.empty());
    return ended.json()["error"];
}

void expect_invalid_option(const std::vector<std::string>& flags, const std::string& operand) {
    const json error = step_error(flags, 2);
    EXPECT_EQ(error["kind"], "InvalidOption") << error;
    EXPECT_EQ(error["operand"], operand) << error;
    EXPECT_TRUE(error["entry"].is_null()) << error;
}

void expect_usage_error(const std::vector<std::string>& arguments) {
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.status, 2) << ended.out << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.err.rfind("gradguard: ", 0), 0U) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
}

json first_step(std::vector<std::string> flags, const GroupBuilder& group) {
    const TemporaryFolder folder;
    flags.insert(flags.begin(), {"step", group.write(folder), "--json"});
    const Ended ended = run_program(flags);
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
    return ended.json()["steps"][0];
}

TEST(Arguments, EachCommandShowsAnExample) {
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"--help"},
                                                                                         {"step", "--help"},
                                                                                         {"stats", "--help"},
                                                                                         {"bench", "--help"},
                                                                                         {"bench", "vgpu", "--help"},
                                                                                         {"ptx", "--help"}}) {
        const Ended ended = run_program(command);
        EXPECT_EQ(ended.status, 0);
        EXPECT_NE(ended.out.find("Examples:\n  gradguard "), std::string::npos) << ended.out;
    }
}

TEST(Arguments, HelpNamesEveryOptionOfTheContract) {
    const Ended ended = run_program({"step", "--help"});
    for (const char* flag : {"--learning-rate", "--beta1",          "--beta2",    "--epsilon",       "--weight-decay",
                             "--amsgrad",       "--maximize",       "--max-norm", "--guard-epsilon", "--nonfinite",
                             "--skip-update",   "--gradient-scale", "--device",   "--fmad",          "--schedule-seed",
                             "--observe",       "--count",          "--out",      "--json",          "--steps"}) {
        EXPECT_NE(ended.out.find(flag), std::string::npos) << flag;
    }
}

TEST(Arguments, VersionSaysWhatWasBuiltWithWhat) {
    const Ended ended = run_program({"--version"});
    EXPECT_EQ(ended.status, 0);
    for (const char* word : {"gradguard ", "nvcc", "-fmad=false", "compute_80", "SHA-256"}) {
        EXPECT_NE(ended.out.find(word), std::string::npos) << word;
    }
}

TEST(Arguments, WhatCannotBeUnderstoodIsAUsageErrorInOneLine) {
    expect_usage_error({});
    expect_usage_error({"dance"});
    expect_usage_error({"step"});
    expect_usage_error({"bench"});
    expect_usage_error({"step", "x", "--no-such-flag"});
    expect_usage_error({"step", "x", "--beta1"});
    expect_usage_error({"step", "x", "--beta1", "0.9x"});
    expect_usage_error({"step", "x", "--beta1", " 0.9"});
    expect_usage_error({"step", "x", "--beta1", ""});
    expect_usage_error({"step", "x", "--max-norm", "None"});
    expect_usage_error({"step", "x", "--gradient-scale", "one"});
    expect_usage_error({"step", "x", "--nonfinite", "ignore"});
    expect_usage_error({"step", "x", "--device", "cpu"});
    expect_usage_error({"step", "x", "--fmad", "maybe"});
    expect_usage_error({"step", "x", "--schedule-seed", "-1"});
    expect_usage_error({"step", "x", "--schedule-seed", "18446744073709551616"});
    expect_usage_error({"step", "x", "--steps", "0"});
    expect_usage_error({"step", "x", "--steps", "1.5"});
    expect_usage_error({"step", "x", "y", "--steps", "1"});
    expect_usage_error({"step", "x", "--out", ""});
    expect_usage_error({"stats", "x", "--beta1", "0.9"});
    expect_usage_error({"step", "x", "--beta1", "0.9\n\x1B[2J"});
    expect_usage_error({"step", "x", "--no\nsuch"});
    expect_usage_error({"check", "--time", "\n"});
}

TEST(Arguments, WithJsonAUsageErrorIsAnObjectToo) {
    const Ended ended = run_program({"step", "--json"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.json()["error"]["kind"], "Usage");
    EXPECT_TRUE(ended.json()["error"]["entry"].is_null());
    EXPECT_TRUE(ended.json()["error"]["operand"].is_null());
}

TEST(Arguments, NumbersBeyondFp32MeetTheOptionsRule) {
    expect_invalid_option({"--max-norm", "1e300"}, "max_norm");
    expect_invalid_option({"--learning-rate", "1e39"}, "learning_rate");
    expect_invalid_option({"--epsilon", "1e-60"}, "epsilon");
    expect_invalid_option({"--guard-epsilon", "1e-300"}, "guard_epsilon");
}

TEST(Arguments, EachOptionHasItsRule) {
    expect_invalid_option({"--max-norm", "-1"}, "max_norm");
    expect_invalid_option({"--max-norm", "nan"}, "max_norm");
    expect_invalid_option({"--learning-rate", "-0.1"}, "learning_rate");
    expect_invalid_option({"--learning-rate", "inf"}, "learning_rate");
    expect_invalid_option({"--beta1", "1"}, "beta1");
    expect_invalid_option({"--beta2", "0.99999999"}, "beta2");
    expect_invalid_option({"--epsilon", "0"}, "epsilon");
    expect_invalid_option({"--guard-epsilon", "nan"}, "guard_epsilon");
    expect_invalid_option({"--weight-decay", "-1"}, "weight_decay");
    expect_invalid_option({"--gradient-scale", "0"}, "gradient_scale");
    expect_invalid_option({"--learning-rate", "1e30", "--weight-decay", "1e30"}, "weight_decay");
}

TEST(Arguments, TheLeastScaleIsTheOneWithAFiniteReciprocal) {
    const GroupBuilder group = GroupBuilder().entry("w", {0.0F});
    EXPECT_EQ(first_step({"--gradient-scale", "0x1p-127"}, group)["gradient_scale"].get<float>(), 0x1p-127F);
    expect_invalid_option({"--gradient-scale", "0x1p-128"}, "gradient_scale");
    expect_invalid_option({"--gradient-scale", "0x1p-128", "--skip-update"}, "gradient_scale");
}

TEST(Arguments, TextIsRoundedOnceToFp32) {
    const GroupBuilder group = GroupBuilder().entry("w", {0.0F});
    // Just above the middle between 1 and the next FP32 number; by way of FP64 it would become 1.
    EXPECT_EQ(first_step({"--gradient-scale", "1.00000005960464477539063"}, group)["gradient_scale"].get<float>(),
              0x1.000002p0F);
    EXPECT_EQ(first_step({"--gradient-scale", "0x1.00000100000000001p0"}, group)["gradient_scale"].get<float>(),
              0x1.000002p0F);
    EXPECT_EQ(first_step({"--gradient-scale", "0x1.000001p0"}, group)["gradient_scale"].get<float>(), 1.0F);
}

TEST(Arguments, AFlagOverridesTheMetadata) {
    const GroupBuilder group = GroupBuilder().entry("w", {0.5F}).meta("gradient_scale", "0x1p3");
    EXPECT_EQ(first_step({}, group)["gradient_scale"], 8.0);
    EXPECT_EQ(first_step({}, group)["total_norm"], 0.0625);
    EXPECT_EQ(first_step({"--gradient-scale", "2"}, group)["gradient_scale"], 2.0);
    EXPECT_EQ(first_step({"--gradient-scale", "2"}, group)["total_norm"], 0.25);
}

TEST(Arguments, TheMessageNamesTheTextThatWasGiven) {
    EXPECT_NE(step_error({"--max-norm", "1e300"}, 2)["message"].get<std::string>().find("--max-norm 1e300"),
              std::string::npos);
}

TEST(Arguments, OutputThatCannotBeWrittenIsNoSuccess) {
    const Ended ended = run_program({"--version"}, "/dev/full");
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.err.find("standard output"), std::string::npos) << ended.err;
}

TEST(Arguments, AutoSaysWhichDeviceItTook) {
    const TemporaryFolder folder;
    const Ended ended =
        run_program({"step", GroupBuilder().entry("w", {0.5F}).write(folder), "--device", "auto", "--json"});
    EXPECT_EQ(ended.status, 0);
    EXPECT_FALSE(ended.json()["device"].get<std::string>().empty());
    EXPECT_NE(ended.json()["device"], "auto");
}

}  // namespace
}  // namespace gradguard
