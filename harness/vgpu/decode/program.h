// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/vgpu/decode/definedness.h"
#include "harness/vgpu/exec/op.h"
#include "harness/vgpu/observer.h"
#include "harness/vgpu/options.h"
#include "harness/vgpu/ptx/ast.h"
#include "harness/vgpu/random.h"

namespace gradguard::vgpu::decode {

inline constexpr std::uint32_t kNoSegment = 0xFFFFFFFFU;

/// Where an operand lives: Context::base[space] + offset.
struct Place {
    std::uint32_t offset = 0;
    std::uint8_t space = 0;
};

enum class EndKind : std::uint8_t {
    Fall,     ///< Goes on in `next`.
    Branch,   ///< To `target`, or, for lanes that the predicate holds back, to `next`.
    Trap,     ///< Ends the launch with an error.
    Exit,     ///< Ends the lanes, or those that the predicate lets pass.
    Barrier,  ///< Waits, then goes on in `next`.
};

/// What bar.red does with the predicates of its threads.
enum class Reduction : std::uint8_t { None, Count, And, Or };

/// A straight run of instructions and what ends it. Paths move from segment to segment.
struct Segment {
    std::uint32_t first_op = 0;
    std::uint32_t last_op = 0;            ///< One past the last.
    std::uint32_t instruction_count = 0;  ///< PTX instructions in it, those that need no op at run time included.
    EndKind end = EndKind::Fall;
    bool conditional = false;
    bool aligned = true;  ///< Barrier: all threads of the warp must wait at the same instruction.
    bool has_thread_count = false;
    bool waits = true;            ///< Barrier: false for bar.arrive.
    bool of_warp = false;         ///< Barrier: of the lanes of a mask; `barrier` is then that.
    bool whole_warp = false;      ///< Barrier of a warp: no lane may be missing, not even one that has exited.
    std::uint32_t predicate = 0;  ///< Byte offset in the frame.
    std::uint32_t invert = 0;     ///< All ones: the condition is !p.
    std::uint32_t target = kNoSegment;
    std::uint32_t next = kNoSegment;
    std::uint32_t reconverge = kNoSegment;   ///< Immediate post-dominator of a branch; none: the lanes meet no more.
    std::uint32_t first_instruction = 0;     ///< In the entry.
    std::uint32_t end_instruction = 0;       ///< The one that ends it (for Fall: the last one).
    Place barrier;                           ///< Its number.
    Place thread_count;                      ///< Threads expected, if has_thread_count.
    std::uint32_t released_op = kNoSegment;  ///< Barrier: the op that its threads execute when it lets them pass.
    Reduction reduction = Reduction::None;   ///< Barrier: of the predicates that are the op's source.
};

/// A constant slot and how it gets its value at a launch.
struct Constant {
    enum class Kind : std::uint8_t { Literal, Param, Variable, Special };
    Kind kind = Kind::Literal;
    std::uint8_t bytes = 4;        ///< Of a lane in the slot: 4 or 8.
    std::uint8_t param_bytes = 0;  ///< Param: bytes to read, extended to the slot.
    bool sign_extend = false;
    std::uint64_t bits = 0;         ///< Literal: value. Param: offset. Special: which. Variable: offset to add.
    std::uint32_t variable = 0;     ///< Variable: index in the entry.
    std::uint32_t slot_offset = 0;  ///< In the constants.
};

/// A special register that differs between threads, warps or blocks, in a slot of the frame.
struct SpecialSlot {
    ast::SpecialRegister which;
    std::uint32_t offset;
};

/// What observers are told of an op.
struct OpEvent {
    enum class Kind : std::uint8_t { None, Memory, Fence };
    Kind kind = Kind::None;
    Space space = Space::Generic;
    AccessKind access = AccessKind::Load;
    std::uint8_t address_bytes = 8;
    Order order = Order::Weak;
    Scope scope = Scope::System;
    bool returns = true;  ///< Atomics: atom, not red.
};

/// An entry, decoded for one machine.
struct Program {
    std::vector<exec::Op> ops;
    std::vector<OpEvent> events;  ///< One for each op.
    std::vector<exec::Guard> guards;
    std::vector<Segment> segments;
    std::vector<Constant> constants;
    std::vector<SpecialSlot> specials;
    Definedness definedness;
    std::uint32_t constant_bytes = 0;
    std::uint32_t frame_bytes = 0;
    std::uint32_t fused_pairs = 0;
    std::vector<std::uint8_t> fusion_choices;  ///< Places where the seed chooses, and the ways to fuse at each.
    std::vector<std::string> approximate;      ///< Instructions, sorted.
};

/// Which of the `ways` > 0 to fuse is taken at the next place: 0 for none.
inline std::uint64_t choose_fusion(Random& random, std::uint8_t ways) { return random.below(std::uint64_t{ways} + 1); }

struct Options {
    VectorLevel level = VectorLevel::Best;
    bool flush_subnormals = false;
    bool allow_approximate = false;
    std::uint64_t fusion_seed = 0;  ///< 0: nothing is fused.
};

/// Checks and decodes entry number `entry` of the module. Throws PtxError.
std::unique_ptr<Program> decode(const ast::Module& module, const ast::Entry& entry, const Options& options);

}  // namespace gradguard::vgpu::decode
