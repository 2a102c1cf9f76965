// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/vgpu/exec/op.h"

/// Which registers of a program can hold something that nobody wrote, and what has to be watched to know.
///
/// Compilers copy, select and even compute with registers that nobody wrote, and throw the result away. So that is no
/// finding: it makes the result undefined, lane by lane. A finding is the use of such a value where it matters: as
/// address, as guard or condition of a branch, as operand of a barrier or of an atomic, and as what a store makes
/// visible in global memory. Local and shared memory hand undefined values on.
///
/// Undefined values come from registers that are read before they are written, which are those alive where threads
/// begin, and from local memory, of which nothing is defined when a thread begins: unoptimised code copies structs of
/// which a part was never set. Only these registers, what is loaded from local memory, and what is computed from them
/// are tracked. In most programs there is nothing of both, and then watching costs nothing. Arguments and results of
/// calls, which the decoder keeps in local memory, count as defined unless something undefined was stored there.
///
/// What is known of a tracked register is which of its bits are undefined: structs are copied by words of which a part
/// is padding or a member that was never set, and the others are taken out of the word later, by shifts and masks.
/// For the same reason a store in global memory of what a load gave, unchanged, is no finding when a part of it is
/// defined: nobody can tell padding. What lies in global memory counts as defined for those who read it.
namespace gradguard::vgpu::decode {

inline constexpr std::uint32_t kUntracked = 0xFFFFFFFFU;
/// Slots of doubles that Definedness::scratch has room for: a result, two sources, a predicate.
inline constexpr std::uint32_t kScratchSlots = 4;

enum class DefinednessRule : std::uint8_t {
    All,      ///< The results are undefined where any source is.
    Select,   ///< selp: where the chosen one is, or the choice.
    Bitwise,  ///< Bits that are undefined in any source: moves, not, xor.
    And,      ///< The same, but 0 and anything is 0.
    Or,       ///< The same, but 1 or anything is 1.
    Bits,     ///< Moves bits: what the op itself makes of masks of undefined bits. Shifts, packing, permutations.
    Warp,     ///< In all lanes if a source is in any: vote, match, redux.
    Shuffle,  ///< Bits that are undefined in the lane that it comes from.
    Load,     ///< Sources: the address.
    Store,    ///< The address, then what is stored.
    Atomic,   ///< The same. What is in memory counts as defined.
    Barrier,  ///< The predicate that a barrier reduces.
    Copy,     ///< cp.async and the like: addresses, sizes and predicates, all of which matter.
};

/// An op that touches tracked registers. Operands are numbers of Definedness::registers or kUntracked.
struct TrackedOp {
    DefinednessRule rule = DefinednessRule::All;
    std::uint8_t source_count = 0;
    std::uint8_t destination_count = 0;
    /// Bits: how many sources have bits that it moves; the rest say how. Bitwise: 1 for a move, else 0.
    std::uint8_t moved_sources = 0;
    std::uint32_t guard = kUntracked;
    std::array<std::uint32_t, exec::kMaxOperands> sources{};
    std::array<std::uint32_t, exec::kMaxOperands> destinations{};
    /// Sizes; 0: a predicate.
    std::array<std::uint8_t, exec::kMaxOperands> source_bytes{};
    std::array<std::uint8_t, exec::kMaxOperands> destination_bytes{};
};

struct TrackedRegister {
    std::uint32_t index = 0;  ///< In the entry; beyond its registers: made by the decoder.
    bool undefined_at_start = false;
};

/// What ends a segment, as far as it reads tracked registers, and how many registers are read in it.
struct TrackedSegment {
    std::uint32_t predicate = kUntracked;
    std::uint32_t barrier = kUntracked;
    std::uint32_t thread_count = kUntracked;
    std::uint32_t register_reads = 0;  ///< By each lane, tracked or not.
    bool has_ops = false;
};

struct Definedness {
    std::vector<TrackedRegister> registers;
    std::vector<TrackedOp> ops;
    std::vector<std::uint32_t> of_op;      ///< By op: 1 + index in `ops`, 0: touches none. Empty when all are 0.
    std::vector<TrackedSegment> segments;  ///< By segment.
    bool through_local = false;            ///< Undefined values may lie in local memory.
    bool through_shared = false;
    std::uint32_t scratch = 0;  ///< Offset of kScratchSlots slots in the frame.
};

}  // namespace gradguard::vgpu::decode
