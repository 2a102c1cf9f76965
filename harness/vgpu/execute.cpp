// SPDX-License-Identifier: Apache-2.0
// The inner loop: runs one path of a warp, segment by segment.
#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/vgpu/launch.h"

namespace gradguard::vgpu {
namespace {

using decode::EndKind;
using decode::Segment;
using exec::kFullMask;
using exec::Op;

std::uint64_t lanes(std::uint32_t mask) {
    return mask == kFullMask ? exec::kLanes : static_cast<std::uint64_t>(std::popcount(mask));
}

/// MemoryEvent::consecutive. `bytes` is a power of two.
bool are_neighbours(const std::array<Address, kWarpLanes>& addresses, std::uint32_t mask, std::uint32_t bytes) {
    const auto first = static_cast<unsigned>(std::countr_zero(mask));
    const std::uint32_t run = mask >> first;
    if ((run & (run + 1)) != 0 || addresses[first] % bytes != 0) return false;
    const Address origin = addresses[first] - first * bytes;
    Address wrong = 0;
    if (mask == kFullMask) {
        for (unsigned i = 0; i < kWarpLanes; ++i) wrong |= addresses[i] ^ (origin + i * bytes);
    } else {
        for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
            const auto i = static_cast<unsigned>(std::countr_zero(rest));
            wrong |= addresses[i] ^ (origin + i * bytes);
        }
    }
    return wrong == 0;
}

}  // namespace

std::uint32_t Launch::condition(const Segment& segment, std::uint32_t mask) const {
    if (!segment.conditional) return mask;
    std::uint32_t predicate;
    std::memcpy(&predicate, context_.base[0] + segment.predicate, sizeof(predicate));
    return mask & (predicate ^ segment.invert);
}

std::uint32_t Launch::lane_value(const decode::Place& place, std::uint32_t mask) const {
    std::uint32_t value;
    std::memcpy(&value, context_.base[place.space] + place.offset + 4 * std::countr_zero(mask), sizeof(value));
    return value;
}

template <bool kWatched, bool kRegisters>
void Launch::run_ops([[maybe_unused]] BlockRun& block, [[maybe_unused]] Warp& warp, const Path& path) {
    const Segment& segment = program_.segments[path.segment];
    const std::uint32_t mask = path.mask;
    context_.mask = mask;
    const Op* op = program_.ops.data() + segment.first_op;
    const Op* const end = program_.ops.data() + segment.last_op;
    if constexpr (kWatched) {
        if (options_.count_by_kind) {
            for (std::uint32_t i = segment.first_instruction; i < segment.first_instruction + segment.instruction_count;
                 ++i) {
                lanes_by_instruction_[i] += lanes(mask);
                ++warps_by_instruction_[i];
            }
        }
        const decode::Definedness& definedness = program_.definedness;
        bool tracks = false;
        if constexpr (kRegisters) {
            register_reads_ += definedness.segments[path.segment].register_reads * lanes(mask);
            tracks = definedness.segments[path.segment].has_ops;
        }
        for (; op != end; ++op) {
            const auto index = static_cast<std::uint32_t>(op - program_.ops.data());
            if (kRegisters && tracks && definedness.of_op[index] != 0) track(block, warp, index, mask);
            if (program_.events[index].kind != decode::OpEvent::Kind::None || op->guard) watch_op(index, mask);
            (mask == kFullMask ? op->full : op->masked)(context_, *op);
        }
    } else if (mask == kFullMask) {
        for (; op != end; ++op) op->full(context_, *op);
    } else {
        for (; op != end; ++op) op->masked(context_, *op);
    }
}

void Launch::watch_op(std::uint32_t index, std::uint32_t mask) {
    const Op& op = program_.ops[index];
    const decode::OpEvent& event = program_.events[index];
    std::uint32_t passes = mask;
    if (op.guard) {
        std::uint32_t predicate;
        std::memcpy(&predicate, context_.base[0] + op.guard->predicate, sizeof(predicate));
        passes &= predicate ^ op.guard->invert;
        if (options_.count_by_kind && op.guard->counts) lanes_by_instruction_[op.instruction] -= lanes(mask & ~passes);
    }
    if (event.kind == decode::OpEvent::Kind::None || passes == 0 || observers_.empty()) return;
    if (event.kind == decode::OpEvent::Kind::Fence) {
        const FenceEvent fence{{running_block_->index, running_warp_}, op.instruction, passes, event.scope};
        for (Observer* observer : observers_) observer->fence(fence);
        return;
    }
    LaneAddresses addresses = addresses_of(op, event);
    if (event.space == Space::Generic) {  // what is a thread's own comes by itself
        std::uint32_t own = 0;
        for (std::uint32_t rest = passes; rest != 0; rest &= rest - 1) {
            const auto i = static_cast<unsigned>(std::countr_zero(rest));
            if (addresses[i] >> exec::kOffsetBits == exec::kLocalWindow) own |= 1U << i;
        }
        if (own != 0) {
            if (passes != own) tell_memory(index, passes & ~own, Space::Generic, addresses);
            for (Address& address : addresses) address &= exec::kOffsetMask;
            return tell_memory(index, own, Space::Local, addresses);
        }
    }
    tell_memory(index, passes, event.space, addresses);
}

Launch::LaneAddresses Launch::addresses_of(const Op& op, const decode::OpEvent& event) const {
    alignas(64) LaneAddresses addresses;
    const std::byte* const slot = context_.base[op.space[0]] + op.offset[0];
    if (event.address_bytes == 4) {
        std::array<std::uint32_t, kWarpLanes> narrow;
        std::memcpy(narrow.data(), slot, sizeof(narrow));
        for (unsigned i = 0; i < kWarpLanes; ++i)
            addresses[i] = static_cast<std::uint32_t>(narrow[i] + static_cast<std::uint32_t>(op.immediate));
    } else {
        std::memcpy(addresses.data(), slot, sizeof(addresses));
        for (Address& address : addresses)
            address += static_cast<std::uint64_t>(static_cast<std::int64_t>(op.immediate));
    }
    return addresses;
}

void Launch::tell_memory(std::uint32_t index, std::uint32_t mask, Space space, const LaneAddresses& addresses) {
    const Op& op = program_.ops[index];
    const decode::OpEvent& event = program_.events[index];
    const std::uint32_t lane_bytes = static_cast<std::uint32_t>(op.lane_bytes) * op.elements;
    const MemoryEvent access{{running_block_->index, running_warp_},
                             op.instruction,
                             space,
                             event.access,
                             lane_bytes,
                             mask,
                             addresses,
                             event.order,
                             event.scope,
                             event.returns,
                             are_neighbours(addresses, mask, lane_bytes)};
    watched_op_ = &op;
    for (Observer* observer : observers_) observer->memory(access);
    watched_op_ = nullptr;
}

bool Launch::stored_bytes(const MemoryEvent& event, std::uint32_t lane, std::span<std::byte> bytes) const {
    if (!watched_op_ || event.kind != AccessKind::Store || bytes.size() > event.lane_bytes) return false;
    const Op& op = *watched_op_;
    const unsigned slot_bytes = op.lane_bytes == 8 ? 8 : 4;
    for (std::size_t done = 0; done < bytes.size();) {
        const auto element = static_cast<unsigned>(done / op.lane_bytes);
        const std::byte* const slot = context_.base[op.space[element + 1]] + op.offset[element + 1];
        const std::size_t size = std::min<std::size_t>(op.lane_bytes, bytes.size() - done);
        std::memcpy(bytes.data() + done, slot + lane * slot_bytes, size);
        done += size;
    }
    return true;
}

bool Launch::memory_bytes(const MemoryEvent& event, Address address, std::span<std::byte> bytes) const {
    if (event.space == Space::Shared) {
        if (bytes.size() > shared_bytes_ || address > shared_bytes_ - bytes.size()) return false;
        std::memcpy(bytes.data(), context_.shared + address, bytes.size());
        return true;
    }
    const Memory::Info info = memory_.info(address);
    if (!info.live || address < info.start || bytes.size() > info.bytes ||
        address - info.start > info.bytes - bytes.size())
        return false;
    std::memcpy(bytes.data(), memory_.locate(address, bytes.size()), bytes.size());
    return true;
}

void Launch::tell_branch(const Segment& segment, std::uint32_t mask, std::uint32_t taken) {
    const BranchEvent event{{running_block_->index, running_warp_}, segment.end_instruction, mask, taken};
    for (Observer* observer : observers_) observer->branch(event);
}

bool Launch::branch(Warp& warp, const Segment& segment, Path& path) {
    const std::uint32_t taken = condition(segment, path.mask);
    if (watched_ && segment.conditional) tell_branch(segment, path.mask, taken);
    if (taken == path.mask || taken == 0) {
        path.segment = taken != 0 ? segment.target : segment.next;
        return warp.arrive(path);
    }
    ++counters_.divergent_branches;
    const std::uint32_t join = warp.join_for(path, segment.reconverge);
    Path there{taken, segment.target, join};
    Path here{path.mask & ~taken, segment.next, join};
    if (seeded_ && random_.coin()) std::swap(there, here);
    if (warp.arrive(there)) warp.ready().push_back(there);
    path = here;
    return warp.arrive(path);
}

bool Launch::exit_lanes(BlockRun& block, Warp& warp, const Segment& segment, Path& path) {
    const std::uint32_t leaving = condition(segment, path.mask);
    path.mask &= ~leaving;
    path.segment = segment.next;
    if (leaving != 0) {
        if (!warp.copies.empty()) finish_copies(warp.copies.take_all(leaving));
        block.live_threads -= static_cast<std::uint32_t>(lanes(leaving));
        warp.exit(leaving);
        check_warp_barriers(block, warp);
        check_barriers(block);
    }
    return path.mask != 0 && warp.arrive(path);
}

/// Runs `path` until it ends, waits, or its slice is used up (then it is ready again).
template <bool kWatched, bool kRegisters>
Launch::Stop Launch::run_path(BlockRun& block, Warp& warp, Path path, std::uint64_t slice) {
    context_.base[0] = warp.frame;
    context_.local = warp.local;
    context_.shared = block.shared.get();
    std::uint64_t done = 0;
    bool goes_on = true;
    while (goes_on && done < slice) {
        const Segment& segment = program_.segments[path.segment];
        run_ops<kWatched, kRegisters>(block, warp, path);
        if constexpr (kRegisters) {
            if (!program_.definedness.registers.empty()) use_at_end(block, warp, path.segment, path.mask);
        }
        done += segment.instruction_count;
        counters_.lane_instructions += segment.instruction_count * lanes(path.mask);
        switch (segment.end) {
            case EndKind::Fall:
                path.segment = segment.next;
                goes_on = warp.arrive(path);
                break;
            case EndKind::Branch:
                goes_on = branch(warp, segment, path);
                break;
            case EndKind::Exit:
                goes_on = exit_lanes(block, warp, segment, path);
                break;
            case EndKind::Trap:
                fail_trap(warp, segment, path.mask,
                          entry_.instructions[segment.end_instruction].name == "brkpt" ? "brkpt" : "trap");
            case EndKind::Barrier:
                if (segment.of_warp) {
                    goes_on = synchronise_warp(block, warp, path);
                    break;
                }
                if (!segment.waits) {
                    arrive_at_barrier(block, warp, path);
                    path.segment = segment.next;
                    goes_on = warp.arrive(path);
                    break;
                }
                arrive_at_barrier(block, warp, path);
                goes_on = false;
                break;
        }
    }
    // A slice of nothing but empty segments (a jump to itself) still takes time.
    counters_.warp_instructions += done;
    warp.instructions_without_progress += done;
    if (!goes_on) return Stop::Blocked;
    warp.ready().push_back(path);
    return Stop::Preempted;
}

template Launch::Stop Launch::run_path<false, false>(BlockRun&, Warp&, Path, std::uint64_t);
template Launch::Stop Launch::run_path<true, false>(BlockRun&, Warp&, Path, std::uint64_t);
template Launch::Stop Launch::run_path<true, true>(BlockRun&, Warp&, Path, std::uint64_t);

}  // namespace gradguard::vgpu
