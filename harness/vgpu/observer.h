// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "harness/vgpu/finding.h"
#include "harness/vgpu/options.h"

/// Observers watch a machine from outside: one call for a warp, never for a lane. Nobody attached, nothing is paid.
namespace gradguard::vgpu {

inline constexpr std::uint32_t kWarpLanes = 32;

struct LaunchConfig {
    Dim3 grid;
    Dim3 block;
    std::uint32_t dynamic_shared_bytes = 0;
};

/// The warp that an event is about. Thread i of the block (x fastest) is lane i % 32 of warp i / 32.
struct WarpId {
    std::uint64_t block = 0;  ///< Linear index in the grid, x fastest.
    std::uint32_t warp = 0;   ///< In the block.
};

/// `instruction` in all events is an index for Observed::place().
struct MemoryEvent {
    WarpId warp;
    std::uint32_t instruction = 0;
    Space space = Space::Global;  ///< Generic for generic addressing: the space is in the address then.
    AccessKind kind = AccessKind::Load;
    std::uint32_t lane_bytes = 0;  ///< Bytes that each lane touches, all elements of a vector together.
    std::uint32_t mask = 0;        ///< Lanes that take part.
    std::span<const Address, kWarpLanes> addresses;  ///< Valid where mask is set. Not yet checked.
};

struct BarrierEvent {
    WarpId warp;
    std::uint32_t instruction = 0;
    std::uint32_t barrier = 0;
    std::uint32_t mask = 0;   ///< Lanes that arrive with this event.
    std::uint32_t alive = 0;  ///< Lanes of the warp that have not exited.
    bool aligned = true;
};

struct BranchEvent {
    WarpId warp;
    std::uint32_t instruction = 0;
    std::uint32_t mask = 0;
    std::uint32_t taken = 0;
};

/// What an observer may ask about the launch it watches.
class Observed {
  public:
    virtual ~Observed() = default;
    virtual const std::string& kernel() const = 0;
    virtual const LaunchConfig& config() const = 0;
    virtual std::uint32_t shared_bytes_per_block() const = 0;
    virtual Place place(std::uint32_t instruction) const = 0;
    /// Folds `finding` into those of the machine.
    virtual void report(Finding finding) = 0;
};

class Observer {
  public:
    virtual ~Observer() = default;
    virtual void launch_begin(Observed&) {}
    virtual void block_begin(std::uint64_t /*block*/) {}
    virtual void memory(const MemoryEvent&) {}
    virtual void barrier(const BarrierEvent&) {}
    /// A barrier of a block was filled and its threads go on.
    virtual void barrier_complete(std::uint64_t /*block*/, std::uint32_t /*barrier*/) {}
    virtual void branch(const BranchEvent&) {}
    virtual void fence(WarpId, std::uint32_t /*instruction*/, std::uint32_t /*mask*/) {}
    virtual void block_end(std::uint64_t /*block*/) {}
    /// Also after a fault.
    virtual void launch_end(const LaunchStats&) {}
    virtual void allocated(Address, std::uint64_t /*bytes*/) {}
    virtual void freed(Address) {}
};

}  // namespace gradguard::vgpu
