// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/compiler_choice.h"

namespace gradguard::tools {

/// `check`: a campaign of drawn cases.
struct CheckRequest {
    std::uint64_t seed = 0;
    std::optional<std::uint64_t> cases;
    std::optional<std::chrono::milliseconds> time;
    std::uint64_t shard = 0, shards = 1;  ///< The command line counts shards from 1.
    unsigned jobs = 1;
    std::string device = "vgpu";
    CompilerChoice compiler;
    std::vector<std::string> subjects;    ///< Empty: both builds of the library's kernels.
    std::vector<std::string> properties;  ///< Empty: all.
    std::optional<std::uint64_t> elements;
    std::optional<std::string> report;  ///< Folder.
    std::optional<std::string> corpus;  ///< Folder, or "none".
    bool list = false;
    bool json = false;
};

/// `replay`: one case file, explained.
struct ReplayRequest {
    std::string file;
    std::optional<std::string> subject;  ///< Absent: the file's, else vgpu/fmad.
    std::string device = "vgpu";
    CompilerChoice compiler;
    std::optional<std::uint64_t> step, entry,
        index;  ///< The element to explain; absent: the one that failed, or the worst.
    bool json = false;
};

}  // namespace gradguard::tools
