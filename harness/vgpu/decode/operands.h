// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/vgpu/decode/ir.h"
#include "harness/vgpu/error.h"

namespace gradguard::vgpu::decode {

/// An operand letter of Row::format.
struct Letter {
    enum class Kind : std::uint8_t { Predicate, Integer, Bits, Float, Fragment };
    Kind kind;
    std::uint8_t bytes;

    SlotClass slot_class() const {
        return kind == Kind::Predicate  ? SlotClass::Predicate
               : kind == Kind::Fragment ? SlotClass::Fragment
               : bytes == 8             ? SlotClass::Double
                                        : SlotClass::Word;
    }
    static Letter of(char c);
    /// The letter of a type as ld, st and friends name it.
    static Letter of(ast::Type type);
};

/// Binds the operands of one entry's instructions: checks types and widths, makes constants and conversions.
class OperandBinder {
  public:
    OperandBinder(const ast::Module& module, const ast::Entry& entry, const exec::InstructionTable& table, Ir& ir);

    /// What follows is about this instruction; its ops go to `block`.
    void begin(const ast::Instruction& instruction, std::uint32_t index, Block& block);
    const ast::Instruction& instruction() const { return *instruction_; }

    /// "FILE:LINE: why: instruction".
    [[noreturn]] void refuse(const std::string& why) const;

    /// The value of a source operand. `wide`: a register may be wider than the letter.
    Value source(const ast::Operand& operand, Letter letter, bool wide);
    /// The register to write. With `wide`, what has to be done after the instruction waits in finish().
    Value destination(const ast::Operand& operand, Letter letter, bool wide, bool is_signed);
    /// Appends `op` under the instruction's guard, and the extensions of its destinations.
    void emit(IrOp op);
    /// Null when the table has no such row.
    const exec::Row* find(const std::string& name) const { return table_.find(name); }
    /// An op from internal or public row `name`.
    IrOp make(const char* name) const;
    /// Appends an op that only writes a fresh register, and returns that.
    Value compute(const char* name, SlotClass slot_class, std::vector<Value> sources);

    Value literal(std::uint64_t bits, std::uint8_t bytes);
    /// Address of a variable plus `offset`, in its own state space; 8 bytes, or 4 for shared ones on demand.
    Value variable_address(const ast::Operand& operand, std::int64_t offset, std::uint8_t bytes);
    const ast::Variable& variable(const ast::Operand& operand) const { return entry_.variables[operand.index]; }
    const ast::Type& type_of(const ast::Operand& operand) const { return entry_.registers[operand.index].type; }

  private:
    Value register_source(const ast::Operand& operand, Letter letter, bool wide);
    Value special_source(const ast::Operand& operand, Letter letter);
    void check_type(const ast::Operand& operand, Letter letter, bool wide) const;

    const ast::Module& module_;
    const ast::Entry& entry_;
    const exec::InstructionTable& table_;
    Ir& ir_;
    const ast::Instruction* instruction_ = nullptr;
    std::uint32_t index_ = 0;
    Block* block_ = nullptr;
    std::vector<IrOp> afterwards_;
};

}  // namespace gradguard::vgpu::decode
