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
using Words = std::vector<std::string>;

constexpr std::size_t kElements = 1024;  // one block of the scan

GroupBuilder later_step(bool half, bool amsgrad) {
    const std::vector<float> gradients(kElements, 0.5F), moments(kElements, 0.25F);
    GroupBuilder group = GroupBuilder().entry("w", gradients).moments("w", moments, moments).meta("step", "3");
    if (half) group.bf16("w.grad", gradients);
    if (amsgrad) group.f32("w.max_exp_avg_sq", moments);
    return group;
}

json run_json(const std::string& command, const GroupBuilder& group, Words flags) {
    const TemporaryFolder folder;
    flags.insert(flags.begin(), {command, group.write(folder), "--json"});
    const Ended ended = run_program(flags);
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
    return ended.json();
}

TEST(Observe, AStepUnderAllObserversSaysWhatTheyChecked) {
    std::vector<float> gradients(2000, 0.5F);
    const json run = run_json("step", GroupBuilder().entry("w", gradients), {"--observe", "all"});
    EXPECT_EQ(run["within_bounds"], true);
    EXPECT_EQ(run["findings"], json::array());
    EXPECT_EQ(run["nothing_to_check"], json::array());
    Words names;
    for (const json& observer : run["observers"]) {
        names.push_back(observer["name"]);
        for (const auto& [what, count] : observer["checked"].items()) EXPECT_GT(count, 0) << observer["name"] << what;
    }
    EXPECT_EQ(names, (Words{"bounds", "init", "registers", "races", "barriers", "inputs", "leaks", "counts"}));
    EXPECT_FALSE(run.contains("counts"));
}

TEST(Observe, ByDefaultNobodyWatches) {
    const TemporaryFolder folder;
    const json run = testing::run_exactly({"step", GroupBuilder().entry("w", {0.5F}).write(folder), "--json"}).json();
    EXPECT_EQ(run["within_bounds"], true);
    for (const char* field : {"observers", "findings", "nothing_to_check", "counts"}) EXPECT_FALSE(run.contains(field));
}

TEST(Observe, ObserversAreChosenByName) {
    const json run = run_json("stats", GroupBuilder().entry("w", {0.5F}), {"--observe", "init,leaks"});
    ASSERT_EQ(run["observers"].size(), 2U);
    EXPECT_EQ(run["observers"][1]["name"], "leaks");
    for (const char* names : {"gossip", "init,init", "all,init", ""}) {
        const Ended ended = run_program({"step", "x", "--observe", names});
        EXPECT_EQ(ended.status, 2) << names;
        EXPECT_NE(ended.err.find("--observe"), std::string::npos) << ended.err;
    }
}

TEST(Observe, AnObserverWithNothingToCheckIsReported) {
    const Words flags{"--observe", "all", "--skip-update"};
    const json run = run_json("step", GroupBuilder().entry("w", {0.5F}), flags);
    EXPECT_EQ(run["nothing_to_check"], json({"bounds", "init", "registers", "races", "barriers", "inputs", "counts"}));
    const TemporaryFolder folder;
    const Ended text =
        run_program({"step", GroupBuilder().entry("w", {0.5F}).write(folder), "--observe", "all", "--skip-update"});
    EXPECT_NE(text.out.find("nothing to check for bounds, init"), std::string::npos) << text.out;
}

TEST(Observe, TheResultDoesNotDependOnObservers) {
    const json plain =
        run_json("step", later_step(true, true), {"--amsgrad", "--schedule-seed", "5", "--observe", "none"});
    const json watched =
        run_json("step", later_step(true, true), {"--amsgrad", "--schedule-seed", "5", "--observe", "all", "--count"});
    EXPECT_EQ(plain["steps"][0]["entries"], watched["steps"][0]["entries"]);
    EXPECT_EQ(plain["steps"][0]["total_norm"], watched["steps"][0]["total_norm"]);
}

TEST(Count, TrafficIsThatOfTheTableInBytesPerElement) {
    struct Row {
        bool half, amsgrad;
        double once, twice;
    };
    for (const Row& row :
         {Row{false, false, 28, 32}, Row{true, false, 26, 28}, Row{false, true, 36, 40}, Row{true, true, 34, 36}}) {
        Words flags{"--count"};
        if (row.amsgrad) flags.emplace_back("--amsgrad");
        const json traffic =
            run_json("step", later_step(row.half, row.amsgrad), flags)["counts"]["traffic_per_element"];
        const double gradient = row.half ? 2 : 4;
        EXPECT_EQ(traffic["floor_read_once"], row.once);
        EXPECT_EQ(traffic["floor_read_twice"], row.twice);
        EXPECT_EQ(traffic["update_bytes"], row.once);
        EXPECT_EQ(traffic["scan_bytes"], gradient + 12.0 / kElements) << "the gradient and one triple";
        EXPECT_EQ(traffic["bytes"], row.twice + 12.0 / kElements);
    }
}

TEST(Count, AFirstStepReadsNoMoments) {
    const json traffic = run_json("step", GroupBuilder().entry("w", std::vector<float>(kElements, 0.5F)),
                                  {"--count"})["counts"]["traffic_per_element"];
    EXPECT_EQ(traffic["floor_read_once"], 20.0);
    EXPECT_EQ(traffic["update_bytes"], 20.0);
}

TEST(Count, KernelsAreCountedApart) {
    const json run = run_json("stats", GroupBuilder().f32("w.grad", std::vector<float>(3000, 0.5F)), {"--count"});
    const json& kernels = run["counts"]["kernels"];
    ASSERT_EQ(kernels.size(), 2U);
    EXPECT_EQ(kernels[0]["kernel"], "gradient_statistics_f32");
    EXPECT_EQ(kernels[0]["launches"], 1);
    EXPECT_EQ(kernels[0]["global_read"]["bytes"], 12000);
    EXPECT_EQ(kernels[0]["global_read"]["sectors"], 375);
    EXPECT_EQ(kernels[0]["instructions"]["ld.global.f32"], 3000);
    EXPECT_EQ(kernels[1]["kernel"], "gradient_statistics_merge");
    EXPECT_EQ(run["counts"]["traffic_per_element"]["floor_scan"], 4.0);
    EXPECT_TRUE(run["counts"]["traffic_per_element"]["update_bytes"].is_null());
}

TEST(Count, TextShowsMeasuredTrafficBesideTheFloor) {
    const TemporaryFolder folder;
    const Ended ended = run_program({"step", later_step(false, false).write(folder), "--count"});
    EXPECT_EQ(ended.status, 0);
    for (const char* part : {"adamw_f32_clipped", "ld.global.f32", "4.012 bytes per element scanned + 28.000",
                             "floor 28.000 with the gradient read once, 32.000 read twice"}) {
        EXPECT_NE(ended.out.find(part), std::string::npos) << part << " in\n" << ended.out;
    }
}

TEST(Bench, ObserversHaveTheirPriceMeasured) {
    const Ended ended = run_program({"bench", "vgpu", "--observe", "counts", "--json"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    for (const char* part : {"scan", "update"}) {
        EXPECT_GT(ended.json()[part]["observer_ratio"].get<double>(), 0.0) << part;
        EXPECT_GT(ended.json()[part]["observed_elements_per_second"].get<double>(), 0.0) << part;
    }
    EXPECT_EQ(run_program({"bench", "vgpu", "--observe", "gossip"}).status, 2);
}

}  // namespace
}  // namespace gradguard
