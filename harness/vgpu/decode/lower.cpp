// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/decode/lowering.h"

#include <algorithm>
#include <cstring>

namespace gradguard::vgpu::decode {

using ast::Operand;

Ir Lowering::run() {
    for (const ast::Register& reg : entry_.registers) ir_.registers.push_back(Letter::of(reg.type).slot_class());
    ir_.local_bytes = entry_.local_bytes;
    find_leaders();
    for (std::uint32_t i = 0; i < entry_.instructions.size(); ++i) lower(i);
    start_block(static_cast<std::uint32_t>(entry_.instructions.size()));
    block().segment.end = EndKind::Exit;  // running off the end
    for (Block& each : ir_.blocks) {
        if (each.segment.end == EndKind::Branch) each.segment.target = block_at_[each.segment.target];
    }
    return std::move(ir_);
}

void Lowering::find_leaders() {
    leads_.assign(entry_.instructions.size() + 1, false);
    block_at_.assign(entry_.instructions.size() + 1, kNoSegment);
    leads_[0] = true;
    leads_.back() = true;
    for (const ast::Instruction& instruction : entry_.instructions) {
        for (const Operand& operand : instruction.operands) {
            if (operand.kind == Operand::Kind::Label) leads_[entry_.labels[operand.index].position] = true;
        }
    }
}

/// A block that begins with instruction `position`; the one before falls through to it.
void Lowering::start_block(std::uint32_t position) {
    const auto number = static_cast<std::uint32_t>(ir_.blocks.size());
    if (number > 0) {
        Segment& before = block().segment;
        const bool goes_on = before.end == EndKind::Fall || before.end == EndKind::Barrier || before.conditional;
        if (goes_on && before.next == kNoSegment) before.next = number;
    }
    ir_.blocks.emplace_back();
    block().segment.first_instruction = position;
    block().segment.end_instruction = position;
    if (position < block_at_.size() && block_at_[position] == kNoSegment) block_at_[position] = number;
    leads_next_ = false;
}

void Lowering::lower(std::uint32_t index) {
    const ast::Instruction& instruction = entry_.instructions[index];
    if (leads_[index] || leads_next_) start_block(index);
    Segment& segment = block().segment;
    segment.end_instruction = index;
    ++segment.instruction_count;
    binder_.begin(instruction, index, block());
    const Modifiers name(instruction.name);
    const std::string_view opcode = name.opcode();
    if (opcode == "bra") return lower_branch(name);
    if (opcode == "brx") return lower_indexed_branch();
    if (opcode == "ret" || opcode == "exit" || opcode == "trap" || opcode == "brkpt") return lower_exit(name);
    if (opcode == "bar" || opcode == "barrier") return lower_barrier(name);
    if (opcode == "ld" || opcode == "ldu") return memory_.lower_load(name);
    if (opcode == "st") return memory_.lower_store(name);
    if (opcode == "atom" || opcode == "red") return memory_.lower_atomic(name);
    if (opcode == "setp") return lower_compare(name);
    if (opcode == "set") return lower_set(name);
    if (opcode == "slct") return lower_select_by_sign(name);
    if (opcode == "madc" || (opcode == "mad" && instruction.name.find(".cc.") != std::string::npos))
        return lower_mad_with_carry(name);
    if (opcode == "mov") return lower_move(name);
    if (opcode == "cp") return lower_copy(name);
    if (opcode == "prefetch" || opcode == "prefetchu" || opcode == "discard" || opcode == "applypriority")
        return lower_cache_hint(name);
    if (opcode == "createpolicy") return lower_create_policy(name);
    if (opcode == "mma") return lower_matrix_operation();
    const exec::Row* const row = find_any_spelling(instruction.name);
    if (row && (row->flags & exec::kWarp) != 0) return lower_warp_operation(*row);
    lower_by_row(row ? row->name : instruction.name, instruction.operands);
}

void Lowering::refuse_name() const {
    const std::string& name = binder_.instruction().name;
    binder_.refuse("instruction '" + name + "' is not supported");
}

/// Known, but it has an error bound in place of a result.
void Lowering::refuse_approximate() const {
    binder_.refuse("approximate instruction '" + binder_.instruction().name +
                   "' is refused unless asked for (ptx --allow-approximate)");
}

/// ptxas takes modifiers in any order (CUB writes vote.ballot.sync.b32, the manual vote.sync.ballot.b32), and .sat
/// where a conversion to an integer clamps anyway.
const exec::Row* Lowering::find_any_spelling(const std::string& name) const {
    if (const exec::Row* row = table_.find(name)) return row;
    if (const exec::Row* row = table_.find_reordered(name)) return row;
    const Modifiers parts(name);
    const std::size_t sat = name.find(".sat.");
    if (parts.opcode() != "cvt" || parts.size() < 4 || sat == std::string::npos) return nullptr;
    const auto to = ast::parse_type(parts[parts.size() - 2]), from = ast::parse_type(parts[parts.size() - 1]);
    if (!to || !from || to->kind == ast::TypeKind::Float || from->kind != ast::TypeKind::Float) return nullptr;
    return table_.find_reordered(std::string(name).erase(sat, 4));
}

/// The row of a PTX name; with flushing on request, its .ftz form where there is one.
const exec::Row* Lowering::find_row(const std::string& name) const {
    const exec::Row* row = table_.find(name);
    if (!row || (row->flags & exec::kInternal) != 0) return nullptr;
    if (!options_.flush_subnormals || name.find("f32") == std::string::npos || name.find(".ftz") != std::string::npos)
        return row;
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
        std::string flushing = name;
        if (const exec::Row* found = table_.find(flushing.insert(dot, ".ftz"))) return found;
    }
    return row;
}

void Lowering::lower_by_row(const std::string& name, const std::vector<Operand>& operands) {
    const exec::Row* row = find_row(name);
    if (!row) refuse_name();
    if ((row->flags & exec::kApproximate) != 0) {
        if (!options_.allow_approximate) refuse_approximate();
        ir_.approximate.insert(row->name);
    }
    const char* format = row->format;
    const bool wide = *format == '~';
    if (wide) ++format;
    const char* equals = std::strchr(format, '=');
    const auto destinations = equals - format;
    std::string letters(format);
    std::erase_if(letters, [](char letter) { return letter == 'c' || letter == '='; });
    if (operands.size() != letters.size()) binder_.refuse("wrong number of operands");
    IrOp op = binder_.make(row->name);
    const bool is_signed = wide && Modifiers(name).destination_is_signed();
    auto operand = operands.begin() + (std::find(format, equals, 'c') == equals ? destinations : destinations - 1);
    for (const char* letter = equals + 1; *letter != 0; ++letter)
        op.sources.push_back(*letter == 'c' ? carry() : binder_.source(*operand++, Letter::of(*letter), wide));
    operand = operands.begin();
    for (const char* letter = format; letter != equals; ++letter) {
        op.destinations.push_back(
            *letter == 'c' ? carry() : binder_.destination(*operand++, Letter::of(*letter), wide, is_signed));
    }
    const bool orders = name.find(".proxy.") == std::string::npos;
    if (orders && (name.compare(0, 6, "membar") == 0 || name.compare(0, 5, "fence") == 0)) {
        op.event.kind = OpEvent::Kind::Fence;
        op.event.scope = scope_of(Modifiers(name), Scope::Gpu);
    }
    binder_.emit(std::move(op));
}

void Lowering::lower_move(const Modifiers& name) {
    const ast::Instruction& instruction = binder_.instruction();
    const std::vector<Operand>& operands = instruction.operands;
    if (operands.size() == 2 && operands[0].kind == Operand::Kind::Vector) return lower_unpack(name);
    if (operands.size() == 2 && operands[1].kind == Operand::Kind::Vector) return lower_pack(name);
    if (instruction.name == "mov.pred" && operands.size() == 2 && operands[1].kind == Operand::Kind::Integer) {
        IrOp op = binder_.make(operands[1].bits != 0 ? "%pred.true" : "%pred.false");
        op.destinations = {binder_.destination(operands[0], Letter::of('p'), false, false)};
        return binder_.emit(std::move(op));
    }
    lower_by_row(instruction.name, operands);
}

void Lowering::lower_pack(const Modifiers& name) {
    const std::vector<Operand>& operands = binder_.instruction().operands;
    const std::vector<Operand>& parts = operands[1].elements;
    const bool to_word = name.is_any_of({"mov.b32"}) && parts.size() == 2;
    const bool to_double = name.is_any_of({"mov.b64"}) && (parts.size() == 2 || parts.size() == 4);
    if (!to_word && !to_double) refuse_name();
    const Letter letter = Letter::of(to_double && parts.size() == 2 ? 'W' : 'H');
    std::vector<Value> values;
    for (const Operand& part : parts) values.push_back(binder_.source(part, letter, false));
    if (values.size() == 4) {
        values = {binder_.compute("%pack.b32", SlotClass::Word, {values[0], values[1]}),
                  binder_.compute("%pack.b32", SlotClass::Word, {values[2], values[3]})};
    }
    IrOp op = binder_.make(to_word ? "%pack.b32" : "%pack.b64");
    op.sources = std::move(values);
    op.destinations = {binder_.destination(operands[0], Letter::of(to_word ? 'W' : 'D'), false, false)};
    binder_.emit(std::move(op));
}

void Lowering::lower_unpack(const Modifiers& name) {
    const std::vector<Operand>& operands = binder_.instruction().operands;
    const std::vector<Operand>& parts = operands[0].elements;
    const bool from_word = name.is_any_of({"mov.b32"}) && parts.size() == 2;
    const bool from_double = name.is_any_of({"mov.b64"}) && (parts.size() == 2 || parts.size() == 4);
    if (!from_word && !from_double) refuse_name();
    // The source is copied first: it may be one of the parts.
    const Value whole = binder_.source(operands[1], Letter::of(from_word ? 'W' : 'D'), false);
    std::vector<Value> pieces = {whole};
    if (from_double) {
        pieces = {binder_.compute("%low.b64", SlotClass::Word, {whole}),
                  binder_.compute("%high.b64", SlotClass::Word, {whole})};
    }
    if (from_word || parts.size() == 4) {
        std::vector<Value> halves;
        for (const Value& piece : pieces) {
            halves.push_back(binder_.compute("%low.b32", SlotClass::Word, {piece}));
            halves.push_back(binder_.compute("%high.b32", SlotClass::Word, {piece}));
        }
        pieces = std::move(halves);
    }
    const Letter letter = Letter::of(from_double && parts.size() == 2 ? 'W' : 'H');
    for (std::size_t i = 0; i < parts.size(); ++i) {
        IrOp op = binder_.make(letter.bytes == 4 ? "mov.b32" : "mov.b16");
        op.sources = {pieces[i]};
        op.destinations = {binder_.destination(parts[i], letter, false, false)};
        binder_.emit(std::move(op));
    }
}

Ir lower(const ast::Module& module, const ast::Entry& entry, const exec::InstructionTable& table,
         const Options& options) {
    return Lowering(module, entry, table, options).run();
}

std::unique_ptr<Program> decode(const ast::Module& module, const ast::Entry& entry, const Options& options) {
    const exec::InstructionTable& table = exec::InstructionTable::of(options.level);
    Ir ir = lower(module, entry, table, options);
    find_reconvergence(ir);
    remove_copies(ir);
    fuse_pairs(ir, table, options.fusion_seed);
    return assign_slots(ir);
}

}  // namespace gradguard::vgpu::decode
