// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "harness/vdriver/driver.h"

namespace gradguard::vdriver {

/// Bytes that a copy or a set is about: device memory of a context, or memory of the host.
struct Place {
    std::shared_ptr<Context> owner;  ///< Of device memory; null: host.
    cuda::CUdeviceptr address = 0;   ///< Of device memory.
    std::byte* host = nullptr;
    bool pinned = false;  ///< Host memory that the driver knows: pinned, registered or managed.

    bool pageable() const { return owner == nullptr && !pinned; }
    bool on_host() const { return owner == nullptr; }
    /// For queued work; throws Failure ILLEGAL_ADDRESS when the memory is gone by then.
    const std::byte* readable(std::uint64_t offset, std::uint64_t bytes) const;
    /// What is written through it counts as written by the host.
    std::byte* writable(std::uint64_t offset, std::uint64_t bytes) const;
};

/// [address, address + bytes) as an argument that must be a device pointer. Throws Failure INVALID_VALUE when nothing
/// that is allocated holds it.
Place device_place(Driver& driver, cuda::CUdeviceptr address, std::uint64_t bytes);
/// The same for a pointer of the host. Null: Failure INVALID_VALUE.
Place host_place(Driver& driver, const void* memory, std::uint64_t bytes);
/// Either of both: unified addressing.
Place any_place(Driver& driver, cuda::CUdeviceptr address, std::uint64_t bytes);

/// Where the rows of a copy lie. Bytes.
struct Rows {
    Place place;
    std::uint64_t start = 0;
    std::uint64_t pitch = 0;
    std::uint64_t slice = 0;
};
struct Extent {
    std::uint64_t width = 0;
    std::uint64_t height = 1;
    std::uint64_t depth = 1;
};

/// As the driver does it: pageable source memory is read before the call returns, pageable targets are complete then. A
/// pinned target holds kPoison until somebody waits for the stream. `synchronous`: what touches host memory is complete
/// when the call returns.
void copy(const StreamOf& stream, const Rows& target, const Rows& source, const Extent& extent, bool synchronous);

/// Byte that fills pinned memory until the copy to it is complete.
inline constexpr unsigned char kPoison = 0xDB;
/// For each copied or set byte.
inline constexpr double kNanosecondsPerByte = 1.0 / 64;

}  // namespace gradguard::vdriver
