// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace gradguard::tools {

/// Whose kernels run, as the flags --compiler and --nvrtc say.
struct CompilerChoice {
    std::optional<std::string> name;  ///< "ptx": compiled ahead of time; "nvrtc": at first use. Absent: not said.
    std::string nvrtc;                ///< A file or folder; empty: where it is found.

    bool by_nvrtc() const { return name == "nvrtc"; }
};

/// Adds the flags; `usual` says in the help what holds without --compiler. Throws UsageError from inside of parsing.
void add_compiler(CLI::App& app, CompilerChoice& choice, const std::string& usual);

/// A line on standard error about something that is no failure.
void print_note(const std::string& text);

}  // namespace gradguard::tools
