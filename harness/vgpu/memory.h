// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/vgpu/exec/op.h"
#include "harness/vgpu/finding.h"

namespace gradguard::vgpu {

/// Fills memory that nobody has written. Words differ by `key` and by place; half of the keys give NaNs, the other half
/// plausible numbers, so that neither a comparison that drops NaN nor one that keeps it hides a read of it.
void fill_with_poison(std::byte* data, std::uint64_t bytes, std::uint64_t key);

/// Memory of 64-byte alignment that is not initialised.
struct AlignedDelete {
    void operator()(std::byte* data) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;
AlignedBytes allocate_aligned(std::uint64_t bytes);

/// Global memory of a machine. An address is allocation number (bits 36 and up) and offset; numbers are never used
/// again, so an address out of bounds or after free belongs to nothing else.
class Memory {
  public:
    Memory(std::uint64_t seed, std::uint64_t max_bytes, bool host_addresses = false);

    /// All throw LaunchError as Machine's functions of the same name do.
    Address allocate(std::uint64_t bytes);
    Address map(void* host, std::uint64_t bytes);
    Address map_in_place(void* host, std::uint64_t bytes);
    void free(Address address);
    std::byte* locate(Address address, std::uint64_t bytes) const;

    /// Kernels can read it, not write it.
    void make_constant(Address address);

    std::span<const exec::AllocationView> views() const { return views_; }
    std::uint64_t allocated_bytes() const { return allocated_bytes_; }
    std::uint64_t live_allocations() const { return live_; }

    struct Info {
        bool known = false;  ///< It was allocated once.
        bool live = false;
        bool constant = false;
        Address start = 0;
        std::uint64_t bytes = 0;
    };
    /// The allocation whose number is in `address`.
    Info info(Address address) const;
    /// All live ones.
    std::vector<Info> live() const;

  private:
    struct Allocation {
        AlignedBytes storage;  ///< Null for mapped memory.
        Address start = 0;
        std::uint64_t bytes = 0;
        bool live = false;
        bool constant = false;
    };

    Address add(Allocation allocation, std::byte* data, std::uint64_t begin);

    const std::uint64_t seed_;
    const std::uint64_t max_bytes_;
    const std::uint64_t first_;  ///< Number of the first allocation; those before it are windows and host addresses.
    std::uint64_t allocated_bytes_ = 0;
    std::uint64_t live_ = 0;
    std::vector<exec::AllocationView> views_;
    std::vector<Allocation> allocations_;
};

}  // namespace gradguard::vgpu
