// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "harness/vgpu/error.h"
#include "harness/vgpu/finding.h"
#include "harness/vgpu/module.h"
#include "harness/vgpu/observer.h"
#include "harness/vgpu/options.h"

namespace gradguard::vgpu {

class ProgramCache;

/// A virtual GPU: memory of its own, and PTX kernels run on it, synchronously, in the calling thread. Not for use from
/// several threads at once; machines are independent of each other.
class Machine {
  public:
    /// `programs`, if given, keeps decoded kernels for machines to come that differ in the seed alone.
    /// Throws std::invalid_argument for a vector level that this processor cannot run.
    explicit Machine(MachineOptions options = {}, std::shared_ptr<ProgramCache> programs = nullptr);
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    const MachineOptions& options() const;
    /// The level that `VectorLevel::Best` became.
    VectorLevel vector_level() const;

    /// New memory, aligned to 256 bytes, full of poison. 0 bytes give an address at which nothing may be accessed.
    /// Throws LaunchError beyond Limits::max_memory_bytes.
    Address allocate(std::uint64_t bytes);
    /// Makes host memory visible to kernels: neither copied nor owned. Its alignment is that of the host address.
    Address map(void* host, std::uint64_t bytes);
    /// The same at the address that the memory has on the host. One such mapping at a time in each 2^36 bytes of host
    /// addresses; what is freed may be mapped again. Throws LaunchError where another is, below 2^40, or without
    /// MachineOptions::host_addresses.
    Address map_in_place(void* host, std::uint64_t bytes);
    /// The first address of an allocation or mapping. Addresses are never used again. Throws LaunchError for any other.
    void free(Address address);
    /// Bytes of live allocations, mappings not counted.
    std::uint64_t allocated_bytes() const;
    /// Live allocations and mappings.
    std::uint64_t live_allocations() const;

    /// The bytes behind `address`, valid until it is freed. Throws LaunchError when [address, address + bytes) is not
    /// in one live allocation.
    std::byte* host_pointer(Address address, std::uint64_t bytes);
    const std::byte* host_pointer(Address address, std::uint64_t bytes) const;
    /// Throw like host_pointer().
    void write(Address address, const void* source, std::uint64_t bytes);
    void read(Address address, void* destination, std::uint64_t bytes) const;

    /// Address and size of a .global or .const variable of `module`, which gets its initial value when the machine sees
    /// the module for the first time. Throws LaunchError when there is none of that name.
    Address variable(const Module& module, std::string_view name);

    /// Runs an entry to its end. `params` is the argument block, EntryInfo::param_bytes long.
    /// Throws LaunchError: no such entry, arguments of the wrong size, beyond a limit, a fault of the kernel. After a
    /// fault the error is sticky, as on a GPU: every later launch throws it again.
    LaunchStats launch(const Module& module, std::string_view entry, const LaunchConfig& config,
                       std::span<const std::byte> params);

    /// The observer must outlive its attachment.
    void attach(Observer* observer);
    void detach(Observer* observer);

    /// Everything found so far, folded, in the order of first sight.
    std::span<const Finding> findings() const;
    /// Sums over all launches.
    const Counters& counters() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gradguard::vgpu
