// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "harness/io/signal_hold.h"

namespace gradguard::harness {

/// A file that appears whole or not at all: written under a temporary name in the same folder, then flushed to disk and
/// renamed by commit(). Without commit() the temporary is removed and whatever was at `path` stays. Signals that would
/// end the program wait until the object is gone, so that they leave no temporary either: make it when all that goes
/// into it is there. What cannot wait (SIGKILL, a fallen machine) leaves ".NAME.PID.I.tmp" beside the old file; nothing
/// reads it, and it may be deleted.
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
    /// Throws FileError. The old file is as it was then, but for one case, which the message tells: the new file is in
    /// place, and its folder could not be flushed to disk.
    void commit();
    /// The same where there is no file yet: throws FileError, and leaves it alone, when there is one by now.
    void commit_new();

  private:
    [[noreturn]] void fail(const char* what) const;
    void flush();
    void finish();

    SignalHold hold_;         // first, so that it outlives the temporary
    std::string shown_path_;  // as the caller wrote it, for messages
    std::string path_;
    std::string temporary_;
    int descriptor_ = -1;
};

}  // namespace gradguard::harness
