// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "harness/vgpu/decode/ir.h"
#include "harness/vgpu/decode/modifiers.h"
#include "harness/vgpu/decode/operands.h"

namespace gradguard::vgpu::decode {

/// What the modifiers of an instruction say, or `otherwise`.
Scope scope_of(const Modifiers& name, Scope otherwise);
Order order_of(const Modifiers& name, Order otherwise);

/// Loads and stores: maps state space, type, vector width and hints onto the memory rows of the table.
class MemoryLowering {
  public:
    MemoryLowering(OperandBinder& binder, Ir& ir) : binder_(binder), ir_(ir) {}

    void lower_load(const Modifiers& name);
    void lower_store(const Modifiers& name);
    /// atom and red.
    void lower_atomic(const Modifiers& name);

    /// An address in shared memory without its offset, and whether it has 32 bits.
    std::pair<Value, bool> shared_address(const ast::Operand& address);
    /// An address of 64 bits, its offset added.
    Value whole_address(const ast::Operand& address, Space space);

  private:
    struct Form {
        Space space = Space::Generic;
        ast::Type type;
        std::uint8_t elements = 1;
        Order order = Order::Weak;
        Scope scope = Scope::System;
    };

    Form parse(const Modifiers& name, bool is_store) const;
    bool names_call_parameter() const;
    /// The operands without the cache policy that .L2::cache_hint adds; that is a hint.
    std::vector<ast::Operand> without_policy(const Modifiers& name) const;
    void lower_param_load(const Form& form);
    /// Operand 0 of the op, its immediate, and whether the 32-bit form is meant.
    bool bind_address(const ast::Operand& address, const Form& form, IrOp& op);
    IrOp make_access(const Form& form, const ast::Operand& address, const char* opcode);
    std::vector<ast::Operand> elements_of(const ast::Operand& operand, const Form& form) const;

    OperandBinder& binder_;
    Ir& ir_;
};

}  // namespace gradguard::vgpu::decode
