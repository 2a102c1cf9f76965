// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/devices/registry.h"
#include "tests/cli/program.h"

namespace gradguard::testing {
namespace {

/// A measurement of little.
std::vector<std::string> small_step(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"bench",        "step", "--elements", "100", "--tensors", "2",
                                       "--iterations", "1",    "--samples",  "3",   "--warmup",  "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

TEST(BenchCommand, WritesTheReportThatItPrints) {
    const TemporaryFolder folder;
    const Ended ended = run_exactly(small_step({"--dtype", "f32", "--json", "--report", folder.path("r.json")}));
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(read_bytes(folder.path("r.json")), ended.out);
    const nlohmann::json json = ended.json();
    EXPECT_EQ(json["configuration"]["elements"], 100);
    EXPECT_EQ(json["configuration"]["dtype"], "f32");
    EXPECT_EQ(json["environment"]["device"]["kind"], "virtual GPU");
    EXPECT_EQ(folder.entries(), 1U);
}

TEST(BenchCommand, SaysForPeopleThatTheTimesAreOfASimulation) {
    const Ended ended = run_exactly(small_step());
    ASSERT_EQ(ended.status, 0) << ended.err;
    for (const char* words : {"guarded", "staged", "no time of any hardware", "2 launches, 800 bytes of temporary",
                              "1,600 bytes of traffic (counted: 2, 800, 1600)", "counts of the virtual GPU"}) {
        EXPECT_NE(ended.out.find(words), std::string::npos) << words << "\n" << ended.out;
    }
}

TEST(BenchCommand, AReportThatIsThereIsRefusedAndLeftAlone) {
    const TemporaryFolder folder;
    folder.write("r.json", "mine");
    const Ended ended = run_exactly(small_step({"--report", folder.path("r.json")}));
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.err.find("r.json"), std::string::npos) << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(read_bytes(folder.path("r.json")), "mine");
}

TEST(BenchCommand, WhatTheContractRefusesIsAUsageError) {
    const std::vector<std::pair<const char*, const char*>> refused{
        {"--elements", "0"},   {"--elements", "1073741824"}, {"--elements", "1e3"},  {"--tensors", "0"},
        {"--tensors", "1025"}, {"--samples", "2"},           {"--iterations", "0"},  {"--warmup", "0"},
        {"--dtype", "f64"},    {"--device", "gpu"},          {"--compiler", "nvcc"}, {"--fmad", "yes"},
        {"--report", ""}};
    for (const auto& [flag, value] : refused) {
        const Ended ended = run_exactly({"bench", "step", flag, value});
        EXPECT_EQ(ended.status, 2) << flag << ' ' << value;
        EXPECT_NE(ended.err.find(flag), std::string::npos) << ended.err;
    }
}

TEST(BenchCommand, AMissingDeviceIsDeviceTroubleWithItsReason) {
    const auto devices = harness::list_devices();
    for (const harness::DeviceStatus& device : devices) {
        const Ended ended = run_exactly(small_step({"--device", device.name}));
        EXPECT_EQ(ended.status, device.available ? 0 : 4) << device.name << ": " << ended.err;
        EXPECT_NE(ended.err.find(device.reason), std::string::npos) << ended.err;
    }
}

TEST(BenchPlotCommand, DrawsReportsAndPrintsThemAsATable) {
    const TemporaryFolder folder;
    ASSERT_EQ(run_exactly(small_step({"--report", folder.path("r.json")})).status, 0);
    const Ended ended = run_exactly({"bench", "plot", folder.path("r.json"), "--out", folder.path("p.svg")});
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_TRUE(read_bytes(folder.path("p.svg")).starts_with("<svg "));
    EXPECT_NE(ended.out.find("staged"), std::string::npos);
}

TEST(BenchPlotCommand, RefusesWhatIsNoReport) {
    const TemporaryFolder folder;
    folder.write("r.json", "{}");
    EXPECT_EQ(run_exactly({"bench", "plot", folder.path("r.json")}).status, 2);
    EXPECT_EQ(run_exactly({"bench", "plot", folder.path("absent.json")}).status, 2);
    folder.write("r.json", R"({"schema": 1, "kind": "gradguard bench step", "paths": [{}]})");
    const Ended damaged = run_exactly({"bench", "plot", folder.path("r.json")});
    EXPECT_EQ(damaged.status, 2);
    EXPECT_NE(damaged.err.find("a report is damaged"), std::string::npos) << damaged.err;
    EXPECT_EQ(run_exactly({"bench", "plot"}).status, 2);
}

}  // namespace
}  // namespace gradguard::testing
