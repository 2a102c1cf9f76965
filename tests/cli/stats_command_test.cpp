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

TEST(StatsCommand, GradientsAloneAreEnough) {
    const TemporaryFolder folder;
    const std::string path = GroupBuilder().f32("a.grad", {3.0F}).bf16("b.grad", {4.0F, 0.0F}).write(folder);
    const Ended ended = run_program({"stats", path, "--json"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const json step = ended.json()["steps"][0];
    EXPECT_EQ(step["total_norm"], 5.0);
    EXPECT_EQ(step["exact_norm"], 5.0);
    EXPECT_EQ(step["elements"], 3);
    EXPECT_EQ(step["readback_bytes"], 24);
    EXPECT_EQ(step["entries"][1]["norm"], 4.0);
    EXPECT_EQ(ended.json()["within_bounds"], true);
}

TEST(StatsCommand, EachFileIsAScanOfItsOwn) {
    const TemporaryFolder folder;
    const std::string one = GroupBuilder().f32("a.grad", {3.0F}).write(folder, "one");
    const std::string two = GroupBuilder().entry("b", {8.0F}).meta("gradient_scale", "2").write(folder, "two");
    const json steps = run_program({"stats", one, two, "--json"}).json()["steps"];
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[0]["total_norm"], 3.0);
    EXPECT_EQ(steps[1]["total_norm"], 4.0);
    EXPECT_EQ(steps[1]["gradient_scale"], 2.0);
}

TEST(StatsCommand, BadElementsAreAResult) {
    const TemporaryFolder folder;
    // Finite as stored, infinite after unscaling.
    const std::string path = GroupBuilder().f32("a.grad", {1.0F, 3e38F}).write(folder);
    const Ended ended = run_program({"stats", path, "--gradient-scale", "0.5", "--json"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const json step = ended.json()["steps"][0];
    EXPECT_EQ(step["total_norm"], "inf");
    EXPECT_EQ(step["max_finite_abs"], 2.0);
    EXPECT_EQ(step["entries"][0]["first_bad"], 1);
}

TEST(StatsCommand, NothingToScanIsNormZero) {
    const TemporaryFolder folder;
    const json step = run_program({"stats", GroupBuilder().write(folder), "--json"}).json()["steps"][0];
    EXPECT_EQ(step["total_norm"], 0.0);
    EXPECT_EQ(step["all_finite"], true);
    EXPECT_EQ(step["reduction_launches"], 0);
}

TEST(StatsCommand, ErrorsHaveTheContractsKinds) {
    const TemporaryFolder folder;
    const std::string path =
        GroupBuilder().f32("a.grad", {1.0F}).raw("b.grad", "I32", {1}, std::vector<std::byte>(4)).write(folder);
    const Ended dtype = run_program({"stats", path, "--json"});
    EXPECT_EQ(dtype.status, 2);
    EXPECT_EQ(dtype.json()["error"]["kind"], "InvalidTensor");
    EXPECT_EQ(dtype.json()["error"]["entry"], 1);
    EXPECT_EQ(dtype.json()["error"]["operand"], "gradients");
    const Ended scale = run_program({"stats", path, "--gradient-scale", "-1", "--json"});
    EXPECT_EQ(scale.status, 2);
    EXPECT_EQ(scale.json()["error"]["kind"], "InvalidOption");
    EXPECT_EQ(scale.json()["error"]["operand"], "gradient_scale");
}

}  // namespace
}  // namespace gradguard
