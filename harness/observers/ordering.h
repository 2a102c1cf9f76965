// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "harness/observers/clock.h"
#include "harness/vgpu/observer.h"

namespace gradguard::observers {

/// What a thread knew at one moment.
struct Knowledge {
    Time self = 0;        ///< Its own actions up to here; 0: never happened.
    Time warp = 0;        ///< Those of its warp.
    Time block = 0;       ///< Those of its block.
    ClockPointer common;  ///< What its block knew of others.
    ClockPointer extra;   ///< What only it knew.
};

/// Synchronisation state of one thread; exists only in blocks that use more than whole-block barriers.
struct LaneOrder {
    ClockPointer extra;
    Knowledge fence_cta;  ///< At its last fence of any scope.
    Knowledge fence_gpu;  ///< At its last fence of scope gpu or sys.
    // Read from sync locations, not yet made effective by a fence of that scope.
    ClockPointer pending_cta;
    ClockPointer pending_gpu;
    ClockPointer pending_atomic;  ///< From atomics; a barrier makes these effective too.
    ClockPointer seen_near;       ///< What the last strong read brought, so that spinning costs nothing.
    ClockPointer seen_far;
};

/// Synchronisation state of a resident block.
struct BlockOrder {
    std::uint32_t block = 0;
    std::size_t slot = 0;                ///< Small number, reused after the block has ended.
    Time barrier_time = 0;               ///< All threads know all threads of the block up to here.
    std::array<Time, 32> warp_time{};    ///< All lanes of the warp know each other up to here.
    ClockPointer common;                 ///< What every thread of the block knows of other blocks.
    ClockPointer published;              ///< What threads fenced themselves before a barrier that all have passed.
    std::vector<LaneOrder> lanes;        ///< Empty, or one for each thread.
    std::vector<std::uint16_t> touched;  ///< Threads with `extra` or `pending_atomic`, perhaps repeated.
    std::vector<std::uint16_t> fenced;   ///< Threads with a gpu fence since the last barrier.

    /// Arrivals at barriers for part of the block.
    struct Partial {
        std::array<std::uint32_t, 32> arrived{};
        std::array<std::uint32_t, 32> waiting{};
        bool whole_block = false;  ///< All threads take part, but some do not wait; then `waiting` is not kept.
    };
    std::unordered_map<std::uint32_t, Partial> partial;

    /// What has been released to a memory location (release sequence included).
    struct Location {
        std::shared_ptr<Clock> gpu;                                          ///< To all blocks.
        std::unordered_map<std::uint32_t, std::shared_ptr<Clock>> by_block;  ///< Within a block, any scope.
    };
    std::unordered_map<std::uint64_t, Location> shared_locations;
};

/// The happens-before relation of one launch, built from barriers, __syncwarp(), fences and atomics as the PTX memory
/// model has it: a fence followed by a strong write releases, a strong read followed by a fence acquires, and what a
/// thread has learned it passes on. Two deviations, both to the lenient side, both for patterns of NVIDIA's own
/// samples: an atomic followed by a barrier acquires without a fence, and threads that fence their own writes before a
/// barrier have them published by a later atomic of any thread of the block.
class Ordering {
  public:
    void begin_launch(const vgpu::LaunchConfig& config);
    void begin_block(std::uint64_t block);
    void end_block(std::uint64_t block);

    Time now() const { return now_; }
    /// What comes now is later than what came. Saturates: then everything counts as ordered, and nothing false is
    /// reported.
    void advance() { now_ += now_ != std::numeric_limits<Time>::max(); }
    BlockOrder& block(std::uint64_t number) {
        if (last_ && last_number_ == number) return *last_;
        return find_block(number);
    }

    void arrive(const vgpu::BarrierEvent& event);
    void complete(std::uint64_t block, std::uint32_t barrier);
    void warp_sync(const vgpu::WarpSyncEvent& event);
    void fence(const vgpu::FenceEvent& event);
    /// An atomic, volatile, relaxed, acquiring or releasing access by one lane. `address` is an offset for Shared.
    void strong_access(const vgpu::MemoryEvent& event, std::uint32_t lane, vgpu::Space space, vgpu::Address address);

    /// Whether what `other` did at `time` happens before what thread `thread` of block `me` does now.
    bool ordered(const BlockOrder& me, std::uint32_t thread, ThreadId other, Time time) const {
        if (other.block == me.block) {
            if (time <= me.barrier_time || other.thread == thread) return true;
            if (other.thread / 32U == thread / 32U && time <= me.warp_time[thread / 32U]) return true;
        }
        return (me.common || !me.lanes.empty()) && knows(me, thread, other, time);
    }

  private:
    BlockOrder& find_block(std::uint64_t number);
    bool knows(const BlockOrder& me, std::uint32_t thread, ThreadId other, Time time) const;
    LaneOrder& lane_of(BlockOrder& me, std::uint32_t thread);
    Knowledge knowledge(const BlockOrder& me, std::uint32_t thread) const;
    static Clock clock_of(const BlockOrder& me, std::uint32_t thread, const Knowledge& knowledge);
    void publish_fences(BlockOrder& me);
    void complete_partial(BlockOrder& me, const BlockOrder::Partial& partial);
    void acquire(BlockOrder& me, std::uint32_t thread, const BlockOrder::Location& location,
                 const vgpu::MemoryEvent& event);
    void release(BlockOrder& me, std::uint32_t thread, BlockOrder::Location& location, const vgpu::MemoryEvent& event);
    std::uint32_t warp_mask(std::uint32_t warp) const;

    Time now_ = 1;
    std::uint32_t threads_ = 0;
    std::unordered_map<std::uint64_t, std::unique_ptr<BlockOrder>> blocks_;
    std::vector<std::unique_ptr<BlockOrder>> spare_;
    std::size_t slots_ = 0;
    BlockOrder* last_ = nullptr;
    std::uint64_t last_number_ = 0;
    std::unordered_map<std::uint64_t, BlockOrder::Location> locations_;
};

}  // namespace gradguard::observers
