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

}  // namespace gradguard::harness
