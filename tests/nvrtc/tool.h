// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gradguard::testing {

/// A program of the CUDA toolkit: on PATH, in CUDA_HOME or in /usr/local/cuda.
std::optional<std::string> find_tool(const std::string& name);

struct ToolResult {
    int status = -1;     ///< Exit status; -1 when it did not exit by itself.
    std::string output;  ///< Standard output and standard error.
};

/// Runs a program, found on PATH when its name has no slash, and waits for it.
ToolResult run_tool(const std::vector<std::string>& command);

}  // namespace gradguard::testing
