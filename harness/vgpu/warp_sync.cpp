// SPDX-License-Identifier: Apache-2.0
// What lanes of a warp do together (bar.warp.sync, shfl, vote, match, redux), and what barriers reduce.
#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/vgpu/launch.h"

namespace gradguard::vgpu {

using decode::Segment;

namespace {

bool is_plain_barrier(const Segment& segment) { return segment.released_op == decode::kNoSegment; }

/// Lanes of `mask` whose members are those of `lane`.
std::uint32_t lanes_with_members_of(unsigned lane, const std::array<std::uint32_t, exec::kLanes>& members,
                                    std::uint32_t mask) {
    std::uint32_t group = 0;
    for (; mask != 0; mask &= mask - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(mask));
        if (members[i] == members[lane]) group |= 1U << i;
    }
    return group;
}

}  // namespace

Launch::LaneMasks Launch::member_masks(const Warp& warp, const Segment& segment) const {
    LaneMasks members;
    const std::byte* const base = segment.barrier.space == 0 ? warp.frame : constants_.get();
    std::memcpy(members.data(), base + segment.barrier.offset, sizeof(members));
    return members;
}

void Launch::complete_warp_operation(BlockRun& block, Warp& warp, const Segment& segment, std::uint32_t mask,
                                     const LaneMasks& members) {
    if (segment.whole_warp && mask != exec::kFullMask)
        fail_trap(warp, segment, mask, "it needs all 32 lanes of the warp, and not all of them execute it");
    if (!is_plain_barrier(segment)) {
        const exec::Op& op = program_.ops[segment.released_op];
        context_.base[0] = warp.frame;
        context_.mask = mask;
        context_.members = members.data();
        track_released(block, warp, segment, mask);
        op.masked(context_, op);
        context_.members = nullptr;
        return;
    }
    // Only bar.warp.sync orders memory.
    for (std::uint32_t rest = mask; rest != 0 && !observers_.empty();) {
        const std::uint32_t group = lanes_with_members_of(static_cast<unsigned>(std::countr_zero(rest)), members, rest);
        rest &= ~group;
        const WarpSyncEvent event{
            {block.index, static_cast<std::uint32_t>(&warp - block.warps.data())}, segment.end_instruction, group};
        for (Observer* observer : observers_) observer->warp_sync(event);
    }
}

bool Launch::synchronise_warp(BlockRun& block, Warp& warp, Path& path) {
    const Segment& segment = program_.segments[path.segment];
    const LaneMasks members = member_masks(warp, segment);
    bool all_there = true;
    for (std::uint32_t rest = path.mask; rest != 0; rest &= rest - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(rest));
        if ((members[i] >> i & 1U) == 0) {
            fail_trap(warp, segment, 1U << i, "a lane executes it that is not in its own member mask");
        }
        all_there &= (members[i] & warp.alive() & ~path.mask) == 0;
    }
    if (all_there) {
        complete_warp_operation(block, warp, segment, path.mask, members);
        path.segment = segment.next;
        return warp.arrive(path);
    }
    // Lanes with different members go on at different times and meet again behind.
    const std::uint32_t first =
        lanes_with_members_of(static_cast<unsigned>(std::countr_zero(path.mask)), members, path.mask);
    const std::uint32_t join = first == path.mask ? path.join : warp.join_for(path, segment.next);
    for (std::uint32_t rest = path.mask; rest != 0;) {
        const std::uint32_t group = lanes_with_members_of(static_cast<unsigned>(std::countr_zero(rest)), members, rest);
        rest &= ~group;
        warp.waiting().push_back({{group, path.segment, join}, kWarpBarrier});
    }
    check_warp_barriers(block, warp);
    return false;
}

void Launch::check_warp_barriers(BlockRun& block, Warp& warp) {
    std::vector<WaitingPath>& waiting = warp.waiting();
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        if (waiting[i].barrier != kWarpBarrier) continue;
        const std::uint32_t place = waiting[i].path.segment;
        const Segment& segment = program_.segments[place];
        const LaneMasks members = member_masks(warp, segment);
        const std::uint32_t wanted = members[static_cast<unsigned>(std::countr_zero(waiting[i].path.mask))];
        const auto belongs = [&](const WaitingPath& one) {
            if (one.barrier != kWarpBarrier) return false;
            const Segment& other = program_.segments[one.path.segment];
            const bool same_operation =
                one.path.segment == place || (is_plain_barrier(segment) && is_plain_barrier(other));
            return same_operation &&
                   member_masks(warp, other)[static_cast<unsigned>(std::countr_zero(one.path.mask))] == wanted;
        };
        std::uint32_t there = 0;
        for (const WaitingPath& one : waiting) there |= belongs(one) ? one.path.mask : 0;
        if (there != (wanted & warp.alive())) continue;
        std::vector<Path> released;
        std::erase_if(waiting, [&](const WaitingPath& one) {
            if (!belongs(one)) return false;
            // Paths that split before and met here go on as one.
            const auto same = std::find_if(released.begin(), released.end(), [&](const Path& p) {
                return p.segment == one.path.segment && p.join == one.path.join;
            });
            if (same != released.end())
                same->mask |= one.path.mask;
            else
                released.push_back(one.path);
            return true;
        });
        LaneMasks common;
        common.fill(wanted);
        complete_warp_operation(block, warp, segment, there, common);
        for (Path& path : released) {
            path.segment = program_.segments[path.segment].next;
            if (warp.arrive(path)) warp.ready().push_back(path);
        }
        warp.instructions_without_progress = 0;
        i = static_cast<std::size_t>(-1);
    }
}

void Launch::fail_trap(const Warp& warp, const Segment& segment, std::uint32_t mask, const std::string& why) {
    const auto index = static_cast<std::uint32_t>(&warp - running_block_->warps.data());
    const Place at = place(segment.end_instruction);
    const Dim3 block = block_id(running_block_->index);
    const Dim3 thread = thread_id(index, static_cast<unsigned>(std::countr_zero(mask)));
    const auto text = [](const Dim3& d) {
        return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
    };
    std::string source;
    if (at.source_line != 0) source = " (" + at.source_file + ":" + std::to_string(at.source_line) + ")";
    throw LaunchError("kernel " + entry_.name + ", " + module_.file_name + ":" + std::to_string(at.ptx_line) + source +
                      ": " + why + ": '" + at.instruction + "', block " + text(block) + ", thread " + text(thread));
}

// ---- barriers that reduce ------------------------------------------------------------------------------------------

void Launch::add_to_reduction(Barrier& barrier, const Segment& segment, std::uint32_t mask) const {
    const exec::Op& op = program_.ops[segment.released_op];
    std::uint32_t predicate;
    std::memcpy(&predicate, context_.base[op.space[1]] + op.offset[1], sizeof(predicate));
    barrier.predicates += static_cast<std::uint32_t>(std::popcount(mask));
    barrier.true_predicates += static_cast<std::uint32_t>(std::popcount(predicate & mask));
}

/// Before its threads go on: gives them the result.
void Launch::release_reductions(BlockRun& block, std::uint32_t number) {
    const Barrier& barrier = block.barriers[number];
    if (barrier.predicates == 0) return;
    std::byte* const frame = context_.base[0];
    for (Warp& warp : block.warps) {
        for (const WaitingPath& waiting : warp.waiting()) {
            const Segment& segment = program_.segments[waiting.path.segment];
            if (waiting.barrier != number || segment.reduction == decode::Reduction::None) continue;
            const bool count = segment.reduction == decode::Reduction::Count;
            const bool all = barrier.true_predicates == barrier.predicates;
            const bool any = barrier.true_predicates != 0;
            context_.reduction = count                                         ? barrier.true_predicates
                                 : segment.reduction == decode::Reduction::And ? std::uint32_t{all}
                                                                               : std::uint32_t{any};
            const exec::Op& op = program_.ops[segment.released_op];
            context_.base[0] = warp.frame;
            context_.mask = waiting.path.mask;
            track_released(block, warp, segment, waiting.path.mask);
            op.masked(context_, op);
        }
    }
    context_.base[0] = frame;
}

}  // namespace gradguard::vgpu
