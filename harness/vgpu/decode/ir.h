// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/vgpu/decode/program.h"
#include "harness/vgpu/exec/instruction_table.h"
#include "harness/vgpu/exec/op.h"
#include "harness/vgpu/ptx/ast.h"

/// Between syntax and program: instructions bound to rows of the table, on virtual registers.
namespace gradguard::vgpu::decode {

/// How registers are stored.
enum class SlotClass : std::uint8_t { Predicate, Word, Double, Fragment };
inline constexpr std::size_t kSlotClasses = 4;

struct Value {
    enum class Kind : std::uint8_t { None, Register, Constant, Special };
    Kind kind = Kind::None;
    std::uint32_t index = 0;

    bool operator==(const Value&) const = default;
    bool is_register() const { return kind == Kind::Register; }
};

struct IrOp {
    const exec::Row* row = nullptr;
    std::uint32_t instruction = 0;
    Value guard;  ///< A predicate register or None.
    bool guard_negated = false;
    bool when_released = false;  ///< The last op of its block: runs when the barrier that ends that lets pass.
    std::vector<Value> destinations;
    std::vector<Value> sources;  ///< Memory: the address first.
    // Memory only.
    bool is_memory = false;
    OpEvent event;
    std::uint8_t lane_bytes = 0;
    std::uint8_t elements = 0;
    bool is_signed = false;
    std::int32_t immediate = 0;
};

/// A segment before slots are known.
struct Block {
    std::vector<IrOp> ops;
    Segment segment;  ///< target, next: block numbers.
    Value predicate;
    Value barrier;
    Value thread_count;
};

struct Ir {
    std::vector<SlotClass> registers;  ///< Those of the entry first, then temporaries.
    std::vector<Block> blocks;         ///< The first is where threads begin.
    std::vector<Constant> constants;
    std::uint32_t fused_pairs = 0;
    std::uint32_t local_bytes = 0;  ///< Of a thread.
    std::vector<std::uint8_t> fusion_choices;
    std::set<std::string> approximate;

    Value new_register(SlotClass slot_class) {
        registers.push_back(slot_class);
        return {Value::Kind::Register, static_cast<std::uint32_t>(registers.size() - 1)};
    }
    /// The constant slot that is like `constant`, made if need be.
    Value add_constant(const Constant& constant);
};

/// Everything a pass wants to know of a block's successors.
std::vector<std::uint32_t> successors(const Segment& segment);

/// lower.cpp: syntax to IR. Throws PtxError for what the table does not know and for operands that do not fit.
Ir lower(const ast::Module& module, const ast::Entry& entry, const exec::InstructionTable& table,
         const Options& options);

/// control_flow.cpp: fills Segment::reconverge.
void find_reconvergence(Ir& ir);
/// Immediate dominators; kNoSegment where a block cannot be reached from `root`.
std::vector<std::uint32_t> immediate_dominators(const std::vector<std::vector<std::uint32_t>>& edges,
                                                std::uint32_t root);

/// aliases.cpp: uses what a move copies in place of the copy, where neither can change in between.
void remove_copies(Ir& ir);

/// fusion.cpp: fuses pairs of un-rounded mul and add, chosen by the seed.
void fuse_pairs(Ir& ir, const exec::InstructionTable& table, std::uint64_t seed);

/// definedness.cpp: what has to be watched to find uses of registers that nobody wrote. `alive_at_start`: by register,
/// whether it may be read before it is written.
Definedness find_undefined(const Ir& ir, const std::vector<bool>& alive_at_start);

/// slots.cpp: liveness and slots; gives the final program.
std::unique_ptr<Program> assign_slots(const Ir& ir);

}  // namespace gradguard::vgpu::decode
