// SPDX-License-Identifier: Apache-2.0
#include "harness/observers/races.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "harness/observers/accesses.h"

namespace gradguard::observers {

using vgpu::FindingKind;
using vgpu::Space;

namespace {

constexpr std::uint32_t kMaxAccessBytes = 64;
constexpr auto kLanes = [] {
    std::array<std::uint32_t, vgpu::kWarpLanes> lanes{};
    for (std::uint32_t i = 0; i < vgpu::kWarpLanes; ++i) lanes[i] = i;
    return lanes;
}();

std::uint8_t flags_of(const vgpu::MemoryEvent& event) {
    std::uint8_t flags = writes(event) ? kWrites : 0;
    if (event.kind == vgpu::AccessKind::Atomic) flags |= kStrong | kAtomic;
    if (event.order != vgpu::Order::Weak) flags |= kStrong;
    if (event.order == vgpu::Order::Volatile) flags |= kVolatile;
    if (event.scope != vgpu::Scope::Cta) flags |= kWide;
    return flags;
}

/// Whole allocations are watched from the row that they begin in.
vgpu::Address base_of(vgpu::Address begin) { return begin & ~vgpu::Address{RaceShadow::kRowBytes - 1}; }

}  // namespace

Races::Races(RaceOptions options) : options_(options) {}

std::string_view Races::name() const {
    if (options_.shared && options_.global) return "races";
    return options_.shared ? "shared-races" : "global-races";
}

Checked Races::checked() const {
    Checked result{std::string(name()), {}};
    if (options_.shared) result.counts.emplace_back("shared accesses", totals_.shared_accesses);
    if (options_.global) result.counts.emplace_back("global accesses", totals_.global_accesses);
    return result;
}

void Races::launch_begin(vgpu::Observed& launch) {
    launch_ = &launch;
    ordering_.begin_launch(launch.config());
    folder_.clear();
    if (shared_bytes_ != launch.shared_bytes_per_block()) shared_.clear();
    shared_bytes_ = launch.shared_bytes_per_block();
    global_.for_each_shadow([](RaceShadow& shadow) { shadow.renew(); });
}

RaceShadow& Races::shared_of(const BlockOrder& me) {
    if (me.slot >= shared_.size()) shared_.resize(me.slot + 1);
    auto& shadow = shared_[me.slot];
    if (!shadow) {
        shadow = std::make_unique<RaceShadow>(shared_bytes_);
        shadow->set_block_private();
    }
    return *shadow;
}

void Races::block_begin(std::uint64_t block) {
    ordering_.begin_block(block);
    if (options_.shared) shared_of(ordering_.block(block)).renew();
}

void Races::block_end(std::uint64_t block) { ordering_.end_block(block); }

void Races::barrier_complete(std::uint64_t block, std::uint32_t barrier) {
    ordering_.complete(block, barrier);
    ++totals_.barriers;
}

void Races::warp_sync(const vgpu::WarpSyncEvent& event) {
    ordering_.warp_sync(event);
    ++totals_.warp_syncs;
}

void Races::fence(const vgpu::FenceEvent& event) {
    ordering_.fence(event);
    ++totals_.fences;
}

void Races::launch_end(const vgpu::LaunchStats&) {
    if (launch_) folder_.report_to(*launch_);
    launch_ = nullptr;
}

void Races::memory(const vgpu::MemoryEvent& event) {
    for_each_space(event, [this](const vgpu::MemoryEvent& part, Space space) {
        if (space == Space::Shared ? options_.shared : options_.global) access(part, space);
        if (part.order != vgpu::Order::Weak || part.kind == vgpu::AccessKind::Atomic) synchronise(part, space);
    });
}

void Races::synchronise(const vgpu::MemoryEvent& event, Space space) {
    for (std::uint32_t mask = event.mask; mask != 0; mask &= mask - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
        ordering_.strong_access(event, lane, space, event.addresses[lane]);
    }
    if (writes(event)) ordering_.advance();  // strong writes have an order that can be observed
}

void Races::access(const vgpu::MemoryEvent& event, Space space) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(event.mask));
    BlockOrder& me = ordering_.block(event.warp.block);
    Access now{
        me.block,       1U << first, ordering_.now(), event.instruction, static_cast<std::uint16_t>(event.warp.warp),
        flags_of(event)};
    event_ = &event;
    space_ = space;
    me_ = &me;
    (space == Space::Shared ? totals_.shared_accesses : totals_.global_accesses) +=
        std::uint64_t{lane_count(event.mask)};
    const auto stretch = stretch_of(event);
    if (!stretch) return access_lanes(event, space, me, now);
    if (space == Space::Shared) {
        if (stretch->begin > shared_bytes_ || stretch->bytes > shared_bytes_ - stretch->begin) return;
        base_ = 0;
        shared_of(me).access_stretch(me, now, stretch->begin, stretch->bytes, event.lane_bytes, *this);
        return;
    }
    auto* const entry = global_.find(stretch->begin);
    if (!entry || !entry->holds(stretch->begin, stretch->bytes)) return access_lanes(event, space, me, now);
    base_ = base_of(entry->begin);
    entry->get().access_stretch(me, now, stretch->begin - base_, stretch->bytes, event.lane_bytes, *this);
}

void Races::access_lanes(const vgpu::MemoryEvent& event, Space space, BlockOrder& me, Access& now) {
    const std::uint32_t bytes = event.lane_bytes;
    const auto shadow_at = [&](vgpu::Address address) -> RaceShadow* {
        if (address % bytes != 0) return nullptr;  // the machine ends the launch
        if (space == Space::Shared) {
            base_ = 0;
            return bytes <= shared_bytes_ && address <= shared_bytes_ - bytes ? &shared_of(me) : nullptr;
        }
        auto* const entry = global_.find(address);
        if (!entry || !entry->holds(address, bytes)) return nullptr;
        base_ = base_of(entry->begin);
        return &entry->get();
    };
    if (!writes(event)) {
        if (const auto address = common_address(event)) {
            now.lanes = event.mask;
            if (RaceShadow* const shadow = shadow_at(*address)) {
                shadow->access_same(me, now, *address - base_, bytes, *this);
            } else {
                ++totals_.unwatched_accesses;
            }
            return;
        }
    }
    for (std::uint32_t mask = event.mask; mask != 0; mask &= mask - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
        const vgpu::Address address = event.addresses[lane];
        now.lanes = 1U << lane;
        if (RaceShadow* const shadow = shadow_at(address)) {
            shadow->access_stretch(me, now, address - base_, bytes, bytes, *this);
        } else {
            ++totals_.unwatched_accesses;
        }
    }
}

bool Races::strong_together(const Access& earlier, const Access& now) const {
    if ((earlier.flags & now.flags & kStrong) == 0) return false;
    if (earlier.block != now.block) return (earlier.flags & now.flags & kWide) != 0;
    const std::uint8_t either = earlier.flags | now.flags;
    return earlier.warp != now.warp || space_ != Space::Shared || (either & kVolatile) == 0 || (either & kAtomic) != 0;
}

/// PTX: W causes Y when W precedes Z in observation order (Z has read what W wrote, or what atomics made of it) and Z
/// precedes Y in base causality order. A weak Z will do: had it not been ordered after W, it would have been reported.
bool Races::observed(const Access& earlier, std::uint32_t earlier_lane, std::uint32_t thread,
                     const History& history) const {
    if ((earlier.flags & kWrites) == 0 || (earlier.flags & kStrong) == 0) return false;
    // A strong store between the two is what Z has read; a weak one has taken `earlier` off the list.
    const auto hides = [&](const Access& between, Time end) {
        return (between.flags & (kWrites | kAtomic)) == kWrites && between.time > earlier.time && between.time < end;
    };
    const auto observes = [&](const Access& later) {
        const bool atomic = (later.flags & kAtomic) != 0;
        const bool strong = (later.flags & kStrong) != 0;
        if (((later.flags & kWrites) != 0 && !atomic) || later.time < earlier.time) return false;
        if (strong && !strong_together(earlier, later)) return false;
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(later.lanes));
        // Strong writes have times of their own, but for the lanes of one instruction, which come in their order.
        if (later.time == earlier.time && (!atomic || lane <= earlier_lane)) return false;
        const bool happens_before = std::any_of(kLanes.begin(), kLanes.end(), [&](std::uint32_t i) {
            return (later.lanes >> i & 1) != 0 &&
                   ordering_.ordered(*me_, thread, {later.block, static_cast<std::uint16_t>(later.warp * 32U + i)},
                                     later.time);
        });
        if (!happens_before) return false;
        return !strong || (!hides(history.latest_write, later.time) &&
                           std::none_of(history.others.begin(), history.others.end(),
                                        [&](const Access& other) { return hides(other, later.time); }));
    };
    return observes(history.latest_write) || observes(history.latest_read) ||
           std::any_of(history.others.begin(), history.others.end(), observes);
}

void Races::judge(const Access& earlier, const Access& now, std::uint64_t offset, const History& history) {
    if (strong_together(earlier, now)) return;
    for (std::uint32_t before = earlier.lanes; before != 0; before &= before - 1) {
        const auto earlier_lane = static_cast<std::uint32_t>(std::countr_zero(before));
        const ThreadId other{earlier.block, static_cast<std::uint16_t>(earlier.warp * 32U + earlier_lane)};
        for (std::uint32_t lanes = now.lanes; lanes != 0; lanes &= lanes - 1) {
            const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
            const std::uint32_t thread = now.warp * 32U + lane;
            if (other == ThreadId{now.block, static_cast<std::uint16_t>(thread)}) continue;
            if (ordering_.ordered(*me_, thread, other, earlier.time)) continue;
            if (observed(earlier, earlier_lane, thread, history)) continue;
            conflict(earlier, earlier_lane, now, lane, offset);
            return;
        }
    }
}

bool Races::writes_same_value(const Access& earlier, std::uint32_t earlier_lane, const Access& now,
                              std::uint32_t lane) const {
    if ((earlier.flags & now.flags & kWrites) == 0 || ((earlier.flags | now.flags) & kAtomic) != 0) return false;
    std::array<std::byte, kMaxAccessBytes> mine, theirs;
    const std::size_t bytes = std::min<std::size_t>(event_->lane_bytes, kMaxAccessBytes);
    if (!launch_->stored_bytes(*event_, lane, {mine.data(), bytes})) return false;
    const bool one_instruction = earlier.block == now.block && earlier.warp == now.warp && earlier.time == now.time &&
                                 earlier.instruction == now.instruction && (event_->mask >> earlier_lane & 1) != 0 &&
                                 event_->addresses[earlier_lane] == event_->addresses[lane];
    if (one_instruction) {
        if (!launch_->stored_bytes(*event_, earlier_lane, {theirs.data(), bytes})) return false;
    } else if (!launch_->memory_bytes(*event_, event_->addresses[lane], {theirs.data(), bytes})) {
        return false;
    }
    return std::memcmp(mine.data(), theirs.data(), bytes) == 0;
}

void Races::conflict(const Access& earlier, std::uint32_t earlier_lane, const Access& now, std::uint32_t lane,
                     std::uint64_t offset) {
    FindingKind kind = FindingKind::Race;
    if (writes_same_value(earlier, earlier_lane, now, lane)) {
        ++totals_.same_value_writes;
        if (!options_.same_value_writes) return;
        kind = FindingKind::SameValueWrite;
    } else if (earlier.block == now.block && earlier.warp == now.warp) {
        const bool one_instruction = earlier.time == now.time && earlier.instruction == now.instruction;
        const bool both_write = (earlier.flags & now.flags & kWrites) != 0;
        kind = one_instruction && both_write ? FindingKind::WriteConflict : FindingKind::WarpRace;
    }
    folder_.add(kind, space_, now.instruction, earlier.instruction, [&] {
        vgpu::Finding finding = finding_for(*launch_, *event_, lane, space_, base_ + offset);
        finding.kind = kind;
        finding.other = launch_->place(earlier.instruction);
        finding.other_block = unflatten(earlier.block, launch_->config().grid);
        finding.other_thread = unflatten(earlier.warp * 32U + earlier_lane, launch_->config().block);
        finding.other_access = (earlier.flags & kAtomic) != 0   ? vgpu::AccessKind::Atomic
                               : (earlier.flags & kWrites) != 0 ? vgpu::AccessKind::Store
                                                                : vgpu::AccessKind::Load;
        if (space_ == Space::Global) {
            if (const auto* const entry = global_.find(finding.address)) {
                finding.allocation = entry->begin;
                finding.allocation_bytes = entry->bytes;
            }
        }
        return finding;
    });
}

}  // namespace gradguard::observers
