// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace gradguard::tools {
namespace {

constexpr std::chrono::milliseconds kTerminalInterval{100};
constexpr std::chrono::milliseconds kPlainInterval{5000};

}  // namespace

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)), total_(total), terminal_(::isatty(STDERR_FILENO) != 0), last_(Clock::now()) {}

void Progress::begin(std::size_t index, const std::string& detail) {
    const Clock::time_point now = Clock::now();
    // On a terminal the first item shows at once: a single large step is long work too.
    const bool due = now - last_ >= (terminal_ ? kTerminalInterval : kPlainInterval) || (terminal_ && index == 0);
    if (!due) return;
    last_ = now;
    const std::string line = fmt::format("{} {} of {}: {}", what_, index + 1, total_, detail);
    if (terminal_) {
        fmt::print(stderr, "\r\033[K{}", line);
    } else {
        fmt::print(stderr, "{}\n", line);
    }
    std::fflush(stderr);
    shown_ = terminal_;
}

void Progress::clear() {
    if (!std::exchange(shown_, false)) return;
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
}

}  // namespace gradguard::tools
