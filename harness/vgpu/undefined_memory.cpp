// SPDX-License-Identifier: Apache-2.0
// Undefined values that go through memory. See decode/definedness.h.
#include <bit>
#include <cstring>

#include "harness/vgpu/launch.h"
#include "harness/vgpu/undefined_bits.h"

namespace gradguard::vgpu {

using decode::DefinednessRule;
using decode::kUntracked;
using decode::TrackedOp;
using exec::Op;

Launch::WatchedBytes Launch::watched_bytes(BlockRun& block, const Warp& warp, Space space, Address address,
                                           std::uint32_t bytes, unsigned lane) const {
    const std::uint64_t window = space == Space::Generic ? address >> exec::kOffsetBits : 0;
    const std::uint64_t offset = space == Space::Generic ? address & exec::kOffsetMask : address;
    const auto inside = [&](std::uint64_t size) { return bytes <= size && offset <= size - bytes; };
    if ((space == Space::Local || window == exec::kLocalWindow) && !block.local_undefined.empty()) {
        if (!inside(entry_.local_bytes)) return {};
        const auto index = static_cast<std::size_t>(&warp - block.warps.data());
        return {block.local_undefined.data() + (index * exec::kLanes + lane) * entry_.local_bytes + offset,
                block.local_origins.data() + index * entry_.local_bytes + offset, offset};
    }
    if ((space == Space::Shared || window == exec::kSharedWindow) && !block.shared_undefined.empty()) {
        if (!inside(shared_bytes_)) return {};
        return {block.shared_undefined.data() + offset, nullptr, offset};
    }
    return {};
}

void Launch::track_memory(BlockRun& block, Warp& warp, const TrackedOp& tracked, std::uint32_t index,
                          std::uint32_t mask) {
    const Op& op = program_.ops[index];
    use_register(block, warp, tracked.sources[0], mask, op.instruction, RegisterUse::AsAddress);
    const LaneAddresses addresses = addresses_of(op, program_.events[index]);
    if (tracked.rule == DefinednessRule::Load) return track_load(block, warp, tracked, index, mask, addresses);
    const bool is_atomic = tracked.rule == DefinednessRule::Atomic;
    if (is_atomic) read_by_atomic(block, warp, index, mask, addresses);
    const std::uint32_t partly = is_atomic ? 0 : partly_defined(warp, tracked, op);
    for (unsigned k = 1; k < tracked.source_count; ++k) {
        const std::uint32_t number = tracked.sources[k];
        const std::uint32_t padded = number == kUntracked ? 0 : partly & warp.copied[number];
        const std::uint32_t visible = track_stored(block, warp, tracked, index, mask, addresses, k);
        use_register(block, warp, number, visible & ~padded, op.instruction,
                     is_atomic ? RegisterUse::InAtomic : RegisterUse::InGlobal);
    }
    for (unsigned k = 0; k < tracked.destination_count; ++k) set_undefined(warp, tracked, k, mask, {}, kUntracked);
}

void Launch::track_load(BlockRun& block, Warp& warp, const TrackedOp& tracked, std::uint32_t index, std::uint32_t mask,
                        const LaneAddresses& addresses) {
    const Op& op = program_.ops[index];
    const bool is_argument = program_.events[index].kind == decode::OpEvent::Kind::None;
    const std::uint64_t all = all_bits(op.lane_bytes);
    std::uint32_t partly = 0;  // lanes in which a part of what is loaded is defined
    for (unsigned k = 0; k < tracked.destination_count; ++k) {
        LaneBits bits{};
        std::uint32_t origin = kUntracked;
        each_lane(mask, [&](unsigned lane) {
            const Address address = addresses[lane] + std::uint64_t{k} * op.lane_bytes;
            const WatchedBytes place =
                watched_bytes(block, warp, program_.events[index].space, address, op.lane_bytes, lane);
            if (!place.bits) return;
            std::uint64_t value = 0;
            std::memcpy(&value, place.bits, op.lane_bytes);
            for (unsigned i = 0; is_argument && place.origins && i < op.lane_bytes; ++i) {
                if (place.origins[i] == kUntracked) value &= ~(std::uint64_t{0xFF} << 8 * i);
            }
            if (value != all) partly |= 1U << lane;
            if (value == 0) return;
            if (origin == kUntracked) {
                const auto first = static_cast<unsigned>(std::countr_zero(value)) / 8;
                const std::uint32_t stored = place.origins ? place.origins[first] : stored_origin_;
                origin = stored != kUntracked ? stored : origin_of_load(op, place.offset + first);
            }
            const bool extends = op.is_signed && (value & (all ^ all >> 1)) != 0;
            bits[lane] = extends ? value | ~all : value;
        });
        set_undefined(warp, tracked, k, mask, bits, origin);
    }
    for (unsigned k = 0; k < tracked.destination_count; ++k) {
        const std::uint32_t number = tracked.destinations[k];
        if (number != kUntracked) warp.copied[number] |= warp.undefined[number] & partly & mask;
    }
}

/// Lanes in which something of what a store writes is defined.
std::uint32_t Launch::partly_defined(const Warp& warp, const TrackedOp& tracked, const Op& op) {
    const std::uint64_t all = all_bits(op.lane_bytes);
    std::uint32_t lanes = 0;
    for (unsigned k = 1; k < tracked.source_count; ++k) {
        const std::uint32_t number = tracked.sources[k];
        lanes |= ~undefined_in(warp, number);
        each_lane(undefined_in(warp, number), [&](unsigned lane) {
            if ((undefined_bits_of(warp, number, lane) & all) != all) lanes |= 1U << lane;
        });
    }
    return lanes;
}

/// Local and shared memory take undefined values without a word. Returns the lanes whose value goes elsewhere.
std::uint32_t Launch::track_stored(BlockRun& block, Warp& warp, const TrackedOp& tracked, std::uint32_t index,
                                   std::uint32_t mask, const LaneAddresses& addresses, unsigned source) {
    const Op& op = program_.ops[index];
    const bool is_store = tracked.rule == DefinednessRule::Store;
    const std::uint32_t number = tracked.sources[source];
    const unsigned element = is_store ? source - 1 : 0;
    std::uint32_t visible = 0;
    each_lane(mask, [&](unsigned lane) {
        std::uint64_t bits = undefined_bits_of(warp, number, lane) & all_bits(op.lane_bytes);
        if (!is_store && bits != 0) {
            visible |= 1U << lane;
            bits = 0;
        }
        const WatchedBytes place =
            watched_bytes(block, warp, program_.events[index].space,
                          addresses[lane] + std::uint64_t{element} * op.lane_bytes, op.lane_bytes, lane);
        if (place.bits) std::memcpy(place.bits, &bits, op.lane_bytes);
        if (bits == 0) return;
        if (!place.bits) {
            visible |= 1U << lane;
        } else if (!place.origins) {
            stored_origin_ = warp.origins[number];
        }
        for (unsigned i = 0; place.origins && i < op.lane_bytes; ++i) {
            if ((bits >> 8 * i & 0xFF) != 0) place.origins[i] = warp.origins[number];
        }
    });
    return visible;
}

/// An atomic computes with what is there.
void Launch::read_by_atomic(BlockRun& block, Warp& warp, std::uint32_t index, std::uint32_t mask,
                            const LaneAddresses& addresses) {
    const Op& op = program_.ops[index];
    each_lane(mask, [&](unsigned lane) {
        const WatchedBytes place =
            watched_bytes(block, warp, program_.events[index].space, addresses[lane], op.lane_bytes, lane);
        if (!place.origins) return;
        std::uint64_t bits = 0;
        std::memcpy(&bits, place.bits, op.lane_bytes);
        if (bits == 0) return;
        const auto first = static_cast<unsigned>(std::countr_zero(bits)) / 8;
        const std::uint32_t stored = place.origins[first];
        tell_use(block, warp, 1U << lane, op.instruction, RegisterUse::InAtomic, {},
                 stored != kUntracked ? stored : origin_of_load(op, place.offset + first));
        std::memset(place.bits, 0, op.lane_bytes);
    });
}

}  // namespace gradguard::vgpu
