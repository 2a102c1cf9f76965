// SPDX-License-Identifier: Apache-2.0
// cp.async. PTX leaves open when the data move between the instruction and the wait for its group; the seed picks, and
// without a seed it is as late as can be, so that a kernel that forgets to wait reads what was there before.
#include "harness/vgpu/async_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/vgpu/launch.h"

namespace gradguard::vgpu {

void AsyncCopies::clear() {
    if (!used_) return;
    under_way_.clear();
    committed_ = {};
    used_ = false;
}

void AsyncCopies::commit(std::uint32_t mask) {
    used_ = true;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1)
        ++committed_[static_cast<unsigned>(std::countr_zero(rest))];
    for (AsyncCopy& copy : under_way_) {
        if ((mask >> copy.lane & 1U) != 0 && copy.group == 0) copy.group = committed_[copy.lane];
    }
}

template <class Wanted>
std::vector<AsyncCopy> AsyncCopies::take(Wanted&& wanted) {
    std::vector<AsyncCopy> taken;
    std::erase_if(under_way_, [&](const AsyncCopy& copy) {
        if (!wanted(copy)) return false;
        taken.push_back(copy);
        return true;
    });
    return taken;
}

std::vector<AsyncCopy> AsyncCopies::take_groups(std::uint32_t mask, std::uint32_t groups) {
    return take([&](const AsyncCopy& copy) {
        return (mask >> copy.lane & 1U) != 0 && copy.group != 0 && committed_[copy.lane] - copy.group >= groups;
    });
}

std::vector<AsyncCopy> AsyncCopies::take_all(std::uint32_t mask) {
    return take([&](const AsyncCopy& copy) { return (mask >> copy.lane & 1U) != 0; });
}

// ---- in a launch ---------------------------------------------------------------------------------------------------

void Launch::start_copies(const std::vector<AsyncCopy>& copies) {
    Warp& warp = running_block_->warps[running_warp_];
    for (const AsyncCopy& copy : copies) {
        if (copy.source_bytes > copy.bytes) {
            throw LaunchError("kernel " + entry_.name + ", " + module_.file_name + ":" +
                              std::to_string(entry_.instructions[copy.op->instruction].line) +
                              ": cp.async is told to read more bytes than it copies: '" +
                              entry_.instructions[copy.op->instruction].text + "'");
        }
        warp.copies.start(copy);
    }
    if (!seeded_) return;
    const std::uint64_t choice = random_.below(8);
    if (choice == 0) finish_copies(warp.copies.take_all(exec::kFullMask));
    if (choice == 1 || choice == 2) finish_copies(copies.empty() ? copies : warp.copies.take_all(1U << copies[0].lane));
}

void Launch::commit_copies(std::uint32_t mask) {
    Warp& warp = running_block_->warps[running_warp_];
    warp.copies.commit(mask);
    if (seeded_ && random_.below(8) == 0) finish_copies(warp.copies.take_all(mask));
}

void Launch::wait_for_copies(std::uint32_t mask, std::uint32_t groups) {
    finish_copies(running_block_->warps[running_warp_].copies.take_groups(mask, groups));
}

/// The data move. Copies of one instruction by different lanes are one event.
void Launch::finish_copies(const std::vector<AsyncCopy>& copies) {
    for (std::size_t begin = 0; begin < copies.size();) {
        std::size_t end = begin;
        std::uint32_t lanes = 0;
        for (; end < copies.size() && copies[end].op == copies[begin].op; ++end) {
            const std::uint32_t lane = 1U << copies[end].lane;
            if ((lanes & lane) != 0 || copies[end].source_bytes != copies[begin].source_bytes) break;
            lanes |= lane;
        }
        const std::span<const AsyncCopy> together(copies.data() + begin, end - begin);
        if (!observers_.empty()) tell_copies(together);
        for (const AsyncCopy& copy : together) {
            std::byte* const to = context_.shared + copy.destination;
            std::byte data[16] = {};
            if (copy.source_bytes != 0) {
                std::memcpy(data, memory_.locate(copy.source, copy.source_bytes), copy.source_bytes);
            }
            std::memcpy(to, data, copy.bytes);
            context_.global_bytes_read += copy.source_bytes;
        }
        begin = end;
    }
}

/// A plain access of the running warp.
void Launch::tell_weak(std::uint32_t instruction, Space space, AccessKind kind, std::uint32_t bytes, std::uint32_t mask,
                       const LaneAddresses& addresses) const {
    const MemoryEvent event{{running_block_->index, running_warp_},
                            instruction,
                            space,
                            kind,
                            bytes,
                            mask,
                            addresses,
                            Order::Weak,
                            Scope::System,
                            true,
                            false};
    for (Observer* observer : observers_) observer->memory(event);
}

/// The reads in pieces of a power of two, as observers know accesses, then the writes.
void Launch::tell_copies(std::span<const AsyncCopy> copies) {
    LaneAddresses addresses{};
    std::uint32_t mask = 0;
    for (const AsyncCopy& copy : copies) mask |= 1U << copy.lane;
    const auto tell = [&](Space space, AccessKind kind, std::uint32_t bytes) {
        tell_weak(copies[0].op->instruction, space, kind, bytes, mask, addresses);
    };
    for (std::uint32_t done = 0; done < copies[0].source_bytes;) {
        const std::uint32_t piece = std::bit_floor(copies[0].source_bytes - done);
        for (const AsyncCopy& copy : copies) addresses[copy.lane] = copy.source + done;
        tell(Space::Global, AccessKind::Load, piece);
        done += piece;
    }
    for (const AsyncCopy& copy : copies) addresses[copy.lane] = copy.destination;
    tell(Space::Shared, AccessKind::Store, copies[0].bytes);
}

/// discard.L2: what was there is gone. The seed picks the lines that keep it.
void Launch::discard_line(const exec::Op& op, std::uint64_t address, unsigned lane) {
    constexpr std::uint32_t kLine = 128;
    if (!observers_.empty()) {
        LaneAddresses addresses{};
        addresses[lane] = address;
        tell_weak(op.instruction, Space::Global, AccessKind::Store, kLine, 1U << lane, addresses);
    }
    if (seeded_ && random_.coin()) return;
    fill_with_poison(memory_.locate(address, kLine), kLine, mix(options_.seed) + address);
}

namespace exec {

void start_copies(Context& context, const std::vector<AsyncCopy>& copies) {
    static_cast<Launch*>(context.owner)->start_copies(copies);
}
void commit_copies(Context& context, std::uint32_t mask) { static_cast<Launch*>(context.owner)->commit_copies(mask); }
void wait_for_copies(Context& context, std::uint32_t mask, std::uint32_t groups) {
    static_cast<Launch*>(context.owner)->wait_for_copies(mask, groups);
}
void discard_line(Context& context, const Op& op, std::uint64_t address, unsigned lane) {
    static_cast<Launch*>(context.owner)->discard_line(op, address, lane);
}
void memory_fault_at(Context& context, const Op& op, MemoryPlace place, std::uint64_t address, unsigned lane) {
    static_cast<Launch*>(context.owner)->fault_at(op, place, address, lane);
}

}  // namespace exec
}  // namespace gradguard::vgpu
