// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>

#include "bench/device/embedded.h"
#include "bench/step_plot.h"
#include "bench/step_report.h"
#include "harness/devices/registry.h"
#include "harness/io/atomic_file.h"
#include "harness/io/file_error.h"
#include "harness/io/results.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/nvrtc_source.h"
#include "tools/cli/bench_options.h"
#include "tools/cli/bench_text.h"
#include "tools/cli/options.h"

namespace gradguard::tools {
namespace {

using bench::DeviceKind;
using bench::StepReport;
using Json = nlohmann::ordered_json;

KernelSource kernels_of(const BenchStepRequest& request) {
    if (!request.compiler.by_nvrtc()) {
        return bench::with_bench_kernels(KernelSource::embedded(request.options.contracted),
                                         request.options.contracted);
    }
    cuda::NvrtcOptions options;
    options.contracted = request.options.contracted;
    options.library = request.compiler.nvrtc;
    options.sources = bench::device_source;
    options.note = print_note;
    return cuda::nvrtc_source(options);
}

void describe_device(const BenchStepRequest& request, const Device& device, StepReport& report) {
    report.device_name = device.properties().name;
    report.device_kind = request.device == "cuda"      ? DeviceKind::kHardware
                         : request.device == "vdriver" ? DeviceKind::kVirtualDriver
                                                       : DeviceKind::kVirtualGpu;
    if (const auto* gpu = dynamic_cast<const cuda::CudaDevice*>(&device)) {
        report.driver = gpu->driver().library() + ", CUDA " + cuda::cuda_version_text(gpu->driver().version());
    }
}

void write_text(harness::AtomicFile& file, const std::string& text) { file.write(std::as_bytes(std::span(text))); }

/// Memory for the copy that is measured: the gradients' as FP32, but enough to leave the caches and no more than
/// needed.
std::uint64_t copy_bytes(const bench::StepBenchOptions& options) {
    constexpr std::uint64_t kLeast = 256ULL << 20U;
    constexpr std::uint64_t kMost = 1ULL << 30U;
    return std::clamp(4 * options.all_elements(), kLeast, kMost);
}

StepReport measured(const BenchStepRequest& request) {
    StepReport report;
    report.options = request.options;
    report.compiler = request.compiler.by_nvrtc() ? "nvrtc" : "ptx";
    report.started_utc = bench::utc_now();
    const std::shared_ptr<Device> device = harness::open_device({.name = request.device});
    const KernelSource kernels = kernels_of(request);
    device->set_kernel_source(kernels);
    describe_device(request, *device, report);
    report.kernels = kernels.name;

    const std::vector<bench::StepPath> paths = bench::step_paths(request.options);
    const std::shared_ptr<Queue> queue = device->create_queue();
    const bench::Entries start = bench::make_group(queue, request.options);
    report.measurement = bench::measure_steps(start, request.options, paths);
    for (const bench::StepPath& path : paths) {
        report.calls.push_back(bench::count_calls(device, start, path));
        if (report.device_kind == DeviceKind::kVirtualGpu)
            report.work.push_back(bench::count_work(kernels, start, path));
    }
    if (report.device_kind == DeviceKind::kHardware)
        report.copy = bench::measure_copy(queue, copy_bytes(request.options));
    report.finished_utc = bench::utc_now();
    return report;
}

}  // namespace

int run_bench_step(const BenchStepRequest& request) {
    if (request.report) {
        if (std::filesystem::exists(std::filesystem::symlink_status(*request.report))) {
            throw harness::FileError(*request.report, "there is a file already, and a report replaces none");
        }
        // Never committed: so that nothing is measured in vain. Ctrl-C waits while a file is open, and must not here.
        const harness::AtomicFile probe(*request.report);
    }
    Json json;
    try {
        json = bench::to_json(measured(request));
    } catch (const bench::BenchFailure& failure) {
        fmt::print(stderr, "gradguard: bench step: {}\n", failure.what());
        if (request.json) fmt::print("{}\n", harness::error_to_json({"BenchFailure", {}, {}, failure.what()}));
        return kOutOfBounds;
    }
    if (request.report) {
        harness::AtomicFile file(*request.report);
        write_text(file, json.dump(2) + "\n");
        file.commit_new();
    }
    fmt::print("{}", request.json ? json.dump(2) + "\n" : bench_report_text(json));
    if (request.report && !request.json) fmt::print("wrote {}\n", *request.report);
    return kWithinBounds;
}

int run_bench_plot(const BenchPlotRequest& request) {
    std::vector<Json> reports;
    for (const std::string& path : request.reports) reports.push_back(bench::read_step_report(path));
    std::string picture, table;
    try {
        picture = bench::step_plot(reports);
        table = bench_table_text(reports);
    } catch (const std::invalid_argument& error) {
        throw UsageError(std::string("bench plot: ") + error.what());
    } catch (const Json::exception& error) {
        throw UsageError(std::string("bench plot: a report is damaged: ") + error.what());
    }
    fmt::print("{}", table);
    if (!request.out) return kWithinBounds;
    harness::AtomicFile file(*request.out);
    write_text(file, picture);
    file.commit();
    fmt::print("wrote {}\n", *request.out);
    return kWithinBounds;
}

}  // namespace gradguard::tools
