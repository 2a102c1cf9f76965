// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/model.h"

/// Micro-PTX: a module for one instruction. Each entry loads the operands of each thread, runs the instruction once in
/// one of its forms and stores what it returned.
///
/// Entry parameters: .u64 in, .u64 out, .u64 stride. Memory is in cells of 64 bits: operand k of thread i of the grid
/// is the low bits of in[k * stride / 8 + i], result k goes to out[k * stride / 8 + i]. After the sources come the
/// guard (0 or 1) or the member mask, then the old values of the results.
namespace gradguard::conformance {

/// One way to write the instruction.
struct Form {
    enum class Guard : std::uint8_t { None, If, IfNot };
    std::string entry;
    Guard guard = Guard::None;
    int alias = -1;                             ///< This source's register is the first result's too.
    bool wide = false;                          ///< 64-bit registers where wider ones are allowed.
    bool without_second_result = false;         ///< "p" instead of "p|q".
    bool negated_source = false;                ///< "!p" for the last source.
    bool partial_warp = false;                  ///< Warp: only the lanes of the member mask execute it.
    std::vector<std::optional<Bits>> literals;  ///< By source; nothing: a register.
};

/// All forms to test; those of one instruction differ in their entries. Shape::Lane and Shape::Warp.
std::vector<Form> forms_of(const InstructionModel& model);

/// The whole module. `target` and `version` as in "sm_80" and "8.0".
std::string micro_ptx(const InstructionModel& model, const std::vector<Form>& forms);

/// Position of the guard (or member mask) among the input cells, and of the old value of result `k`.
std::size_t guard_cell(const InstructionModel& model);
std::size_t old_cell(const InstructionModel& model, std::size_t k);
std::size_t input_cells(const InstructionModel& model);

/// Size of the register that holds source or result `k` in a form; 1: a predicate.
int source_register_bits(const InstructionModel& model, const Form& form, std::size_t k);
int result_register_bits(const InstructionModel& model, const Form& form, std::size_t k);

/// A literal of the operand's type.
std::string literal_text(const OperandKind& kind, Bits bits);

/// ".version", ".target" and ".address_size" lines that suit the instruction.
std::string module_head(const std::string& instruction);

}  // namespace gradguard::conformance
