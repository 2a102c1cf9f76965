// SPDX-License-Identifier: Apache-2.0
// Which bits of a result are undefined, by DefinednessRule.
#include <algorithm>
#include <cstring>

#include "harness/vgpu/launch.h"
#include "harness/vgpu/undefined_bits.h"

namespace gradguard::vgpu {

using decode::DefinednessRule;
using decode::TrackedOp;
using exec::kLanes;
using exec::Op;

namespace {

constexpr std::uint32_t kScratchSlotBytes = kLanes * 8;

/// Where values of so many bytes lie in their slot, lane by lane.
constexpr std::size_t stride_of(std::uint8_t bytes) { return bytes == 8 ? 8 : 4; }

}  // namespace

/// What an operand holds; a predicate: all bits or none.
std::uint64_t Launch::operand_value(const Op& op, unsigned operand, std::uint8_t bytes, unsigned lane) const {
    const std::byte* const slot = context_.base[op.space[operand]] + op.offset[operand];
    std::uint64_t value = 0;
    if (bytes != 0) {
        std::memcpy(&value, slot + lane * stride_of(bytes), bytes);
        return value;
    }
    std::uint32_t predicate;
    std::memcpy(&predicate, slot, sizeof(predicate));
    return (predicate >> lane & 1U) != 0 ? ~std::uint64_t{0} : 0;
}

/// selp, and, or: defined operands decide which undefined ones count.
Launch::LaneBits Launch::decided_by_bits(const Warp& warp, const TrackedOp& tracked, const Op& op,
                                         std::uint32_t mask) const {
    LaneBits result{};
    const unsigned first = tracked.destination_count;
    each_lane(mask, [&](unsigned lane) {
        const std::uint64_t a = undefined_bits_of(warp, tracked.sources[0], lane);
        const std::uint64_t b = undefined_bits_of(warp, tracked.sources[1], lane);
        if (tracked.rule == DefinednessRule::Select) {
            const bool is_open = undefined_bits_of(warp, tracked.sources[2], lane) != 0;
            result[lane] = is_open ? ~std::uint64_t{0} : operand_value(op, first + 2, 0, lane) != 0 ? a : b;
            return;
        }
        if ((a | b) == 0) return;
        // What lets the other operand through: ones of an and, zeros of an or.
        const std::uint64_t flip = tracked.rule == DefinednessRule::And ? 0 : ~std::uint64_t{0};
        const std::uint64_t through_a = operand_value(op, first, tracked.source_bytes[0], lane) ^ flip;
        const std::uint64_t through_b = operand_value(op, first + 1, tracked.source_bytes[1], lane) ^ flip;
        result[lane] = (a & b) | (a & through_b) | (b & through_a);
    });
    return result;
}

/// Runs an op whose result lies in the first scratch slot.
Launch::LaneBits Launch::run_on_bits(const Op& op, std::uint8_t result_bytes) {
    const std::byte* const out = context_.base[0] + program_.definedness.scratch;
    std::memset(context_.base[0] + program_.definedness.scratch, 0, kScratchSlotBytes);
    (op.guard ? op.guard->masked : op.masked)(context_, op);
    LaneBits result{};
    for (unsigned i = 0; i < kLanes; ++i)
        std::memcpy(&result[i], out + i * stride_of(result_bytes), stride_of(result_bytes));
    return result;
}

/// Puts the undefined bits of its sources in their place: a mask goes the way of the value.
Launch::LaneBits Launch::moved_bits(const Warp& warp, const TrackedOp& tracked, const Op& op, std::uint32_t mask) {
    std::uint32_t open = 0;  // it is not known how bits move
    for (unsigned k = tracked.moved_sources; k < tracked.source_count; ++k)
        open |= undefined_in(warp, tracked.sources[k]);
    Op moves = op;
    moves.space[0] = 0;
    moves.offset[0] = program_.definedness.scratch;
    for (unsigned k = 0; k < tracked.moved_sources; ++k) {
        const std::uint32_t place = program_.definedness.scratch + (k + 1) * kScratchSlotBytes;
        const std::size_t stride = stride_of(tracked.source_bytes[k]);
        for (unsigned i = 0; i < kLanes; ++i) {
            const std::uint64_t bits = undefined_bits_of(warp, tracked.sources[k], i);
            std::memcpy(context_.base[0] + place + i * stride, &bits, stride);
        }
        moves.space[tracked.destination_count + k] = 0;
        moves.offset[tracked.destination_count + k] = place;
    }
    LaneBits result = run_on_bits(moves, tracked.destination_bytes[0]);
    each_lane(open & mask, [&](unsigned lane) { result[lane] = ~std::uint64_t{0}; });
    return result;
}

Launch::LaneBits Launch::shuffled_bits(const Warp& warp, const TrackedOp& tracked, const Op& op, std::uint32_t mask) {
    const std::uint32_t scratch = program_.definedness.scratch;
    for (unsigned i = 0; i < kLanes; ++i) {
        const auto bits = static_cast<std::uint32_t>(undefined_bits_of(warp, tracked.sources[0], i));
        std::memcpy(context_.base[0] + scratch + kScratchSlotBytes + 4 * i, &bits, sizeof(bits));
    }
    Op moves = op;
    const std::uint32_t places[3] = {scratch, scratch + 2 * kScratchSlotBytes, scratch + kScratchSlotBytes};
    for (unsigned operand = 0; operand < 3; ++operand) {  // result, whether in range, value
        moves.space[operand] = 0;
        moves.offset[operand] = places[operand];
    }
    LaneBits result = run_on_bits(moves, 4);
    const std::uint32_t open = undefined_in(warp, tracked.sources[1]) | undefined_in(warp, tracked.sources[2]);
    each_lane(open & mask, [&](unsigned lane) { result[lane] = ~std::uint64_t{0}; });
    return result;
}

Launch::LaneBits Launch::undefined_result(const Warp& warp, const TrackedOp& tracked, const Op& op,
                                          std::uint32_t mask) {
    LaneBits result{};
    switch (tracked.rule) {
        case DefinednessRule::Select:
        case DefinednessRule::And:
        case DefinednessRule::Or:
            return decided_by_bits(warp, tracked, op, mask);
        case DefinednessRule::Bits:
            return moved_bits(warp, tracked, op, mask);
        case DefinednessRule::Shuffle:
            return shuffled_bits(warp, tracked, op, mask);
        case DefinednessRule::Warp:
            std::fill(result.begin(), result.end(), ~std::uint64_t{0});
            return result;
        case DefinednessRule::Barrier:
            return result;
        default:
            break;
    }
    for (unsigned k = 0; k < tracked.source_count; ++k) {
        each_lane(undefined_in(warp, tracked.sources[k]) & mask, [&](unsigned lane) {
            const bool is_bitwise = tracked.rule == DefinednessRule::Bitwise;
            result[lane] |= is_bitwise ? undefined_bits_of(warp, tracked.sources[k], lane) : ~std::uint64_t{0};
        });
    }
    return result;
}

}  // namespace gradguard::vgpu
