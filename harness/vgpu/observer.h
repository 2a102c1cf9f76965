// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

/// How a memory access orders others (PTX memory model). `Volatile` is ld.volatile/st.volatile: relaxed, scope System.
/// atom and red without a qualifier are Relaxed.
enum class Order : std::uint8_t { Weak, Volatile, Relaxed, Acquire, Release, AcquireRelease };
/// Whom it orders for; atom, red and fences without a qualifier have Gpu. Means nothing for Weak.
enum class Scope : std::uint8_t { Cta, Cluster, Gpu, System };

/// `instruction` in all events is an index for Observed::place().
struct MemoryEvent {
    WarpId warp;
    std::uint32_t instruction = 0;
    Space space = Space::Global;  ///< Generic for generic addressing: the space is in the address then.
    AccessKind kind = AccessKind::Load;
    std::uint32_t lane_bytes = 0;  ///< Bytes that each lane touches, all elements of a vector together.
    std::uint32_t mask = 0;        ///< Lanes that take part.
    std::span<const Address, kWarpLanes> addresses;  ///< Valid where mask is set. Not yet checked.
    Order order = Order::Weak;
    Scope scope = Scope::System;
    bool returns = true;  ///< Atomics: atom, not red.
    /// The lanes of mask are neighbours, and so is what they access: addresses[i + 1] == addresses[i] + lane_bytes.
    bool consecutive = false;
};

struct BarrierEvent {
    WarpId warp;
    std::uint32_t instruction = 0;
    std::uint32_t barrier = 0;
    std::uint32_t mask = 0;   ///< Lanes that arrive with this event.
    std::uint32_t alive = 0;  ///< Lanes of the warp that have not exited.
    bool aligned = true;
    bool waits = true;           ///< bar.sync and bar.red; false for bar.arrive.
    std::uint32_t expected = 0;  ///< Threads that fill it, as the instruction says; 0: all threads of the block.
};

/// fence and membar. Lanes of the mask have executed it.
struct FenceEvent {
    WarpId warp;
    std::uint32_t instruction = 0;
    std::uint32_t mask = 0;
    Scope scope = Scope::Gpu;
};

/// bar.warp.sync (__syncwarp()): all lanes of the mask have arrived and go on.
struct WarpSyncEvent {
    WarpId warp;
    std::uint32_t instruction = 0;
    std::uint32_t mask = 0;
};

struct BranchEvent {
    WarpId warp;
    std::uint32_t instruction = 0;
    std::uint32_t mask = 0;
    std::uint32_t taken = 0;
};

/// What a register is used for when it matters whether anybody wrote it.
enum class RegisterUse : std::uint8_t {
    AsAddress,
    AsGuard,      ///< Of an instruction under @p.
    AsCondition,  ///< Of a branch or exit.
    InGlobal,     ///< Stored in global memory.
    InAtomic,     ///< An operand of an atomic.
    AtBarrier,    ///< Number, thread count, or a predicate that it reduces.
    AsMemberMask,
};

/// A load from local memory of bytes that the thread never wrote.
struct LocalLoad {
    std::uint32_t instruction = 0;
    Address address = 0;      ///< Of the first such byte, in the thread's memory.
    std::uint32_t bytes = 0;  ///< Of the whole access.
};

/// Lanes use a value that comes from a register or from local memory that they never wrote.
struct UndefinedRegisterEvent {
    WarpId warp;
    std::uint32_t instruction = 0;
    std::uint32_t mask = 0;
    RegisterUse use = RegisterUse::AsAddress;
    std::string_view name;         ///< Of the register that is used; empty: a part or a copy that has none.
    std::uint32_t origin = 0;      ///< Of the register that nobody wrote: a number,
    std::string_view origin_name;  ///< and its name; empty: none.
    const LocalLoad* loaded =
        nullptr;  ///< Where the value comes from, if from local memory; there is no register then.
};

/// What an observer may ask about the launch it watches.
class Observed {
  public:
    virtual ~Observed() = default;
    virtual const std::string& kernel() const = 0;
    virtual const LaunchConfig& config() const = 0;
    virtual std::uint32_t shared_bytes_per_block() const = 0;
    virtual Place place(std::uint32_t instruction) const = 0;
    /// Bytes that lane `lane` of a Store event is about to write, and bytes that lie in memory now at `address` as the
    /// warp of the event sees it (shared memory: of its block). False when they are not to be had. Only during
    /// memory().
    virtual bool stored_bytes(const MemoryEvent&, std::uint32_t /*lane*/, std::span<std::byte> /*bytes*/) const {
        return false;
    }
    virtual bool memory_bytes(const MemoryEvent&, Address /*address*/, std::span<std::byte> /*bytes*/) const {
        return false;
    }
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
    virtual void fence(const FenceEvent&) {}
    virtual void warp_sync(const WarpSyncEvent&) {}
    /// Whether to keep track of values that nobody wrote, in registers and in local memory; asked at the beginning of
    /// each launch.
    virtual bool wants_registers() const { return false; }
    /// When any observer wants it. Before the instruction is executed.
    virtual void undefined_register(const UndefinedRegisterEvent&) {}
    virtual void block_end(std::uint64_t /*block*/) {}
    /// Also after a fault.
    virtual void launch_end(const LaunchStats&) {}
    virtual void allocated(Address, std::uint64_t /*bytes*/) {}
    /// Memory that is there but not by allocate() or map() since this observer was attached: variables of modules, and
    /// what there was before.
    virtual void known(Address, std::uint64_t /*bytes*/) {}
    virtual void freed(Address) {}
    /// The host gave these bytes a value: Machine::write, map, host_pointer (not const), initial values of variables.
    virtual void host_wrote(Address, std::uint64_t /*bytes*/) {}
};

}  // namespace gradguard::vgpu
