// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/compiler_choice.h"

namespace CLI {
class App;
}

namespace gradguard::tools {

/// `hunt`: a search for inputs that fill the bounds.
struct HuntRequest {
    std::vector<std::string> objectives;  ///< Empty: all.
    std::uint64_t milliseconds = 10000;   ///< For each objective.
    std::uint64_t evaluations = 0;        ///< At most, for each objective; 0: no limit but time.
    std::uint64_t seed = 0;
    std::string device = "vgpu";
    CompilerChoice compiler;
    std::string out = "gradguard-hunt";  ///< Folder for the case files.
    bool list = false;
    bool json = false;
};

/// The subcommand with its flags; the request is filled while the command line is parsed. Throws UsageError from inside
/// of parsing.
CLI::App* add_hunt(CLI::App& app, HuntRequest& request);

/// Hunts, writes a case file for each find, prints the table. Exit status: 0 when every find is admitted, 1 when one is
/// outside what the judge admits. Throws UsageError for an unknown objective, harness::FileError.
int run_hunt(const HuntRequest& request);

}  // namespace gradguard::tools
