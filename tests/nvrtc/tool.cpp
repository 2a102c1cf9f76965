// SPDX-License-Identifier: Apache-2.0
#include "tests/nvrtc/tool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "harness/campaign/summary.h"

namespace gradguard::testing {

std::optional<std::string> find_tool(const std::string& name) {
    const char* path = std::getenv("PATH");
    const char* home = std::getenv("CUDA_HOME");
    std::istringstream folders(std::string(path == nullptr ? "" : path) + ":" +
                               (home == nullptr ? "" : std::string(home) + "/bin") + ":/usr/local/cuda/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::string file = folder + "/" + name;
        if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
    }
    return std::nullopt;
}

ToolResult run_tool(const std::vector<std::string>& command) {
    std::string line;
    for (const std::string& word : command) line += harness::shell_quoted(word) + " ";
    std::FILE* const pipe = ::popen((line + "2>&1").c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("cannot run " + line);
    ToolResult result;
    std::array<char, 4096> piece{};
    while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
        result.output.append(piece.data(), count);
    }
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
    return result;
}

}  // namespace gradguard::testing
