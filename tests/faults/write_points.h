// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gradguard::testing {

/// A run of the program that writes files.
struct Writer {
    std::string name;
    /// The command line; the files go below `folder`.
    std::function<std::vector<std::string>(const std::string& folder)> arguments;
    /// What lies there before, by path below the folder.
    std::map<std::string, std::string> before;
    int status = 0;                  ///< Undisturbed.
    bool stops = false;              ///< SIGINT and SIGTERM ask it to finish; it tells by its exit status.
    bool has_another_place = false;  ///< What cannot be written goes to the system's temporary folder.
};

/// What goes wrong at a call that writes.
enum class WriteFault { kInterrupt, kTerminate, kKill, kKillHalfWay, kFull, kBroken, kShort, kInterrupted };

const std::vector<WriteFault>& write_faults();
std::string to_string(WriteFault fault);

struct WriteEnumeration {
    std::vector<std::string> calls;  ///< Of an undisturbed run.
    std::size_t points = 0;          ///< Runs with a fault in them.
    std::vector<std::string> problems;
};

/// Runs once to count the calls, then once for each call and fault. After each run every file must be whole: bit for
/// bit the one from before, or the one that an undisturbed run writes (or as complete as that, where it holds times),
/// and nothing else may be left, except by SIGKILL: then the next run must work all the same. A signal must end the
/// program as that signal does; a failed call must end it with status 2 and one line, the file that could not be
/// written as it was, unless the call came after the rename.
WriteEnumeration disturb_every_write(const Writer& writer, const std::vector<WriteFault>& faults);

}  // namespace gradguard::testing
