// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace gradguard::harness {

/// A file that cannot be read or written as what it should be. what() is one line: the file, the tensor if the fault is
/// one tensor's, what was wanted and what came.
class FileError : public std::runtime_error {
  public:
    FileError(std::string path, std::string tensor, const std::string& message);
    FileError(std::string path, const std::string& message) : FileError(std::move(path), {}, message) {}

    const std::string& path() const { return path_; }
    /// Empty when the fault is not one tensor's.
    const std::string& tensor() const { return tensor_; }

  private:
    std::string path_;
    std::string tensor_;
};

/// The name in double quotes, control characters escaped and a long one cut, so that a message stays one line.
std::string in_quotes(std::string_view name);

/// `text` with each control character (of ASCII, and U+0080 to U+009F) as \xNN for each of its bytes: what somebody
/// else wrote must not break a message's line nor command the terminal.
std::string one_line(std::string_view text);

}  // namespace gradguard::harness
