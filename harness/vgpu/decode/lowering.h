// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "harness/vgpu/decode/ir.h"
#include "harness/vgpu/decode/lower_memory.h"
#include "harness/vgpu/decode/modifiers.h"
#include "harness/vgpu/decode/operands.h"

namespace gradguard::vgpu::decode {

/// Turns one entry into IR, instruction by instruction.
class Lowering {
  public:
    Lowering(const ast::Module& module, const ast::Entry& entry, const exec::InstructionTable& table,
             const Options& options)
        : entry_(entry), table_(table), options_(options), binder_(module, entry, table, ir_), memory_(binder_, ir_) {}

    Ir run();

  private:
    Block& block() { return ir_.blocks.back(); }

    // lower.cpp
    void find_leaders();
    /// A block that begins with instruction `position`; the one before falls through to it.
    void start_block(std::uint32_t position);
    void lower(std::uint32_t index);
    [[noreturn]] void refuse_name() const;
    [[noreturn]] void refuse_approximate() const;
    const exec::Row* find_row(const std::string& name) const;
    const exec::Row* find_any_spelling(const std::string& name) const;
    void lower_by_row(const std::string& name, const std::vector<ast::Operand>& operands);
    void lower_move(const Modifiers& name);
    void lower_pack(const Modifiers& name);
    void lower_unpack(const Modifiers& name);

    // lower_select.cpp
    void lower_compare(const Modifiers& name);
    /// The first result of a comparison and, for packed halves, the second.
    std::vector<Value> compare(const exec::Row& row, const ast::Operand& a, const ast::Operand& b);
    void write_predicate(const ast::Operand& target, const Value& value);
    void lower_set(const Modifiers& name);
    void lower_select_by_sign(const Modifiers& name);
    void lower_mad_with_carry(const Modifiers& name);
    /// The carry of add.cc and its like: a register that no program names.
    Value carry();

    // lower_control.cpp
    void set_condition();
    void lower_branch(const Modifiers& name);
    void lower_indexed_branch();
    void lower_exit(const Modifiers& name);
    Value barrier_operand(const ast::Operand& operand, std::uint64_t limit);
    /// Lanes that the guard of the instruction holds back go round what follows, in a block of its own.
    void go_round();
    void lower_barrier(const Modifiers& name);
    void lower_barrier_reduction(const Modifiers& name);
    void wait_at(const ast::Operand& barrier, const ast::Operand* thread_count);
    /// shfl, vote, match, redux: waits for its members, then all of them execute it together.
    void lower_warp_operation(const exec::Row& row);

    // lower_matrix.cpp
    /// mma: as a warp operation, on fragments that are made of its registers before and taken apart afterwards.
    void lower_matrix_operation();
    Value gather(const ast::Operand& operand, std::size_t words);

    // lower_async.cpp
    void lower_copy(const Modifiers& name);
    void lower_wait_for_groups();
    void take_policy(std::vector<ast::Operand>& operands);
    void lower_cache_hint(const Modifiers& name);
    void lower_create_policy(const Modifiers& name);

    const ast::Entry& entry_;
    const exec::InstructionTable& table_;
    const Options& options_;
    Ir ir_;
    OperandBinder binder_;
    MemoryLowering memory_;
    std::vector<bool> leads_;
    std::vector<std::uint32_t> block_at_;  ///< By instruction: the block that begins there.
    bool leads_next_ = false;
    Value carry_;
};

}  // namespace gradguard::vgpu::decode
