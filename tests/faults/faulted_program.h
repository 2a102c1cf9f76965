// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gradguard::testing {

/// How a run of the program ended, and its system calls that wrote below a watched folder.
struct FaultedRun {
    int status = -1;  ///< Exit status; -1 when a signal ended it.
    int signal = 0;   ///< That signal.
    std::string err;
    std::vector<std::string> calls;  ///< "open", "write", "fsync", "rename", "close", ... in order.
};

/// Runs build/gradguard with write_faults.cpp preloaded. Call number `at` below `folder` meets `fault` ("signal:2",
/// "error:28", ...; see there).
FaultedRun run_faulted(const std::vector<std::string>& arguments, const std::string& folder,
                       std::optional<std::size_t> at = std::nullopt, const std::string& fault = {});

}  // namespace gradguard::testing
