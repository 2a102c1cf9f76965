// SPDX-License-Identifier: Apache-2.0
// Values that nobody has written, lane by lane, and who uses them. See decode/definedness.h.
#include <algorithm>
#include <cstring>

#include "harness/vgpu/launch.h"
#include "harness/vgpu/undefined_bits.h"

namespace gradguard::vgpu {

using decode::DefinednessRule;
using decode::kUntracked;
using decode::TrackedOp;
using exec::kFullMask;
using exec::kLanes;
using exec::Op;

namespace {

/// An origin with this bit is an index in Launch::local_loads_.
constexpr std::uint32_t kLocalLoadBit = 0x80000000U;

}  // namespace

void Launch::reset_registers(BlockRun& block) const {
    const decode::Definedness& definedness = program_.definedness;
    const std::size_t count = definedness.registers.size();
    if (count == 0) return;
    block.undefined.resize(count * block_warps_);
    block.undefined_bits.resize(count * block_warps_ * kLanes);
    block.copied.assign(count * block_warps_, 0);
    block.origins.resize(count * block_warps_);
    for (std::uint32_t w = 0; w < block_warps_; ++w) {
        Warp& warp = block.warps[w];
        warp.undefined = block.undefined.data() + w * count;
        warp.undefined_bits = block.undefined_bits.data() + w * count * kLanes;
        warp.copied = block.copied.data() + w * count;
        warp.origins = block.origins.data() + w * count;
        for (std::uint32_t r = 0; r < count; ++r) {
            warp.undefined[r] = definedness.registers[r].undefined_at_start ? kFullMask : 0;
            warp.origins[r] = r;
        }
        std::fill_n(warp.undefined_bits, count * kLanes, ~std::uint64_t{0});
    }
    if (definedness.through_local) {
        block.local_undefined.assign(std::size_t{entry_.local_bytes} * kLanes * block_warps_, 0xFF);
        block.local_origins.assign(std::size_t{entry_.local_bytes} * block_warps_, kUntracked);
    }
    if (definedness.through_shared) block.shared_undefined.assign(shared_bytes_, 0);
}

std::string Launch::register_name(std::uint32_t number) const {
    const std::uint32_t index = program_.definedness.registers[number].index;
    return index < entry_.registers.size() ? entry_.registers[index].name : std::string();
}

std::uint32_t Launch::origin_of_load(const Op& op, Address address) {
    const auto [at, is_new] = load_numbers_.try_emplace({op.instruction, address}, local_loads_.size());
    if (is_new)
        local_loads_.push_back({op.instruction, address, static_cast<std::uint32_t>(op.lane_bytes) * op.elements});
    return at->second | kLocalLoadBit;
}

void Launch::tell_use(const BlockRun& block, const Warp& warp, std::uint32_t lanes, std::uint32_t instruction,
                      RegisterUse use, std::string_view name, std::uint32_t origin) const {
    const bool is_load = (origin & kLocalLoadBit) != 0;
    const std::string origin_name = is_load ? std::string() : register_name(origin);
    const UndefinedRegisterEvent event{{block.index, static_cast<std::uint32_t>(&warp - block.warps.data())},
                                       instruction,
                                       lanes,
                                       use,
                                       name,
                                       origin,
                                       origin_name,
                                       is_load ? &local_loads_[origin & ~kLocalLoadBit] : nullptr};
    for (Observer* observer : observers_) observer->undefined_register(event);
}

void Launch::use_register(const BlockRun& block, Warp& warp, std::uint32_t number, std::uint32_t lanes,
                          std::uint32_t instruction, RegisterUse use) const {
    lanes &= undefined_in(warp, number);
    if (lanes == 0) return;
    warp.undefined[number] &= ~lanes;  // said once
    tell_use(block, warp, lanes, instruction, use, register_name(number), warp.origins[number]);
}

/// What ends a segment decides for all its lanes.
void Launch::use_at_end(const BlockRun& block, Warp& warp, std::uint32_t index, std::uint32_t mask) const {
    const decode::Segment& segment = program_.segments[index];
    const decode::TrackedSegment& tracked = program_.definedness.segments[index];
    const auto use = [&](std::uint32_t number, RegisterUse how) {
        use_register(block, warp, number, mask, segment.end_instruction, how);
    };
    if (segment.conditional) use(tracked.predicate, RegisterUse::AsCondition);
    if (segment.end != decode::EndKind::Barrier) return;
    use(tracked.barrier, segment.of_warp ? RegisterUse::AsMemberMask : RegisterUse::AtBarrier);
    use(tracked.thread_count, RegisterUse::AtBarrier);
    if (segment.reduction == decode::Reduction::None || program_.definedness.of_op.empty()) return;
    if (const std::uint32_t op = program_.definedness.of_op[segment.released_op])
        use(program_.definedness.ops[op - 1].sources[0], RegisterUse::AtBarrier);
}

void Launch::track(BlockRun& block, Warp& warp, std::uint32_t index, std::uint32_t mask) {
    const TrackedOp& tracked = program_.definedness.ops[program_.definedness.of_op[index] - 1];
    const Op& op = program_.ops[index];
    if (op.guard) {
        use_register(block, warp, tracked.guard, mask, op.instruction, RegisterUse::AsGuard);
        std::uint32_t predicate;
        std::memcpy(&predicate, context_.base[0] + op.guard->predicate, sizeof(predicate));
        mask &= predicate ^ op.guard->invert;
        if (mask == 0) return;
    }
    const bool is_memory = tracked.rule == DefinednessRule::Load || tracked.rule == DefinednessRule::Store ||
                           tracked.rule == DefinednessRule::Atomic;
    if (is_memory) return track_memory(block, warp, tracked, index, mask);
    for (unsigned k = 0; tracked.rule == DefinednessRule::Copy && k < tracked.source_count; ++k)
        use_register(block, warp, tracked.sources[k], mask, op.instruction, RegisterUse::AsAddress);
    std::uint32_t origin = kUntracked;
    for (unsigned k = 0; k < tracked.source_count && origin == kUntracked; ++k) {
        if ((undefined_in(warp, tracked.sources[k]) & mask) != 0) origin = warp.origins[tracked.sources[k]];
    }
    LaneBits bits{};
    if (origin != kUntracked) bits = undefined_result(warp, tracked, op, mask);
    for (unsigned k = 0; k < tracked.destination_count; ++k) {
        // Whether a shuffle finds its source lane does not depend on the value.
        const bool is_choice = tracked.rule == DefinednessRule::Shuffle && tracked.destination_bytes[k] == 0;
        if (!is_choice) {
            set_undefined(warp, tracked, k, mask, bits, origin);
            const bool is_move = tracked.rule == DefinednessRule::Bitwise && tracked.moved_sources != 0;
            if (is_move && origin != kUntracked && tracked.destinations[k] != kUntracked)
                warp.copied[tracked.destinations[k]] |= warp.copied[tracked.sources[0]] & mask;
            continue;
        }
        LaneBits choice{};
        each_lane((undefined_in(warp, tracked.sources[1]) | undefined_in(warp, tracked.sources[2])) & mask,
                  [&](unsigned lane) { choice[lane] = ~std::uint64_t{0}; });
        set_undefined(warp, tracked, k, mask, choice, origin);
    }
}

void Launch::set_undefined(Warp& warp, const TrackedOp& tracked, unsigned destination, std::uint32_t mask,
                           const LaneBits& bits, std::uint32_t origin) {
    const std::uint32_t number = tracked.destinations[destination];
    if (number == kUntracked) return;
    const std::uint64_t all = all_bits(tracked.destination_bytes[destination]);
    std::uint32_t undefined = 0;
    each_lane(origin == kUntracked ? 0 : mask, [&](unsigned lane) {
        const std::uint64_t value = bits[lane] & all;
        if (value == 0) return;
        undefined |= 1U << lane;
        warp.undefined_bits[std::size_t{number} * kLanes + lane] = value;
    });
    warp.undefined[number] = (warp.undefined[number] & ~mask) | undefined;
    warp.copied[number] &= ~mask;
    if (undefined != 0) warp.origins[number] = origin;
}

}  // namespace gradguard::vgpu
