// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace gradguard::fuzz {

/// Bytes as a file that has a path and no place on a disk (Linux).
class MemoryFile {
  public:
    explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("gradguard-fuzz", MFD_CLOEXEC)) {
        if (descriptor_ < 0) throw std::runtime_error("memfd_create failed");
        while (!bytes.empty()) {
            const ::ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
            if (written < 0) throw std::runtime_error("cannot write a memory file");
            bytes.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    ~MemoryFile() { ::close(descriptor_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  private:
    int descriptor_;
};

}  // namespace gradguard::fuzz
