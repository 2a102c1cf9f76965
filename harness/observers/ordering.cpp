// SPDX-License-Identifier: Apache-2.0
#include "harness/observers/ordering.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gradguard::observers {
namespace {

bool reaches_other_blocks(vgpu::Scope scope) { return scope != vgpu::Scope::Cta; }

bool acquires(vgpu::Order order) { return order == vgpu::Order::Acquire || order == vgpu::Order::AcquireRelease; }
bool releases(vgpu::Order order) { return order == vgpu::Order::Release || order == vgpu::Order::AcquireRelease; }

void add_to(std::shared_ptr<Clock>& target, const Clock& more) {
    if (!target) {
        target = std::make_shared<Clock>(more);
        return;
    }
    if (target.use_count() > 1) target = std::make_shared<Clock>(*target);  // somebody has read the old one
    target->join(more);
}

}  // namespace

void Ordering::begin_launch(const vgpu::LaunchConfig& config) {
    now_ = 1;
    threads_ = static_cast<std::uint32_t>(config.block.count());
    for (auto& entry : blocks_) spare_.push_back(std::move(entry.second));
    blocks_.clear();
    locations_.clear();
    last_ = nullptr;
}

void Ordering::begin_block(std::uint64_t block) { find_block(block); }

BlockOrder& Ordering::find_block(std::uint64_t number) {
    auto& entry = blocks_[number];
    if (!entry) {
        if (spare_.empty()) {
            entry = std::make_unique<BlockOrder>();
            entry->slot = slots_++;
        } else {
            entry = std::move(spare_.back());
            spare_.pop_back();
            const std::size_t slot = entry->slot;
            *entry = BlockOrder{};
            entry->slot = slot;
        }
        entry->block = static_cast<std::uint32_t>(number);
    }
    last_ = entry.get();
    last_number_ = number;
    return *last_;
}

void Ordering::end_block(std::uint64_t block) {
    const auto at = blocks_.find(block);
    if (at == blocks_.end()) return;
    spare_.push_back(std::move(at->second));
    blocks_.erase(at);
    // What the block had read of others must not keep those clocks shared.
    spare_.back()->lanes.clear();
    spare_.back()->common.reset();
    last_ = nullptr;
}

std::uint32_t Ordering::warp_mask(std::uint32_t warp) const {
    const std::uint32_t first = warp * 32;
    if (threads_ >= first + 32) return ~0U;
    return threads_ > first ? (1U << (threads_ - first)) - 1 : 0;
}

LaneOrder& Ordering::lane_of(BlockOrder& me, std::uint32_t thread) {
    if (me.lanes.empty()) me.lanes.resize(std::max<std::size_t>(threads_, 1));
    return me.lanes[thread];
}

bool Ordering::knows(const BlockOrder& me, std::uint32_t thread, ThreadId other, Time time) const {
    if (me.common && time <= me.common->of(other)) return true;
    if (me.lanes.empty()) return false;
    const ClockPointer& extra = me.lanes[thread].extra;
    return extra && time <= extra->of(other);
}

Knowledge Ordering::knowledge(const BlockOrder& me, std::uint32_t thread) const {
    return {now_, me.warp_time[thread / 32], me.barrier_time, me.common,
            me.lanes.empty() ? nullptr : me.lanes[thread].extra};
}

Clock Ordering::clock_of(const BlockOrder& me, std::uint32_t thread, const Knowledge& knowledge) {
    Clock clock;
    if (knowledge.common) clock = *knowledge.common;
    if (knowledge.extra) clock.join(*knowledge.extra);
    clock.raise_block(me.block, knowledge.block);
    clock.raise_warp(me.block, thread / 32, knowledge.warp);
    clock.raise_thread({me.block, static_cast<std::uint16_t>(thread)}, knowledge.self);
    return clock;
}

void Ordering::arrive(const vgpu::BarrierEvent& event) {
    const bool whole_block = event.expected == 0 || event.expected == threads_;
    if (event.waits && whole_block) return;
    BlockOrder& me = block(event.warp.block);
    BlockOrder::Partial& partial = me.partial[event.barrier];
    partial.whole_block |= whole_block;
    partial.arrived[event.warp.warp] |= event.mask;
    if (event.waits) partial.waiting[event.warp.warp] |= event.mask;
}

void Ordering::complete(std::uint64_t number, std::uint32_t barrier) {
    BlockOrder& me = block(number);
    if (!me.fenced.empty()) publish_fences(me);
    if (!me.partial.empty()) {
        if (const auto at = me.partial.find(barrier); at != me.partial.end()) {
            BlockOrder::Partial partial = at->second;
            me.partial.erase(at);
            for (std::uint32_t warp = 0; partial.whole_block && warp < 32; ++warp) {
                partial.waiting[warp] = warp_mask(warp) & ~partial.arrived[warp];
                partial.arrived[warp] = warp_mask(warp);
            }
            complete_partial(me, partial);
            return;
        }
    }
    for (const std::uint16_t thread : me.touched) {
        LaneOrder& lane = me.lanes[thread];
        me.common = join(join(me.common, lane.extra), lane.pending_atomic);
        lane.extra.reset();
        lane.pending_atomic.reset();
    }
    me.touched.clear();
    me.barrier_time = now_;
    advance();
}

void Ordering::complete_partial(BlockOrder& me, const BlockOrder::Partial& partial) {
    Clock all;
    all.raise_block(me.block, me.barrier_time);
    for (std::uint32_t warp = 0; warp < 32; ++warp) {
        const std::uint32_t arrived = partial.arrived[warp];
        if (arrived == 0) continue;
        if (arrived == warp_mask(warp)) {
            all.raise_warp(me.block, warp, now_);
        } else {
            all.raise_warp(me.block, warp, me.warp_time[warp]);
        }
        for (std::uint32_t mask = arrived; mask != 0; mask &= mask - 1) {
            const std::uint32_t thread = warp * 32 + static_cast<std::uint32_t>(std::countr_zero(mask));
            if (arrived != warp_mask(warp)) all.raise_thread({me.block, static_cast<std::uint16_t>(thread)}, now_);
            LaneOrder& lane = lane_of(me, thread);
            if (lane.extra) all.join(*lane.extra);
            if (lane.pending_atomic) all.join(*lane.pending_atomic);
        }
    }
    const auto result = std::make_shared<const Clock>(std::move(all));
    for (std::uint32_t warp = 0; warp < 32; ++warp) {
        for (std::uint32_t mask = partial.waiting[warp]; mask != 0; mask &= mask - 1) {
            const std::uint32_t thread = warp * 32 + static_cast<std::uint32_t>(std::countr_zero(mask));
            lane_of(me, thread).extra = result;
            me.touched.push_back(static_cast<std::uint16_t>(thread));
        }
    }
    advance();
}

void Ordering::publish_fences(BlockOrder& me) {
    auto published = me.published ? std::make_shared<Clock>(*me.published) : std::make_shared<Clock>();
    std::sort(me.fenced.begin(), me.fenced.end());
    me.fenced.erase(std::unique(me.fenced.begin(), me.fenced.end()), me.fenced.end());
    for (std::size_t i = 0; i < me.fenced.size();) {
        const std::uint32_t warp = me.fenced[i] / 32U;
        std::uint32_t mask = 0;
        Time earliest = now_;
        for (; i < me.fenced.size() && me.fenced[i] / 32U == warp; ++i) {
            const std::uint16_t thread = me.fenced[i];
            const Knowledge& fence = me.lanes[thread].fence_gpu;
            mask |= 1U << (thread % 32U);
            earliest = std::min(earliest, fence.self);
            published->raise_block(me.block, fence.block);
            published->raise_warp(me.block, warp, fence.warp);
            if (fence.common) published->join(*fence.common);
            if (fence.extra) published->join(*fence.extra);
        }
        if (mask == warp_mask(warp)) published->raise_warp(me.block, warp, earliest);
        for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
            const std::uint32_t thread = warp * 32 + static_cast<std::uint32_t>(std::countr_zero(rest));
            const Time self = me.lanes[thread].fence_gpu.self;
            if (mask != warp_mask(warp) || self != earliest) {
                published->raise_thread({me.block, static_cast<std::uint16_t>(thread)}, self);
            }
        }
    }
    me.fenced.clear();
    me.published = std::move(published);
}

void Ordering::warp_sync(const vgpu::WarpSyncEvent& event) {
    BlockOrder& me = block(event.warp.block);
    const std::uint32_t warp = event.warp.warp;
    const std::uint32_t mask = event.mask & warp_mask(warp);
    const bool whole = mask == warp_mask(warp);
    ClockPointer all;
    if (!whole) {
        Clock members;
        for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
            members.raise_thread({me.block, static_cast<std::uint16_t>(warp * 32 + std::countr_zero(rest))}, now_);
        }
        all = std::make_shared<const Clock>(std::move(members));
    }
    if (!me.lanes.empty()) {
        for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
            const LaneOrder& lane = me.lanes[warp * 32 + static_cast<std::uint32_t>(std::countr_zero(rest))];
            all = join(join(all, lane.extra), lane.pending_atomic);
        }
    }
    if (whole) me.warp_time[warp] = now_;
    if (all) {
        for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
            const std::uint32_t thread = warp * 32 + static_cast<std::uint32_t>(std::countr_zero(rest));
            lane_of(me, thread).extra = all;
            me.touched.push_back(static_cast<std::uint16_t>(thread));
        }
    }
    advance();
}

void Ordering::fence(const vgpu::FenceEvent& event) {
    BlockOrder& me = block(event.warp.block);
    for (std::uint32_t rest = event.mask; rest != 0; rest &= rest - 1) {
        const std::uint32_t thread = event.warp.warp * 32 + static_cast<std::uint32_t>(std::countr_zero(rest));
        LaneOrder& lane = lane_of(me, thread);
        ClockPointer learned = std::exchange(lane.pending_cta, nullptr);
        if (reaches_other_blocks(event.scope)) learned = join(learned, std::exchange(lane.pending_gpu, nullptr));
        if (learned) {
            lane.extra = join(lane.extra, learned);
            me.touched.push_back(static_cast<std::uint16_t>(thread));
        }
        lane.seen_near.reset();
        lane.seen_far.reset();
        lane.fence_cta = knowledge(me, thread);
        if (reaches_other_blocks(event.scope)) {
            lane.fence_gpu = lane.fence_cta;
            me.fenced.push_back(static_cast<std::uint16_t>(thread));
        }
    }
    advance();
}

void Ordering::acquire(BlockOrder& me, std::uint32_t thread, const BlockOrder::Location& location,
                       const vgpu::MemoryEvent& event) {
    const auto inside = location.by_block.find(me.block);
    const ClockPointer near = inside == location.by_block.end() ? nullptr : inside->second;
    const ClockPointer far = reaches_other_blocks(event.scope) ? location.gpu : nullptr;
    if (!near && !far) return;
    LaneOrder& lane = lane_of(me, thread);
    if (lane.seen_near == near && lane.seen_far == far && !acquires(event.order)) return;
    lane.seen_near = near;
    lane.seen_far = far;
    lane.pending_cta = join(lane.pending_cta, near);
    lane.pending_gpu = join(lane.pending_gpu, far);
    if (event.kind == vgpu::AccessKind::Atomic) {
        lane.pending_atomic = join(join(lane.pending_atomic, near), far);
        me.touched.push_back(static_cast<std::uint16_t>(thread));
    }
    if (acquires(event.order)) {
        lane.extra = join(join(lane.extra, near), far);
        me.touched.push_back(static_cast<std::uint16_t>(thread));
    }
}

void Ordering::release(BlockOrder& me, std::uint32_t thread, BlockOrder::Location& location,
                       const vgpu::MemoryEvent& event) {
    const bool itself = releases(event.order);
    const LaneOrder* lane = me.lanes.empty() ? nullptr : &me.lanes[thread];
    if (itself) {
        add_to(location.by_block[me.block], clock_of(me, thread, knowledge(me, thread)));
    } else if (lane && lane->fence_cta.self != 0) {
        add_to(location.by_block[me.block], clock_of(me, thread, lane->fence_cta));
    }
    if (!reaches_other_blocks(event.scope)) return;
    if (itself) {
        add_to(location.gpu, clock_of(me, thread, knowledge(me, thread)));
    } else if (lane && lane->fence_gpu.self != 0) {
        add_to(location.gpu, clock_of(me, thread, lane->fence_gpu));
    }
    if (me.published) add_to(location.gpu, *me.published);
}

void Ordering::strong_access(const vgpu::MemoryEvent& event, std::uint32_t lane, vgpu::Space space,
                             vgpu::Address address) {
    BlockOrder& me = block(event.warp.block);
    const std::uint32_t thread = event.warp.warp * 32 + lane;
    auto& locations = space == vgpu::Space::Shared ? me.shared_locations : locations_;
    const bool can_release =
        event.kind != vgpu::AccessKind::Load &&
        (releases(event.order) || me.published || (!me.lanes.empty() && me.lanes[thread].fence_cta.self != 0));
    if (!can_release && locations.empty()) return;
    const auto at = locations.find(address);
    if (at != locations.end() && event.kind != vgpu::AccessKind::Store && event.returns) {
        acquire(me, thread, at->second, event);
    }
    if (event.kind == vgpu::AccessKind::Store && at != locations.end()) locations.erase(at);  // ends release sequences
    if (!can_release) return;
    release(me, thread, locations[address], event);
    if (releases(event.order)) advance();
}

}  // namespace gradguard::observers
