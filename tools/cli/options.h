// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/contract/options.h"

namespace gradguard::tools {

/// Exit statuses of the program.
enum ExitStatus : int {
    kWithinBounds = 0,
    kOutOfBounds = 1,
    kBadInput = 2,
    kNonFinite = 3,
    kDeviceTrouble = 4,
};

/// A command line that asks for nothing sensible; exit status 2.
class UsageError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What `step` and `stats` have in common.
struct ScanRequest {
    std::vector<std::string> files;
    std::string device = "vgpu";
    std::uint64_t schedule_seed = 0;
    bool contracted = true;               ///< --fmad: which build of the kernels.
    std::optional<float> gradient_scale;  ///< Overrides the files' metadata.
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

enum class Command { kExit, kStep, kStats, kBenchVgpu };

/// The command line as data.
struct Request {
    Command command = Command::kExit;  ///< kExit: help or version is printed and there is nothing left to do.
    ScanRequest stats;
    StepRequest step;
    bool bench_json = false;
};

/// Reads the command line; prints help or version where that is asked for. Throws UsageError.
Request parse_command_line(int argc, char** argv);

}  // namespace gradguard::tools
