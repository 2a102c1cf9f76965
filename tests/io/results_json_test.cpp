// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/io/results.h"

namespace gradguard::harness {
namespace {

using nlohmann::json;

constexpr double kInf = std::numeric_limits<double>::infinity();

RunResult one_step() {
    StepResult step;
    step.source = "x";
    step.report = GradientStatsReport{};
    step.report->stats = {kInf, 0x1.99999ap-4F, false, ~0ULL, 2, 3.0F};
    step.exact_norm = 0.1;
    step.clip_multiplier = 0x1.99998p-3F;
    EntryResult entry;
    entry.name = "w";
    entry.step = ~0ULL;
    entry.bad = true;
    entry.norm = kInf;
    entry.first_bad = 7;
    entry.param = WorstUlp{0.5, 3};
    step.entries.push_back(entry);
    return {"vgpu", {step}};
}

json first_step(const RunResult& run) { return json::parse(step_run_to_json(run))["steps"][0]; }

TEST(ResultsJson, InfinityAndNanAreStrings) {
    RunResult run = one_step();
    EXPECT_EQ(first_step(run)["total_norm"], "inf");
    run.steps[0].report->stats.total_norm = -kInf;
    EXPECT_EQ(first_step(run)["total_norm"], "-inf");
    run.steps[0].report->stats.total_norm = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(first_step(run)["total_norm"], "nan");
}

TEST(ResultsJson, NumbersComeBackTheSame) {
    const json step = first_step(one_step());
    EXPECT_EQ(step["exact_norm"].get<double>(), 0.1);
    EXPECT_EQ(step["max_finite_abs"].get<float>(), 0x1.99999ap-4F);
    EXPECT_EQ(step["clip_multiplier"].get<double>(), 0x1.99998p-3);
    EXPECT_EQ(step["elements"].get<std::uint64_t>(), ~0ULL);
    EXPECT_EQ(step["entries"][0]["step"].get<std::uint64_t>(), ~0ULL);
    EXPECT_EQ(step["entries"][0]["first_bad"].get<std::uint64_t>(), 7U);
    EXPECT_EQ(step["entries"][0]["max_ulp"]["param"].get<double>(), 0.5);
    EXPECT_TRUE(step["entries"][0]["max_ulp"]["exp_avg"].is_null());
}

TEST(ResultsJson, WithoutAReportItsFieldsAreNullAndItsCountsZero) {
    RunResult run = one_step();
    run.steps[0].report.reset();
    run.steps[0].exact_norm.reset();
    run.steps[0].skip_reason = SkipReason::kRequested;
    const json step = first_step(run);
    for (const char* field :
         {"total_norm", "exact_norm", "max_finite_abs", "all_finite", "elements", "tensors", "gradient_scale"}) {
        EXPECT_TRUE(step.at(field).is_null()) << field;
    }
    for (const char* field : {"reduction_launches", "update_launches", "readback_bytes", "scratch_bytes"}) {
        EXPECT_EQ(step.at(field), 0) << field;
    }
    EXPECT_EQ(step["skip_reason"], "Requested");
}

TEST(ResultsJson, AFailureIsOutOfBoundsAndTold) {
    RunResult run = one_step();
    EXPECT_EQ(json::parse(step_run_to_json(run))["within_bounds"], true);
    run.steps[0].failures.push_back("why");
    EXPECT_EQ(json::parse(step_run_to_json(run))["within_bounds"], false);
    EXPECT_EQ(first_step(run)["within_bounds"], false);
    EXPECT_EQ(first_step(run)["failures"][0], "why");
}

TEST(ResultsJson, AScanHasNoUpdate) {
    const json step = json::parse(stats_run_to_json(one_step()))["steps"][0];
    EXPECT_FALSE(step.contains("clip_multiplier"));
    EXPECT_FALSE(step.contains("update_launches"));
    EXPECT_FALSE(step["entries"][0].contains("max_ulp"));
    EXPECT_EQ(step["entries"][0]["bad"], true);
}

TEST(ResultsJson, AnErrorSaysWhereOrNull) {
    const json with = json::parse(error_to_json({"ShapeMismatch", 2, "gradients", "m"}))["error"];
    EXPECT_EQ(with["entry"], 2);
    EXPECT_EQ(with["operand"], "gradients");
    const json without = json::parse(error_to_json({"Usage", {}, {}, "caf\xe9"}))["error"];
    EXPECT_TRUE(without["entry"].is_null());
    EXPECT_TRUE(without["operand"].is_null());
}

}  // namespace
}  // namespace gradguard::harness
