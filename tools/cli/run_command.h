// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gradguard::tools {

/// `run`: any program that uses the CUDA driver API, on the virtual GPU.
struct RunRequest {
    bool virtual_gpu = false;  ///< The only device that programs can be put on; asked for by name, so that nobody takes
                               ///< it for hardware.
    std::string observers = "all";
    std::uint64_t seed = 0;
    bool count = false;
    bool refuse_approximate = false;
    bool flush_subnormals = false;
    std::string compute_capability = "8.0";
    std::optional<std::string> report;  ///< A file for the JSON object.
    bool json = false;
    std::vector<std::string> program;  ///< Its name and its arguments.
};

/// The subcommand with its flags; the request is filled while the command line is parsed. Throws UsageError from inside
/// of parsing.
CLI::App* add_run(CLI::App& app, RunRequest& request);
/// After parsing. Throws UsageError.
void check_run(const RunRequest& request);

/// Puts the virtual driver in front of the program, runs it to its end, and prints what its kernels did. Exit status: 4
/// with findings, or when nothing came to the virtual GPU although the program says that it succeeded; else the
/// program's own, 128 + n when signal n ended it. Throws UsageError when it cannot be started, DeviceUnavailable
/// without the virtual driver, harness::FileError.
int run_program(const RunRequest& request);

}  // namespace gradguard::tools
