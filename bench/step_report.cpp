// SPDX-License-Identifier: Apache-2.0
#include "bench/step_report.h"

#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <thread>

#include "bench/build_facts.h"
#include "bench/spread.h"
#include "harness/io/file_error.h"

namespace gradguard::bench {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

std::string dtype_name(DType dtype) { return dtype == DType::kF32 ? "f32" : dtype == DType::kF16 ? "f16" : "bf16"; }

std::string clock_words(DeviceKind kind) {
    switch (kind) {
        case DeviceKind::kHardware:
            return "wall clock of the host around whole steps on the device";
        case DeviceKind::kVirtualGpu:
            return "wall clock of this machine while it simulates the virtual GPU; no time of any hardware";
        case DeviceKind::kVirtualDriver:
            return "wall clock of this machine while it simulates the virtual GPU behind the virtual driver; no time "
                   "of "
                   "any hardware";
    }
    return "?";
}

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
            return line.substr(line.find(": ") + 2);
        }
    }
    return "unknown";
}

std::string system_name() {
    utsname name{};
    if (uname(&name) != 0) return "unknown";
    return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

Json spread_json(const std::vector<double>& values) {
    const Spread spread = spread_of(values);
    return {{"median", spread.median}, {"minimum", spread.minimum}, {"maximum", spread.maximum}};
}

/// Seconds of one step in each sample.
std::vector<double> step_seconds(const PathResult& path, std::uint64_t steps) {
    std::vector<double> seconds;
    for (const StepSample& sample : path.samples) seconds.push_back(sample.seconds / static_cast<double>(steps));
    return seconds;
}

/// The same by the device's clock; empty where it has none.
std::vector<double> device_step_seconds(const PathResult& path, std::uint64_t steps) {
    std::vector<double> seconds;
    for (const StepSample& sample : path.samples) {
        if (sample.device_seconds) seconds.push_back(*sample.device_seconds / static_cast<double>(steps));
    }
    return seconds;
}

Json configuration_json(const StepReport& report) {
    const StepBenchOptions& options = report.options;
    return {{"elements", options.elements},
            {"tensors", options.tensors},
            {"dtype", dtype_name(options.dtype)},
            {"amsgrad", options.amsgrad},
            {"iterations", options.iterations},
            {"samples", options.samples},
            {"warmup", options.warmup},
            {"gradient_scale", options.control().gradient_scale},
            {"max_norm", or_null(options.guard().max_norm)},
            {"device", to_string(report.device_kind)},
            {"compiler", report.compiler},
            {"fmad", options.contracted}};
}

Json environment_json(const StepReport& report) {
    const SourceHash sources = source_hash();
    Json device{
        {"kind", to_string(report.device_kind)}, {"name", report.device_name}, {"driver", or_null(report.driver)}};
    return {{"device", device},
            {"cpu", cpu_name()},
            {"cpu_count", std::thread::hardware_concurrency()},
            {"system", system_name()},
            {"host_compiler", host_compiler()},
            {"host_flags", host_flags()},
            {"sources", {{"sha256", sources.sha256}, {"files", sources.files}}},
            {"kernels",
             {{"source", report.kernels},
              {"provenance", kernel_provenance()},
              {"bench_provenance", bench_kernel_provenance()}}}};
}

Json copy_json(const CopyBandwidth& copy) {
    return {{"copied_bytes", copy.copied_bytes},
            {"clock", copy.by_device_clock ? "the device's" : "wall clock of the host"},
            {"seconds", copy.seconds},
            {"bytes_per_second", copy.bytes_per_second()}};
}

Json floor_json(const StepReport& report) {
    const auto seconds = [&](std::uint64_t bytes) {
        if (!report.copy) return Json(nullptr);
        return Json(static_cast<double>(bytes * report.options.all_elements()) / report.copy->bytes_per_second());
    };
    const std::uint64_t once = bytes_per_element(report.options, 1);
    const std::uint64_t twice = bytes_per_element(report.options, 2);
    return {{"read_once", {{"bytes_per_element", once}, {"step_seconds", seconds(once)}}},
            {"read_twice", {{"bytes_per_element", twice}, {"step_seconds", seconds(twice)}}}};
}

Json calls_json(const CallCounts& calls) {
    return {{"launches", calls.launches},
            {"allocations", calls.allocations},
            {"allocated_bytes", calls.allocated_bytes},
            {"readbacks", calls.readbacks},
            {"readback_bytes", calls.readback_bytes}};
}

Json work_json(const std::map<std::string, observers::Totals>& kernels, std::uint64_t elements) {
    const auto row = [&](const std::string& name, const observers::Totals& totals) {
        const std::uint64_t sectors = totals.global_reads.sectors + totals.global_writes.sectors;
        const double per = 1.0 / static_cast<double>(elements);
        return Json{{"kernel", name},
                    {"launches", totals.launches},
                    {"lane_instructions", totals.lane_instructions},
                    {"bytes_read", totals.global_reads.bytes},
                    {"bytes_written", totals.global_writes.bytes},
                    {"sectors_read", totals.global_reads.sectors},
                    {"sectors_written", totals.global_writes.sectors},
                    {"lane_instructions_per_element", static_cast<double>(totals.lane_instructions) * per},
                    {"sectors_per_element", static_cast<double>(sectors) * per}};
    };
    observers::Totals all;
    Json rows = Json::array();
    for (const auto& [name, totals] : kernels) {
        rows.push_back(row(name, totals));
        all.launches += totals.launches;
        all.lane_instructions += totals.lane_instructions;
        const auto add = [](observers::Traffic& sum, const observers::Traffic& part) {
            sum.bytes += part.bytes;
            sum.sectors += part.sectors;
        };
        add(all.global_reads, totals.global_reads);
        add(all.global_writes, totals.global_writes);
    }
    return {{"what", "counts of one step on the virtual GPU; no time of any hardware"},
            {"kernels", rows},
            {"all", row("all", all)}};
}

Json path_json(const StepReport& report, std::size_t i) {
    const PathResult& path = report.measurement.paths[i];
    const std::uint64_t steps = report.options.iterations;
    const std::uint64_t elements = report.options.all_elements();
    Json samples = Json::array();
    for (const StepSample& sample : path.samples) {
        samples.push_back({{"place", sample.place},
                           {"steps", steps},
                           {"seconds", sample.seconds},
                           {"device_seconds", or_null(sample.device_seconds)}});
    }
    const std::vector<double> seconds = step_seconds(path, steps);
    const std::vector<double> device_seconds = device_step_seconds(path, steps);
    const auto rate = [&](std::uint64_t bytes) {
        return static_cast<double>(bytes * elements) / spread_of(seconds).median;
    };
    Json json{{"name", path.path.name},
              {"description", path.path.description},
              {"bytes_per_element", path.path.bytes_per_element},
              {"clip", path.clip_multiplier},
              {"samples", samples},
              {"step_seconds", spread_json(seconds)},
              {"device_step_seconds", device_seconds.empty() ? Json(nullptr) : spread_json(device_seconds)},
              {"bytes_per_second", nullptr},
              {"calls", calls_json(report.calls.at(i))},
              {"work", report.work.empty() ? Json(nullptr) : work_json(report.work.at(i), elements)}};
    if (report.device_kind == DeviceKind::kHardware) {
        json["bytes_per_second"] = {{"two_reads", rate(bytes_per_element(report.options, 2))},
                                    {"own", rate(path.path.bytes_per_element)}};
    }
    return json;
}

/// A path's time over the first one's: of the medians, and of the two batches of each sample.
Json ratio_json(const StepReport& report, std::size_t i) {
    const PathResult& first = report.measurement.paths.front();
    const PathResult& other = report.measurement.paths[i];
    std::vector<double> ratios;
    for (std::size_t s = 0; s < first.samples.size(); ++s) {
        ratios.push_back(other.samples[s].seconds / first.samples[s].seconds);
    }
    const auto median = [&](const PathResult& path) {
        return spread_of(step_seconds(path, report.options.iterations)).median;
    };
    return {{"path", other.path.name},
            {"to", first.path.name},
            {"median", median(other) / median(first)},
            {"of_each_sample", spread_json(ratios)}};
}

std::uint64_t traffic_of(const std::map<std::string, observers::Totals>& kernels) {
    std::uint64_t bytes = 0;
    for (const auto& [name, totals] : kernels) bytes += totals.global_reads.bytes + totals.global_writes.bytes;
    return bytes;
}

Json savings_json(const StepReport& report) {
    const std::uint64_t elements = report.options.all_elements();
    Json savings{{"launches", report.options.tensors},
                 {"temporary_bytes", 4 * elements},
                 {"traffic_bytes", 8 * elements},
                 {"counted", nullptr}};
    if (report.calls.size() < 2) return savings;
    const CallCounts& guarded = report.calls[0];
    const CallCounts& staged = report.calls[1];
    const auto difference = [](std::uint64_t a, std::uint64_t b) {
        return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
    };
    savings["counted"] = {{"launches", difference(staged.launches, guarded.launches)},
                          {"temporary_bytes", difference(staged.allocated_bytes, guarded.allocated_bytes)},
                          {"traffic_bytes", report.work.size() < 2 ? Json(nullptr)
                                                                   : Json(difference(traffic_of(report.work[1]),
                                                                                     traffic_of(report.work[0])))}};
    return savings;
}

}  // namespace

std::string to_string(DeviceKind kind) {
    return kind == DeviceKind::kHardware     ? "hardware"
           : kind == DeviceKind::kVirtualGpu ? "virtual GPU"
                                             : "virtual driver";
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    char text[sizeof "2026-12-01T15:40:00Z"];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

Json to_json(const StepReport& report) {
    const StepMeasurement& measurement = report.measurement;
    Json paths = Json::array(), ratios = Json::array(), comparisons = Json::array();
    for (std::size_t i = 0; i < measurement.paths.size(); ++i) {
        paths.push_back(path_json(report, i));
        if (i > 0) ratios.push_back(ratio_json(report, i));
    }
    for (const ComparisonRecord& record : measurement.comparisons) {
        comparisons.push_back({{"after", record.after},
                               {"path", record.path},
                               {"values", record.agreement.values},
                               {"enclosed", record.agreement.enclosed}});
    }
    return {{"schema", kStepReportSchema},
            {"kind", kStepReportKind},
            {"started_utc", report.started_utc},
            {"finished_utc", report.finished_utc},
            {"configuration", configuration_json(report)},
            {"environment", environment_json(report)},
            {"clock", clock_words(report.device_kind)},
            {"hardware_time", report.device_kind == DeviceKind::kHardware},
            {"floor", floor_json(report)},
            {"copy", report.copy ? copy_json(*report.copy) : Json(nullptr)},
            {"paths", paths},
            {"ratios", ratios},
            {"savings", savings_json(report)},
            {"comparisons", comparisons}};
}

Json read_step_report(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw harness::FileError(path, "cannot read");
    const Json json = Json::parse(file, nullptr, false);
    const auto is = [&](const char* key, const Json& value) {
        return json.is_object() && json.value(key, Json()) == value;
    };
    if (!is("kind", kStepReportKind)) throw harness::FileError(path, std::string("no report of ") + kStepReportKind);
    if (!is("schema", kStepReportSchema)) {
        throw harness::FileError(
            path, "want schema " + std::to_string(kStepReportSchema) + ", got " + json.value("schema", Json()).dump());
    }
    return json;
}

}  // namespace gradguard::bench
