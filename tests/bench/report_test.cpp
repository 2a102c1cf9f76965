// SPDX-License-Identifier: Apache-2.0
#include "bench/step_report.h"

#include <gtest/gtest.h>

#include "bench/step_plot.h"
#include "harness/io/file_error.h"
#include "tests/bench/group.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::bench {
namespace {

using testing::BenchDevice;
using testing::small_options;
using Json = nlohmann::ordered_json;

StepReport measured(const StepBenchOptions& options) {
    const BenchDevice device(options);
    StepReport report;
    report.options = options;
    report.device_name = device.device->properties().name;
    report.compiler = "ptx";
    report.kernels = device.device->kernel_source().name;
    report.started_utc = report.finished_utc = utc_now();
    report.measurement = device.measure();
    for (const StepPath& path : step_paths(options)) {
        report.calls.push_back(count_calls(device.device, device.start, path));
        report.work.push_back(count_work(device.device->kernel_source(), device.start, path));
    }
    return report;
}

const StepReport& small_report() {
    static const StepReport report = measured(small_options());
    return report;
}

/// As if it had been measured on hardware whose copy moves 1e9 bytes in a second.
StepReport hardware_report() {
    StepReport report = small_report();
    report.device_kind = DeviceKind::kHardware;
    report.device_name = "a GPU";
    report.driver = "libcuda.so.1, CUDA 13.0";
    report.work.clear();
    report.copy = CopyBandwidth{1'000'000'000, {2.0, 1.0, 3.0}, true};
    for (PathResult& path : report.measurement.paths) {
        for (StepSample& sample : path.samples) {
            sample.seconds = path.path.name == "guarded" ? 2e-6 : 4e-6;
            sample.device_seconds = sample.seconds / 2;
        }
    }
    return report;
}

std::vector<std::string> keys_of(const Json& json) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json.items()) keys.push_back(key);
    return keys;
}

TEST(StepReport, HasTheKeysOfItsSchema) {
    const Json json = to_json(small_report());
    EXPECT_EQ(keys_of(json), (std::vector<std::string>{"schema", "kind", "started_utc", "finished_utc", "configuration",
                                                       "environment", "clock", "hardware_time", "floor", "copy",
                                                       "paths", "ratios", "savings", "comparisons"}));
    EXPECT_EQ(json["schema"], 1);
    EXPECT_EQ(keys_of(json["paths"][0]),
              (std::vector<std::string>{"name", "description", "bytes_per_element", "clip", "samples", "step_seconds",
                                        "device_step_seconds", "bytes_per_second", "calls", "work"}));
}

TEST(StepReport, KeepsEveryRawSample) {
    const StepReport report = hardware_report();
    const Json json = to_json(report);
    for (std::size_t i = 0; i < 2; ++i) {
        const Json& samples = json["paths"][i]["samples"];
        ASSERT_EQ(samples.size(), report.options.samples);
        for (std::size_t s = 0; s < samples.size(); ++s) {
            const StepSample& sample = report.measurement.paths[i].samples[s];
            EXPECT_EQ(samples[s], (Json{{"place", sample.place},
                                        {"steps", report.options.iterations},
                                        {"seconds", sample.seconds},
                                        {"device_seconds", *sample.device_seconds}}));
        }
    }
}

TEST(StepReport, TimesOfASimulationAreNoTimesOfHardware) {
    const Json json = to_json(small_report());
    EXPECT_FALSE(json["hardware_time"].get<bool>());
    EXPECT_NE(json["clock"].get<std::string>().find("no time of any hardware"), std::string::npos);
    EXPECT_TRUE(json["copy"].is_null());
    EXPECT_TRUE(json["floor"]["read_twice"]["step_seconds"].is_null());
    for (const Json& path : json["paths"]) {
        EXPECT_TRUE(path["bytes_per_second"].is_null());
        EXPECT_NE(path["work"]["what"].get<std::string>().find("no time of any hardware"), std::string::npos);
    }
}

TEST(StepReport, SavingsOfTheContractAreThoseThatWereCounted) {
    const Json savings = to_json(small_report())["savings"];
    EXPECT_EQ(savings["launches"], 3);
    EXPECT_EQ(savings["temporary_bytes"], 4 * 3 * 70);
    EXPECT_EQ(savings["traffic_bytes"], 8 * 3 * 70);
    for (const char* what : {"launches", "temporary_bytes", "traffic_bytes"}) {
        EXPECT_EQ(savings["counted"][what], savings[what]) << what;
    }
}

TEST(StepReport, FloorsAreTheTableOfPerformance) {
    const auto floors = [](DType dtype, bool amsgrad) {
        StepReport report = hardware_report();
        report.options.dtype = dtype;
        report.options.amsgrad = amsgrad;
        const Json floor = to_json(report)["floor"];
        return std::pair(floor["read_once"]["bytes_per_element"].get<int>(),
                         floor["read_twice"]["bytes_per_element"].get<int>());
    };
    EXPECT_EQ(floors(DType::kF32, false), std::pair(28, 32));
    EXPECT_EQ(floors(DType::kBF16, false), std::pair(26, 28));
    EXPECT_EQ(floors(DType::kF32, true), std::pair(36, 40));
    EXPECT_EQ(floors(DType::kF16, true), std::pair(34, 36));
}

TEST(StepReport, RatesAndFloorsOfHardwareFollowFromItsSamples) {
    const Json json = to_json(hardware_report());
    const double elements = 3 * 70;
    EXPECT_EQ(json["copy"]["bytes_per_second"].get<double>(), 1e9);
    EXPECT_EQ(json["floor"]["read_twice"]["step_seconds"].get<double>(), 28 * elements / 1e9);
    EXPECT_EQ(json["paths"][0]["step_seconds"]["median"].get<double>(), 1e-6);
    EXPECT_EQ(json["paths"][0]["bytes_per_second"]["two_reads"].get<double>(), 28 * elements / 1e-6);
    EXPECT_EQ(json["paths"][1]["bytes_per_second"]["own"].get<double>(), 36 * elements / 2e-6);
    EXPECT_EQ(json["ratios"][0]["median"].get<double>(), 2.0);
    EXPECT_EQ(json["ratios"][0]["of_each_sample"]["maximum"].get<double>(), 2.0);
}

TEST(StepReport, NamesTheMachineTheCompilersAndTheSources) {
    const Json environment = to_json(hardware_report())["environment"];
    EXPECT_EQ(environment["device"],
              (Json{{"kind", "hardware"}, {"name", "a GPU"}, {"driver", "libcuda.so.1, CUDA 13.0"}}));
    for (const char* key : {"cpu", "system", "host_compiler", "host_flags"}) {
        EXPECT_FALSE(environment[key].get<std::string>().empty()) << key;
    }
    EXPECT_EQ(environment["sources"]["sha256"].get<std::string>().size(), 64U);
    EXPECT_GT(environment["sources"]["files"].get<int>(), 40);
    EXPECT_TRUE(environment["kernels"]["provenance"]["sources"].contains("kernels/device/update.cu"));
    EXPECT_TRUE(environment["kernels"]["bench_provenance"]["sources"].contains("bench/device/unscale_clip.cu"));
}

TEST(StepReport, TakesMorePathsThanTwo) {
    StepReport report = hardware_report();
    report.measurement.paths.push_back(report.measurement.paths.front());
    report.measurement.paths.back().path.name = "somebody else's";
    report.calls.push_back({});
    const Json json = to_json(report);
    EXPECT_EQ(json["paths"].size(), 3U);
    EXPECT_EQ(json["ratios"][1]["path"], "somebody else's");
    EXPECT_NE(step_plot(std::vector{json}).find("somebody else"), std::string::npos);
}

TEST(StepReport, IsReadBackAndNothingElseIs) {
    const testing::TemporaryFolder folder;
    const Json json = to_json(small_report());
    folder.write("good.json", json.dump());
    EXPECT_EQ(read_step_report(folder.path("good.json")), json);
    folder.write("other.json", R"({"schema": 1, "kind": "something else"})");
    Json newer = json;
    newer["schema"] = 2;
    folder.write("newer.json", newer.dump());
    folder.write("cut.json", json.dump().substr(0, 100));
    folder.write("list.json", "[1]");
    for (const char* name : {"other.json", "newer.json", "cut.json", "list.json", "absent.json"}) {
        EXPECT_THROW(read_step_report(folder.path(name)), harness::FileError) << name;
    }
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

TEST(StepPlot, DrawsALineForEachPathAndBothFloorsInEveryPanel) {
    std::vector<Json> reports;
    for (const std::uint64_t elements : {1000, 4000, 16000}) {
        StepReport report = hardware_report();
        report.options.elements = elements;
        reports.push_back(to_json(report));
    }
    StepReport wide = hardware_report();
    wide.options.elements = 1000;
    wide.options.tensors = 12;
    reports.push_back(to_json(wide));
    const std::string svg = step_plot(reports);
    EXPECT_EQ(count_of(svg, "class=\"line p0\""), 3U);
    EXPECT_EQ(count_of(svg, "class=\"line p1\""), 3U);
    EXPECT_EQ(count_of(svg, "class=\"floor\""), 4U);  // and in the legend
    EXPECT_EQ(count_of(svg, "class=\"once\""), 4U);
    EXPECT_NE(svg.find("TB/s"), std::string::npos);
}

TEST(StepPlot, OfTheVirtualGpuDrawsCountsAndSaysSo) {
    const std::string svg = step_plot(std::vector{to_json(small_report())});
    EXPECT_NE(svg.find("counts of the virtual GPU; no time of any hardware"), std::string::npos);
    EXPECT_NE(svg.find("32-byte sectors per element"), std::string::npos);
    EXPECT_EQ(svg.find("time of one"), std::string::npos);
}

TEST(StepPlot, AReportThatIsNoPictureIsRefused) {
    EXPECT_THROW(step_plot({}), std::invalid_argument);
    EXPECT_THROW(step_plot(std::vector{to_json(small_report()), to_json(hardware_report())}), std::invalid_argument);
}

}  // namespace
}  // namespace gradguard::bench
