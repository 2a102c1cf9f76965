// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/program.h"

namespace gradguard {
namespace {

using nlohmann::json;
using testing::Ended;
using testing::GroupBuilder;
using testing::run_program;
using testing::TemporaryFolder;

constexpr float kInf = std::numeric_limits<float>::infinity();

/// A group that only the tested fault makes bad: "a" takes its first step, "b" a later one.
GroupBuilder good_group() {
    return GroupBuilder()
        .entry("a", {0.5F, 1.0F})
        .entry("b", {0.25F, -1.0F})
        .moments("b", {0.1F, 0.2F}, {0.3F, 0.4F})
        .meta("b.step", "3");
}

json error_of(const GroupBuilder& group, std::vector<std::string> flags = {}, int status = 2) {
    const TemporaryFolder folder;
    flags.insert(flags.begin(), {"step", group.write(folder), "--json", "--out", folder.path("out")});
    const Ended ended = run_program(flags);
    EXPECT_EQ(ended.status, status) << ended.out << ended.err;
    EXPECT_FALSE(ended.err.empty());
    EXPECT_FALSE(std::filesystem::exists(folder.path("out"))) << "nothing is written after an error";
    return ended.json()["error"];
}

void expect_error(const json& error, const std::string& kind, std::size_t entry, const std::string& operand) {
    EXPECT_EQ(error["kind"], kind) << error;
    EXPECT_EQ(error["entry"], entry) << error;
    EXPECT_EQ(error["operand"], operand) << error;
}

TEST(BadInput, TheGoodGroupIsGood) {
    const TemporaryFolder folder;
    const Ended ended = run_program({"step", good_group().write(folder)});
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
}

TEST(BadInput, AFileThatIsNoSafetensorsFileIsOneLine) {
    const TemporaryFolder folder;
    for (const std::string& bytes : {std::string(), std::string("1234567"), std::string(100, '\xff')}) {
        const std::string path = folder.write("bad", bytes);
        const Ended ended = run_program({"step", path});
        EXPECT_EQ(ended.status, 2);
        EXPECT_EQ(ended.err.rfind("gradguard: " + path + ": ", 0), 0U) << ended.err;
        EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    }
    const Ended missing = run_program({"step", folder.path("none"), "--json"});
    EXPECT_EQ(missing.status, 2);
    EXPECT_EQ(missing.json()["error"]["kind"], "InvalidFile");
}

TEST(BadInput, ANameWithoutAKnownEndingIsRefused) {
    EXPECT_EQ(error_of(good_group().f32("a.weight", {1.0F}))["kind"], "InvalidFile");
    EXPECT_EQ(error_of(good_group().f32("param", {1.0F}))["kind"], "InvalidFile");
    EXPECT_EQ(error_of(good_group().f32(".param", {1.0F}))["kind"], "InvalidFile");
}

TEST(BadInput, ShapesMustBeTheParameters) {
    expect_error(error_of(good_group().f32("a.grad", {1.0F})), "ShapeMismatch", 0, "gradients");
    expect_error(error_of(good_group().f32("a.grad", {1.0F, 2.0F}, {2, 1})), "ShapeMismatch", 0, "gradients");
    expect_error(error_of(good_group().f32("b.exp_avg", {1.0F})), "ShapeMismatch", 1, "first_moment");
    expect_error(error_of(good_group().f32("b.exp_avg_sq", {1.0F})), "ShapeMismatch", 1, "second_moment");
    expect_error(error_of(GroupBuilder()
                              .entry("w", {1.0F})
                              .moments("w", {0.0F}, {0.0F})
                              .f32("w.max_exp_avg_sq", {0.0F, 0.0F})
                              .meta("step", "1"),
                          {"--amsgrad"}),
                 "ShapeMismatch", 0, "max_second_moment");
}

TEST(BadInput, DtypesOutsideTheContractAreInvalidTensors) {
    const std::vector<std::byte> four(4);
    const std::vector<std::byte> sixteen(16);
    expect_error(error_of(good_group().raw("a.param", "F16", {2}, four)), "InvalidTensor", 0, "parameters");
    expect_error(error_of(good_group().raw("a.param", "F64", {2}, sixteen)), "InvalidTensor", 0, "parameters");
    expect_error(error_of(good_group().raw("b.grad", "I64", {2}, sixteen)), "InvalidTensor", 1, "gradients");
    expect_error(error_of(good_group().raw("b.exp_avg", "BF16", {2}, four)), "InvalidTensor", 1, "first_moment");
    expect_error(error_of(good_group().raw("b.exp_avg_sq", "F64", {2}, sixteen)), "InvalidTensor", 1, "second_moment");
}

TEST(BadInput, AHugeDimensionBesideAZeroIsAnInvalidTensor) {
    expect_error(error_of(GroupBuilder().raw("w.param", "F32", {0, 4294967296}, {}).raw("w.grad", "F32", {0}, {})),
                 "InvalidTensor", 0, "parameters");
}

TEST(BadInput, MissingPartsOfAnEntryAreNamed) {
    expect_error(error_of(good_group().f32("c.grad", {1.0F})), "InvalidTensor", 2, "parameters");
    expect_error(error_of(good_group().f32("c.param", {1.0F})), "InvalidTensor", 2, "gradients");
    expect_error(error_of(good_group().f32("a.exp_avg", {1.0F, 1.0F})), "InvalidState", 0, "second_moment");
    expect_error(error_of(good_group().f32("a.exp_avg_sq", {1.0F, 1.0F})), "InvalidState", 0, "first_moment");
    expect_error(error_of(good_group().f32("a.max_exp_avg_sq", {1.0F, 1.0F})), "InvalidState", 0, "first_moment");
}

TEST(BadInput, TheMaximumIsThereExactlyWithAmsgrad) {
    expect_error(error_of(good_group(), {"--amsgrad"}), "InvalidState", 1, "max_second_moment");
    expect_error(error_of(good_group().f32("b.max_exp_avg_sq", {1.0F, 1.0F})), "InvalidState", 1, "max_second_moment");
}

TEST(BadInput, MomentsNeedAStepCount) {
    const GroupBuilder group = GroupBuilder().entry("w", {1.0F}).moments("w", {0.0F}, {0.0F});
    expect_error(error_of(group), "InvalidState", 0, "step");
    for (const char* text : {"", "0", "-1", "+1", "1.0", " 1", "0x1", "one", "18446744073709551616"}) {
        expect_error(error_of(GroupBuilder(group).meta("step", text)), "InvalidState", 0, "step");
    }
}

TEST(BadInput, TheLastStepOverflows) {
    const GroupBuilder group = GroupBuilder().entry("w", {1.0F}).moments("w", {0.0F}, {0.0F});
    expect_error(error_of(GroupBuilder(group).meta("step", "18446744073709551615")), "StepOverflow", 0, "step");
    expect_error(error_of(GroupBuilder(group).meta("step", "18446744073709551614"), {"--steps", "2"}), "StepOverflow",
                 0, "step");
}

TEST(BadInput, OptionsAreReportedBeforeTensorsAndEntriesInOrder) {
    GroupBuilder group = good_group().raw("b.grad", "I64", {2}, std::vector<std::byte>(16));
    EXPECT_EQ(error_of(group, {"--guard-epsilon", "0"})["operand"], "guard_epsilon");
    expect_error(error_of(group), "InvalidTensor", 1, "gradients");
    group.f32("a.grad", {1.0F});
    expect_error(error_of(group), "ShapeMismatch", 0, "gradients");
}

TEST(BadInput, ASkippedStepIsValidatedAllTheSame) {
    expect_error(error_of(good_group().f32("a.grad", {1.0F}), {"--skip-update"}), "ShapeMismatch", 0, "gradients");
}

TEST(BadInput, TheMessageNamesTheEntry) {
    const json error = error_of(good_group().f32("b.grad", {1.0F}));
    EXPECT_NE(error["message"].get<std::string>().find("\"b\""), std::string::npos) << error;
}

TEST(BadInput, TheScaleInTheMetadataIsANumberAndKeepsItsRule) {
    EXPECT_EQ(error_of(good_group().meta("gradient_scale", "large"))["kind"], "InvalidFile");
    EXPECT_EQ(error_of(good_group().meta("gradient_scale", ""))["kind"], "InvalidFile");
    const json error = error_of(good_group().meta("gradient_scale", "1e39"));
    EXPECT_EQ(error["kind"], "InvalidOption");
    EXPECT_EQ(error["operand"], "gradient_scale");
    EXPECT_TRUE(error["entry"].is_null());
}

TEST(BadInput, ALaterFileMustHaveTheSameNames) {
    const TemporaryFolder folder;
    const std::string first = GroupBuilder().entry("a", {1.0F}).entry("b", {1.0F}).write(folder, "first");
    const std::string fewer = GroupBuilder().entry("a", {1.0F}).write(folder, "fewer");
    const std::string more =
        GroupBuilder().entry("a", {1.0F}).entry("b", {1.0F}).entry("c", {1.0F}).write(folder, "more");
    for (const std::string& later : {fewer, more}) {
        const Ended ended = run_program({"step", first, later, "--json"});
        EXPECT_EQ(ended.status, 2);
        EXPECT_EQ(ended.json()["error"]["kind"], "InvalidFile");
        EXPECT_NE(ended.err.find(later), std::string::npos) << ended.err;
    }
}

TEST(BadInput, ALaterFileIsCheckedBeforeTheFirstStep) {
    const TemporaryFolder folder;
    const std::string first = GroupBuilder().entry("a", {1.0F}).write(folder, "first");
    const std::string later = GroupBuilder().f32("a.grad", {1.0F, 2.0F}).write(folder, "later");
    const Ended ended = run_program({"step", first, later});
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.out, "");
    EXPECT_NE(ended.err.find("ShapeMismatch"), std::string::npos) << ended.err;
}

TEST(BadInput, NonFiniteGradientsUnderPolicyErrorAreExitThree) {
    const json error = error_of(good_group().f32("b.grad", {1.0F, kInf}), {"--nonfinite", "error"}, 3);
    EXPECT_EQ(error["kind"], "NonFiniteGradients");
}

TEST(BadInput, AnOutputThatCannotBeWrittenIsOneLine) {
    const TemporaryFolder folder;
    const Ended ended = run_program({"step", good_group().write(folder), "--out", folder.path("none/out"), "--json"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.json()["error"]["kind"], "InvalidFile");
}

}  // namespace
}  // namespace gradguard
