// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/copy_bandwidth.h"
#include "bench/step_bench.h"
#include "bench/step_counts.h"

namespace gradguard::bench {

inline constexpr int kStepReportSchema = 1;
inline constexpr const char* kStepReportKind = "gradguard bench step";

/// What the steps ran on. Times of anything but hardware are times of a simulation.
enum class DeviceKind : std::uint8_t { kHardware, kVirtualGpu, kVirtualDriver };
/// "hardware", "virtual GPU", "virtual driver".
std::string to_string(DeviceKind kind);

/// Everything that a run of `bench step` found.
struct StepReport {
    StepBenchOptions options;
    DeviceKind device_kind = DeviceKind::kVirtualGpu;
    std::string device_name;
    std::optional<std::string> driver;  ///< Of the device, with its version.
    std::string compiler;               ///< Of the kernels: "ptx" or "nvrtc".
    std::string kernels;                ///< KernelSource::name.
    std::string started_utc, finished_utc;
    StepMeasurement measurement;
    std::vector<CallCounts> calls;  ///< Of one step, by path.
    /// Of one step on a virtual GPU, by path and kernel; empty where nobody counted.
    std::vector<std::map<std::string, observers::Totals>> work;
    std::optional<CopyBandwidth> copy;
};

/// "2026-12-01T15:40:00Z".
std::string utc_now();

/// The report as one JSON object. Times in seconds, floats as they were measured; what was not measured is null.
///
///   schema, kind, started_utc, finished_utc
///   configuration: elements (in each tensor), tensors, dtype, amsgrad, iterations, samples, warmup, gradient_scale,
///       max_norm, device, compiler, fmad
///   environment: device {kind, name, driver}, cpu, cpu_count, system, host_compiler, host_flags, sources {sha256,
///   files},
///       kernels {source, provenance, bench_provenance}
///   clock: what the times are times of, in words; hardware_time: whether that is hardware
///   floor: bytes_per_element with the gradient read once and read_twice, and seconds of both at the copy bandwidth
///   copy: null, or copied_bytes, clock, seconds [raw], bytes_per_second (read and written)
///   paths [any number; the first is what the others are held against]: name, description, bytes_per_element, clip,
///       samples [{place, steps, seconds, device_seconds}], step_seconds and device_step_seconds {median, minimum,
///       maximum}, bytes_per_second {two_reads, own} of the median, calls of one step, work of one step by kernel
///   ratios: for each path but the first {path, to, median, of_each_sample {median, minimum, maximum}}: above 1, the
///       first is faster
///   savings: of the first path against the second, by contract section 8, and as counted: launches, temporary_bytes,
///       traffic_bytes
///   comparisons: after, path, values, enclosed
nlohmann::ordered_json to_json(const StepReport& report);

/// A report from a file, and that it is one. Throws harness::FileError.
nlohmann::ordered_json read_step_report(const std::string& path);

}  // namespace gradguard::bench
