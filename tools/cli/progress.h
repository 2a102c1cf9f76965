// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace gradguard::tools {

/// Says on standard error how far long work has come: a line that renews itself on a terminal, otherwise a plain line
/// every few seconds. Short work says nothing.
class Progress {
  public:
    Progress(std::string what, std::size_t total);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Before item `index` (from 0) begins.
    void begin(std::size_t index, const std::string& detail);
    /// Takes the line away, so that something else can be printed.
    void clear();

  private:
    using Clock = std::chrono::steady_clock;

    std::string what_;
    std::size_t total_;
    bool terminal_;
    bool shown_ = false;
    Clock::time_point last_;
};

}  // namespace gradguard::tools
