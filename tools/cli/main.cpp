// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "bench/vgpu_bench.h"
#include "harness/campaign/summary.h"
#include "harness/devices/registry.h"
#include "harness/io/file_error.h"
#include "harness/io/results.h"
#include "harness/vgpu/error.h"
#include "kernels/cuda/nvrtc.h"
#include "reference/contract/error.h"
#include "reference/fp64/self_check.h"
#include "tools/cli/commands.h"
#include "tools/cli/observations.h"
#include "tools/cli/open_device.h"
#include "tools/cli/options.h"

namespace gradguard::tools {
namespace {

struct Ending {
    int status;
    harness::ErrorResult error;
    std::optional<Observations> observations;
};

int exit_status(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::kNonFiniteGradients:
            return kNonFinite;
        case ErrorKind::kUnsupportedDevice:
        case ErrorKind::kInvalidSummary:
        case ErrorKind::kReadback:
        case ErrorKind::kDeviceFailure:
            return kDeviceTrouble;
        default:
            return kBadInput;
    }
}

/// The current exception as the program reports it.
Ending describe_exception() {
    try {
        throw;
    } catch (const Error& error) {
        return {exit_status(error.kind()),
                {std::string(to_string(error.kind())), error.site().entry, error.site().operand, error.message()},
                {}};
    } catch (const harness::FileError& error) {
        return {kBadInput, {"InvalidFile", {}, {}, error.what()}, {}};
    } catch (const UsageError& error) {
        return {kBadInput, {"Usage", {}, {}, error.what()}, {}};
    } catch (const harness::DeviceUnavailable& error) {
        return {kDeviceTrouble, {"UnsupportedDevice", {}, "device", error.what()}, {}};
    } catch (const cuda::NvrtcUnavailable& error) {
        return {kDeviceTrouble, {"UnsupportedDevice", {}, "nvrtc", error.what()}, {}};
    } catch (const DeviceFinding& error) {
        return {kDeviceTrouble, {"DeviceFailure", {}, "finding", error.what()}, error.observations()};
    } catch (const vgpu::PtxError& error) {
        return {kBadInput, {"InvalidFile", {}, {}, error.what()}, {}};
    } catch (const std::bad_alloc&) {
        return {kDeviceTrouble, {"Internal", {}, {}, "out of host memory"}, {}};
    } catch (const std::exception& error) {
        return {kDeviceTrouble, {"Internal", {}, {}, error.what()}, {}};
    }
}

/// On standard output, beside the line on standard error.
void print_ending(const Ending& ending, bool json) {
    if (!json) {
        if (ending.observations) {
            fmt::print("{}{}", findings_text(ending.observations->findings), checked_text(*ending.observations));
        }
        return;
    }
    auto object = nlohmann::ordered_json::parse(harness::error_to_json(ending.error));
    if (ending.observations) add_json(object, *ending.observations);
    fmt::print("{}\n", object.dump());
}

/// Output that nobody can read, on a full disk for instance, is no success.
void flush_output() {
    std::cout.flush();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
        throw harness::FileError("standard output", "cannot write");
    }
}

int dispatch(const Request& request, const std::string& replay) {
    // An oracle on unsound arithmetic refuses to run, whatever is asked of it.
    if (request.command != Command::kExit) reference::require_sound_arithmetic();
    switch (request.command) {
        case Command::kStep:
            return run_step(request.step, replay);
        case Command::kStats:
            return run_stats(request.stats, replay);
        case Command::kBenchVgpu:
            return bench::run_vgpu_bench(request.bench_json, request.bench_observers);
        case Command::kBenchStep:
            return run_bench_step(request.bench_step);
        case Command::kBenchPlot:
            return run_bench_plot(request.bench_plot);
        case Command::kPtx:
            return run_ptx(request.ptx);
        case Command::kCheck:
            return run_check(request.check);
        case Command::kReplay:
            return run_replay(request.replay);
        case Command::kHunt:
            return run_hunt(request.hunt);
        case Command::kRun:
            return run_program(request.run);
        case Command::kExit:
            break;
    }
    return kWithinBounds;
}

/// The command line as a shell would take it again.
std::string command_line(int argc, char** argv) {
    std::string line;
    for (int i = 0; i < argc; ++i) line += (i == 0 ? "" : " ") + harness::shell_quoted(argv[i]);
    return line;
}

}  // namespace

int run(int argc, char** argv) {
    // Known before the command line is understood: a usage error is reported in the form that was asked for.
    char** const own_end = std::find(argv + 1, argv + argc, std::string_view("--"));  // the rest is of `run`'s program
    const bool json = std::find(argv + 1, own_end, std::string_view("--json")) != own_end;
    try {
        const int status = dispatch(parse_command_line(argc, argv), command_line(argc, argv));
        flush_output();
        return status;
    } catch (...) {
        const Ending ending = describe_exception();
        std::fflush(stdout);
        const bool kind_helps = ending.error.kind != "Usage" && ending.error.kind != "InvalidFile";
        fmt::print(stderr, "gradguard: {}{}\n", kind_helps ? ending.error.kind + ": " : "", ending.error.message);
        print_ending(ending, json);
        return ending.status;
    }
}

}  // namespace gradguard::tools

int main(int argc, char** argv) { return gradguard::tools::run(argc, argv); }
