// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/io/file_error.h"
#include "harness/vgpu/options.h"
#include "reference/contract/options.h"
#include "tools/cli/bench_options.h"
#include "tools/cli/check_request.h"
#include "tools/cli/compiler_choice.h"
#include "tools/cli/hunt_command.h"
#include "tools/cli/run_command.h"

namespace gradguard::tools {

/// Exit statuses of the program.
enum ExitStatus : int {
    kWithinBounds = 0,
    kOutOfBounds = 1,
    kBadInput = 2,
    kNonFinite = 3,
    kDeviceTrouble = 4,
    kStoppedBySignal = 128,  ///< Plus the signal's number, as shells have it: 130 after SIGINT.
};

/// A command line that asks for nothing sensible; exit status 2.
class UsageError : public std::runtime_error {
  public:
    /// what() is one line, whatever the arguments hold that it quotes.
    explicit UsageError(const std::string& message) : std::runtime_error(harness::one_line(message)) {}
};

/// What `step` and `stats` have in common.
struct ScanRequest {
    std::vector<std::string> files;
    std::string device = "vgpu";
    std::uint64_t schedule_seed = 0;
    bool contracted = true;  ///< --fmad: which build of the kernels.
    CompilerChoice compiler;
    std::optional<std::string> kernels;   ///< Folder of somebody else's kernels.
    std::optional<float> gradient_scale;  ///< Overrides the files' metadata.
    std::string observers = "none";       ///< "all", "none", or names with commas between.
    bool count = false;
    bool json = false;
    /// The text behind a number, by the option's public name, for messages.
    std::map<std::string, std::string> texts;
};

struct StepRequest {
    ScanRequest scan;
    AdamWOptions options;
    GradientGuardOptions guard;
    bool skip_update = false;
    std::optional<std::uint64_t> steps;  ///< All steps together; absent: one for each file.
    std::optional<std::string> out;
};

/// `ptx`: what a file holds, or, with an entry, a run of it.
struct PtxRequest {
    std::string file;
    std::string entry;  ///< Empty: list only.
    vgpu::Dim3 grid;
    std::optional<vgpu::Dim3> block;  ///< Absent: what the entry requires, else one thread.
    std::vector<std::string> arguments;
    /// Argument, by number from 0 or by the parameter's name, and the file to write its buffer to.
    std::vector<std::pair<std::string, std::string>> outs;
    std::vector<std::string> read_only;  ///< Arguments that the kernel may not write.
    std::uint32_t shared_bytes = 0;
    std::uint64_t seed = 0;
    std::uint64_t budget = vgpu::MachineOptions{}.instruction_budget;
    std::uint64_t values = 8;  ///< Printed of each buffer.
    std::string observers = "all";
    bool allow_approximate = false;  ///< Runs instructions that have an error bound in place of a result.
    bool count = false;
    bool json = false;
};

enum class Command { kExit, kStep, kStats, kBenchVgpu, kBenchStep, kBenchPlot, kPtx, kCheck, kReplay, kHunt, kRun };

/// The command line as data.
struct Request {
    Command command = Command::kExit;  ///< kExit: help or version is printed and there is nothing left to do.
    ScanRequest stats;
    StepRequest step;
    bool bench_json = false;
    std::string bench_observers = "none";
    BenchStepRequest bench_step;
    BenchPlotRequest bench_plot;
    PtxRequest ptx;
    CheckRequest check;
    ReplayRequest replay;
    HuntRequest hunt;
    RunRequest run;
};

/// Reads the command line; prints help or version where that is asked for. Throws UsageError.
Request parse_command_line(int argc, char** argv);

}  // namespace gradguard::tools
