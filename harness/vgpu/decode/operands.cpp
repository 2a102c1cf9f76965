// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/decode/operands.h"

#include <algorithm>
#include <bit>

namespace gradguard::vgpu::decode {

using ast::Operand;
using ast::SpecialRegister;

Value Ir::add_constant(const Constant& constant) {
    const auto same = std::find_if(constants.begin(), constants.end(), [&](const Constant& other) {
        return other.kind == constant.kind && other.bytes == constant.bytes && other.bits == constant.bits &&
               other.param_bytes == constant.param_bytes && other.sign_extend == constant.sign_extend &&
               other.variable == constant.variable;
    });
    const auto index = static_cast<std::uint32_t>(same - constants.begin());
    if (same == constants.end()) constants.push_back(constant);
    return {Value::Kind::Constant, index};
}

Letter Letter::of(char c) {
    switch (c) {
        case 'p':
            return {Kind::Predicate, 0};
        case 'b':
            return {Kind::Integer, 1};
        case 'h':
            return {Kind::Integer, 2};
        case 'w':
            return {Kind::Integer, 4};
        case 'd':
            return {Kind::Integer, 8};
        case 'H':
            return {Kind::Bits, 2};
        case 'W':
            return {Kind::Bits, 4};
        case 'D':
            return {Kind::Bits, 8};
        case 'e':
            return {Kind::Float, 2};
        case 'f':
            return {Kind::Float, 4};
        case 'g':
            return {Kind::Float, 8};
        case 'x':
            return {Kind::Bits, 4};
        case '1':
        case '2':
        case '4':
            return {Kind::Fragment, static_cast<std::uint8_t>(4 * (c - '0'))};
        default:
            throw std::logic_error(std::string("instruction table: no operand letter ") + c);
    }
}

Letter Letter::of(ast::Type type) {
    switch (type.kind) {
        case ast::TypeKind::Predicate:
            return {Kind::Predicate, 0};
        case ast::TypeKind::Bits:
            return {Kind::Bits, type.bytes};
        case ast::TypeKind::Float:
            return {Kind::Float, type.bytes};
        default:
            return {Kind::Integer, type.bytes};
    }
}

OperandBinder::OperandBinder(const ast::Module& module, const ast::Entry& entry, const exec::InstructionTable& table,
                             Ir& ir)
    : module_(module), entry_(entry), table_(table), ir_(ir) {}

void OperandBinder::begin(const ast::Instruction& instruction, std::uint32_t index, Block& block) {
    instruction_ = &instruction;
    index_ = index;
    block_ = &block;
    afterwards_.clear();
}

void OperandBinder::refuse(const std::string& why) const {
    throw PtxError(module_.file_name, instruction_->line, why + ": " + instruction_->text);
}

IrOp OperandBinder::make(const char* name) const {
    IrOp op;
    op.row = table_.find(name);
    if (!op.row) throw std::logic_error(std::string("instruction table: no row ") + name);
    op.instruction = index_;
    return op;
}

Value OperandBinder::compute(const char* name, SlotClass slot_class, std::vector<Value> sources) {
    IrOp op = make(name);
    op.destinations = {ir_.new_register(slot_class)};
    op.sources = std::move(sources);
    const Value result = op.destinations[0];
    block_->ops.push_back(std::move(op));
    return result;
}

void OperandBinder::emit(IrOp op) {
    const auto push = [&](IrOp&& one) {
        one.instruction = index_;
        if (instruction_->guard >= 0) {
            one.guard = {Value::Kind::Register, static_cast<std::uint32_t>(instruction_->guard)};
            one.guard_negated = instruction_->guard_negated;
        }
        block_->ops.push_back(std::move(one));
    };
    push(std::move(op));
    for (IrOp& extension : afterwards_) push(std::move(extension));
    afterwards_.clear();
}

Value OperandBinder::literal(std::uint64_t bits, std::uint8_t bytes) {
    Constant constant;
    constant.bytes = bytes;
    constant.bits = bytes == 4 ? bits & 0xFFFFFFFFU : bits;
    return ir_.add_constant(constant);
}

Value OperandBinder::variable_address(const Operand& operand, std::int64_t offset, std::uint8_t bytes) {
    const ast::Variable& named = variable(operand);
    const auto shift = static_cast<std::uint64_t>(offset);
    if (named.space == Space::Shared || named.space == Space::Local) return literal(named.offset_bytes + shift, bytes);
    if (bytes != 8) refuse("the address of '" + named.name + "' needs a 64-bit register");
    Constant constant;
    constant.kind = Constant::Kind::Variable;
    constant.bytes = 8;
    constant.variable = operand.index;
    constant.bits = shift;
    return ir_.add_constant(constant);
}

void OperandBinder::check_type(const Operand& operand, Letter letter, bool wide) const {
    const ast::Register& reg = entry_.registers[operand.index];
    const bool is_predicate = reg.type.kind == ast::TypeKind::Predicate;
    if (is_predicate != (letter.kind == Letter::Kind::Predicate)) refuse("'" + reg.name + "' is of the wrong type");
    if (is_predicate) return;
    const bool is_float = reg.type.kind == ast::TypeKind::Float;
    const bool fits_kind = letter.kind == Letter::Kind::Bits || reg.type.kind == ast::TypeKind::Bits ||
                           is_float == (letter.kind == Letter::Kind::Float);
    const bool may_be_wider = wide && letter.kind != Letter::Kind::Float && !is_float;
    const bool is_byte = letter.bytes == 1 && reg.type.bytes == 2;  // there are no smaller registers
    const bool fits_size = may_be_wider || is_byte ? reg.type.bytes >= letter.bytes : reg.type.bytes == letter.bytes;
    if (!fits_kind || !fits_size) refuse("'" + reg.name + "' is of the wrong type");
}

Value OperandBinder::register_source(const Operand& operand, Letter letter, bool wide) {
    check_type(operand, letter, wide);
    Value value{Value::Kind::Register, operand.index};
    if (operand.negated) return compute("not.pred", SlotClass::Predicate, {value});
    if (letter.bytes < 8 && type_of(operand).bytes == 8) return compute("%low.b64", SlotClass::Word, {value});
    return value;
}

namespace {

bool is_of_launch(SpecialRegister which) {
    return (which >= SpecialRegister::NtidX && which <= SpecialRegister::NtidZ) ||
           (which >= SpecialRegister::NctaidX && which <= SpecialRegister::NctaidZ) ||
           (which >= SpecialRegister::NsmId && which <= SpecialRegister::ClusterBlocks) ||
           which == SpecialRegister::NwarpId;
}
bool is_read_anew(SpecialRegister which) { return which >= SpecialRegister::SmId; }
bool has_64_bits(SpecialRegister which) {
    return which == SpecialRegister::Clock64 || which == SpecialRegister::GlobalTimer ||
           which == SpecialRegister::GridId;
}

}  // namespace

Value OperandBinder::special_source(const Operand& operand, Letter letter) {
    const SpecialRegister which = operand.special;
    // %gridid had 32 bits once, and ptxas still takes it so (PTX ISA "Special Registers: %gridid").
    const bool fits =
        letter.bytes == (has_64_bits(which) ? 8 : 4) || (which == SpecialRegister::GridId && letter.bytes == 4);
    if (!fits || letter.kind == Letter::Kind::Float)
        refuse(has_64_bits(which) ? "this special register has 64 bits" : "special registers have 32 bits");
    const std::uint8_t bytes = letter.bytes;
    if (is_read_anew(which)) {
        IrOp op = make(bytes == 8 ? "%special.u64" : "%special.u32");
        op.immediate = static_cast<std::int32_t>(which);
        op.destinations = {ir_.new_register(letter.slot_class())};
        const Value value = op.destinations[0];
        block_->ops.push_back(std::move(op));
        return value;
    }
    if (!is_of_launch(which)) return {Value::Kind::Special, static_cast<std::uint32_t>(which)};
    Constant constant;
    constant.kind = Constant::Kind::Special;
    constant.bytes = bytes;
    constant.bits = static_cast<std::uint64_t>(which);
    return ir_.add_constant(constant);
}

Value OperandBinder::source(const Operand& operand, Letter letter, bool wide) {
    const bool is_float = letter.kind == Letter::Kind::Float;
    const std::uint8_t slot_bytes = letter.bytes == 8 ? 8 : 4;
    switch (operand.kind) {
        case Operand::Kind::Register:
            return register_source(operand, letter, wide);
        case Operand::Kind::Special:
            return special_source(operand, letter);
        case Operand::Kind::Integer:
            if (is_float || letter.kind == Letter::Kind::Predicate) break;
            return literal(operand.bits, slot_bytes);
        case Operand::Kind::Float32:
            if (letter.bytes != 4 || letter.kind == Letter::Kind::Integer) break;
            return literal(operand.bits, 4);
        case Operand::Kind::Float64:
            if (letter.bytes == 8 && letter.kind != Letter::Kind::Integer) return literal(operand.bits, 8);
            if (letter.bytes == 4 && is_float) {
                const auto narrow = static_cast<float>(std::bit_cast<double>(operand.bits));
                return literal(std::bit_cast<std::uint32_t>(narrow), 4);
            }
            break;
        case Operand::Kind::Variable:
            if (is_float || letter.bytes < 4) break;
            return variable_address(operand, operand.offset, slot_bytes);
        default:
            break;
    }
    refuse("an operand is of the wrong kind");
}

Value OperandBinder::destination(const Operand& operand, Letter letter, bool wide, bool is_signed) {
    if (operand.kind == Operand::Kind::Sink) return ir_.new_register(letter.slot_class());
    if (operand.kind != Operand::Kind::Register || operand.negated) refuse("the destination must be a register");
    check_type(operand, letter, wide);
    const Value target{Value::Kind::Register, operand.index};
    if (letter.bytes == 8 || letter.kind == Letter::Kind::Predicate || type_of(operand).bytes != 8) return target;
    IrOp extension = make(is_signed ? "%widen.s32" : "%widen.u32");
    extension.destinations = {target};
    extension.sources = {ir_.new_register(SlotClass::Word)};
    const Value narrow = extension.sources[0];
    afterwards_.push_back(std::move(extension));
    return narrow;
}

}  // namespace gradguard::vgpu::decode
