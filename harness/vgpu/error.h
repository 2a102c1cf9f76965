// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/vgpu/finding.h"

namespace gradguard::vgpu {

/// `text` with each control character (of ASCII, and U+0080 to U+009F) as \xNN for each of its bytes: what a module's
/// text holds must not break a message's line nor command the terminal.
std::string one_line(std::string_view text);

/// A module that was refused when it was loaded. what() is one line: "FILE:LINE: reason: instruction text".
class PtxError : public std::runtime_error {
  public:
    PtxError(std::string file, std::uint32_t line, const std::string& message)
        : std::runtime_error(one_line(file + ":" + std::to_string(line) + ": " + message)),
          file_(std::make_shared<const std::string>(std::move(file))),
          line_(line) {}

    const std::string& file() const noexcept { return *file_; }
    std::uint32_t line() const noexcept { return line_; }

  private:
    std::shared_ptr<const std::string> file_;
    std::uint32_t line_;
};

/// A launch that was refused (bad configuration, sticky error) or ended by a fault of the kernel, or a host access
/// outside an allocation. Faults carry the finding.
class LaunchError : public std::runtime_error {
  public:
    explicit LaunchError(const std::string& message) : std::runtime_error(one_line(message)) {}
    explicit LaunchError(Finding finding)
        : std::runtime_error(finding.message()), finding_(std::make_shared<const Finding>(std::move(finding))) {}

    /// Null when no instruction of a kernel is to blame.
    const Finding* finding() const noexcept { return finding_.get(); }

  private:
    std::shared_ptr<const Finding> finding_;
};

}  // namespace gradguard::vgpu
