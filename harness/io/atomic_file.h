// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace gradguard::harness {

/// A file that appears whole or not at all: written under a temporary name in the same folder, then flushed to disk and
/// renamed by commit(). Without commit() the temporary is removed and whatever was at `path` stays.
class AtomicFile {
  public:
    /// Throws FileError when the folder cannot be written or `path` is something other than a regular file. A symbolic
    /// link is followed: what it points to is replaced.
    explicit AtomicFile(const std::string& path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    /// Throws FileError, for instance on a full disk.
    void write(std::span<const std::byte> bytes);
    void commit();

  private:
    [[noreturn]] void fail(const char* what) const;

    std::string shown_path_;  // as the caller wrote it, for messages
    std::string path_;
    std::string temporary_;
    int descriptor_ = -1;
};

}  // namespace gradguard::harness
