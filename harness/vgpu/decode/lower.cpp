// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "harness/vgpu/decode/ir.h"
#include "harness/vgpu/decode/lower_memory.h"
#include "harness/vgpu/decode/modifiers.h"
#include "harness/vgpu/decode/operands.h"

namespace gradguard::vgpu::decode {
namespace {

using ast::Operand;

class Lowering {
  public:
    Lowering(const ast::Module& module, const ast::Entry& entry, const exec::InstructionTable& table, bool flush)
        : entry_(entry),
          table_(table),
          flush_(flush),
          binder_(module, entry, table, ir_),
          memory_(binder_, entry, ir_) {}

    Ir run() {
        for (const ast::Register& reg : entry_.registers) ir_.registers.push_back(Letter::of(reg.type).slot_class());
        find_leaders();
        for (std::uint32_t i = 0; i < entry_.instructions.size(); ++i) lower(i);
        start_block(static_cast<std::uint32_t>(entry_.instructions.size()));
        block().segment.end = EndKind::Exit;  // running off the end
        for (Block& each : ir_.blocks) {
            if (each.segment.end == EndKind::Branch) each.segment.target = block_at_[each.segment.target];
        }
        return std::move(ir_);
    }

  private:
    Block& block() { return ir_.blocks.back(); }

    void find_leaders() {
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
    void start_block(std::uint32_t position) {
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

    void lower(std::uint32_t index) {
        const ast::Instruction& instruction = entry_.instructions[index];
        if (leads_[index] || leads_next_) start_block(index);
        Segment& segment = block().segment;
        segment.end_instruction = index;
        ++segment.instruction_count;
        binder_.begin(instruction, index, block());
        const Modifiers name(instruction.name);
        const std::string_view opcode = name.opcode();
        if (opcode == "bra") return lower_branch(name);
        if (opcode == "ret" || opcode == "exit") return lower_exit(name);
        if (opcode == "bar" || opcode == "barrier") return lower_barrier(name);
        if (opcode == "ld" || opcode == "ldu") return memory_.lower_load(name);
        if (opcode == "st") return memory_.lower_store(name);
        if (opcode == "atom" || opcode == "red") return memory_.lower_atomic(name);
        if (opcode == "setp") return lower_compare(name);
        if (opcode == "mov") return lower_move(name);
        lower_by_row(instruction.name, instruction.operands);
    }

    [[noreturn]] void refuse_name() const {
        const std::string& name = binder_.instruction().name;
        static constexpr std::array kApproximate = {".approx", ".full", "ex2", "lg2", "sin.", "cos.", "tanh"};
        const bool approximate = std::any_of(kApproximate.begin(), kApproximate.end(),
                                             [&](const char* part) { return name.find(part) != std::string::npos; });
        binder_.refuse((approximate ? "approximate instruction '" : "instruction '") + name + "' is not supported");
    }

    // ---- control -----------------------------------------------------------------------------------------------

    void set_condition() {
        const ast::Instruction& instruction = binder_.instruction();
        if (instruction.guard < 0) return;
        block().segment.conditional = true;
        block().predicate = {Value::Kind::Register, static_cast<std::uint32_t>(instruction.guard)};
        block().segment.invert = instruction.guard_negated ? exec::kFullMask : 0;
    }

    void lower_branch(const Modifiers& name) {
        const ast::Instruction& instruction = binder_.instruction();
        if (!name.is_any_of({"bra", "bra.uni"})) refuse_name();
        if (instruction.operands.size() != 1 || instruction.operands[0].kind != Operand::Kind::Label) {
            binder_.refuse("a branch needs one label");
        }
        block().segment.end = EndKind::Branch;
        block().segment.target = entry_.labels[instruction.operands[0].index].position;  // a block number later
        set_condition();
        leads_next_ = true;
    }

    void lower_exit(const Modifiers& name) {
        if (!name.is_any_of({"ret", "ret.uni", "exit"})) refuse_name();
        if (!binder_.instruction().operands.empty()) binder_.refuse("no operands expected");
        block().segment.end = EndKind::Exit;
        set_condition();
        leads_next_ = true;
    }

    Value barrier_operand(const Operand& operand, std::uint64_t limit) {
        if (operand.kind == Operand::Kind::Integer && operand.bits > limit)
            binder_.refuse("barrier operand out of range");
        return binder_.source(operand, Letter::of('w'), false);
    }

    void lower_barrier(const Modifiers& name) {
        const ast::Instruction& instruction = binder_.instruction();
        const bool of_warp = name.is_any_of({"bar.warp.sync"});
        const bool arrives =
            name.is_any_of({"bar.arrive", "bar.cta.arrive", "barrier.arrive", "barrier.arrive.aligned"});
        const bool aligned =
            name.is_any_of({"bar.sync", "bar.cta.sync", "barrier.sync.aligned", "barrier.cta.sync.aligned",
                            "bar.arrive", "bar.cta.arrive", "barrier.arrive.aligned"});
        if (!aligned && !arrives && !of_warp && !name.is_any_of({"barrier.sync", "barrier.cta.sync"})) refuse_name();
        if (instruction.operands.empty() || instruction.operands.size() > 2)
            binder_.refuse("one or two operands expected");
        if (instruction.guard >= 0) {
            // Lanes that the guard holds back go round: a branch of its own.
            Segment& around = block().segment;
            around.end = EndKind::Branch;
            around.target = around.end_instruction + 1;
            set_condition();
            around.invert = ~around.invert;
            leads_[around.target] = true;
            const std::uint32_t index = around.end_instruction;
            start_block(index);
            binder_.begin(instruction, index, block());
        }
        Segment& segment = block().segment;
        segment.end = EndKind::Barrier;
        segment.aligned = aligned;
        segment.waits = !arrives;
        segment.of_warp = of_warp;
        block().barrier = barrier_operand(instruction.operands[0], of_warp ? 0xFFFFFFFFFFFFFFFF : 15);
        if (instruction.operands.size() == 2) {
            segment.has_thread_count = true;
            block().thread_count = barrier_operand(instruction.operands[1], 1024);
        }
        leads_next_ = true;
    }

    // ---- straight-line instructions ----------------------------------------------------------------------------

    /// The row of a PTX name; with flushing on request, its .ftz form where there is one.
    const exec::Row* find_row(const std::string& name) const {
        const exec::Row* row = table_.find(name);
        if (!row || (row->flags & exec::kInternal) != 0) return nullptr;
        if (!flush_ || name.find("f32") == std::string::npos || name.find(".ftz") != std::string::npos) return row;
        for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
            std::string flushing = name;
            if (const exec::Row* found = table_.find(flushing.insert(dot, ".ftz"))) return found;
        }
        return row;
    }

    void lower_by_row(const std::string& name, const std::vector<Operand>& operands) {
        const exec::Row* row = find_row(name);
        if (!row) refuse_name();
        const char* format = row->format;
        const bool wide = *format == '~';
        if (wide) ++format;
        const char* equals = std::strchr(format, '=');
        const auto destinations = static_cast<std::size_t>(equals - format);
        if (operands.size() != destinations + std::strlen(equals + 1)) binder_.refuse("wrong number of operands");
        IrOp op = binder_.make(row->name);
        for (std::size_t i = destinations; i < operands.size(); ++i) {
            op.sources.push_back(binder_.source(operands[i], Letter::of(equals[1 + i - destinations]), wide));
        }
        const bool is_signed = wide && Modifiers(name).destination_is_signed();
        for (std::size_t i = 0; i < destinations; ++i) {
            op.destinations.push_back(binder_.destination(operands[i], Letter::of(format[i]), wide, is_signed));
        }
        if (name.compare(0, 6, "membar") == 0 || name.compare(0, 5, "fence") == 0) {
            op.event.kind = OpEvent::Kind::Fence;
            op.event.scope = scope_of(Modifiers(name), Scope::Gpu);
        }
        binder_.emit(std::move(op));
    }

    /// setp.CMP[.BOOL].type p[|q], a, b[, [!]c]
    void lower_compare(const Modifiers& name) {
        std::vector<Operand> operands = binder_.instruction().operands;
        std::string plain = binder_.instruction().name;
        std::string combine;
        if (name.size() >= 4 && (name[2] == "and" || name[2] == "or" || name[2] == "xor")) {
            combine = std::string(name[2]) + ".pred";
            plain = "setp." + std::string(name[1]) + plain.substr(plain.find(name[2].data()) + name[2].size());
        }
        if (!find_row(plain)) refuse_name();
        const bool pair = !operands.empty() && operands[0].kind == Operand::Kind::Pair;
        if (!pair && combine.empty()) return lower_by_row(plain, operands);
        if (operands.size() != (combine.empty() ? 3U : 4U)) binder_.refuse("wrong number of operands");
        const exec::Row* row = find_row(plain);
        const Letter letter = Letter::of(row->format[2]);
        const Value result =
            binder_.compute(row->name, SlotClass::Predicate,
                            {binder_.source(operands[1], letter, false), binder_.source(operands[2], letter, false)});
        Value third;
        if (!combine.empty()) third = binder_.source(operands[3], Letter::of('p'), false);
        const auto combined = [&](const Value& value) {
            return combine.empty() ? value : binder_.compute(combine.c_str(), SlotClass::Predicate, {value, third});
        };
        // Both results are computed before either is written: p or q may be c.
        const Value first = combined(result);
        const Value second = pair ? combined(binder_.compute("not.pred", SlotClass::Predicate, {result})) : Value{};
        if (!pair) return write_predicate(operands[0], first);
        // A destination may also be the guard: that one is written last.
        const Operand& p = operands[0].elements[0];
        const bool p_is_guard =
            p.kind == Operand::Kind::Register && static_cast<std::int32_t>(p.index) == binder_.instruction().guard;
        if (p_is_guard) write_predicate(operands[0].elements[1], second);
        write_predicate(p, first);
        if (!p_is_guard) write_predicate(operands[0].elements[1], second);
    }

    void write_predicate(const Operand& target, const Value& value) {
        IrOp op = binder_.make("mov.pred");
        op.sources = {value};
        op.destinations = {binder_.destination(target, Letter::of('p'), false, false)};
        binder_.emit(std::move(op));
    }

    void lower_move(const Modifiers& name) {
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

    void lower_pack(const Modifiers& name) {
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

    void lower_unpack(const Modifiers& name) {
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

    const ast::Entry& entry_;
    const exec::InstructionTable& table_;
    const bool flush_;
    Ir ir_;
    OperandBinder binder_;
    MemoryLowering memory_;
    std::vector<bool> leads_;
    std::vector<std::uint32_t> block_at_;  ///< By instruction: the block that begins there.
    bool leads_next_ = false;
};

}  // namespace

Ir lower(const ast::Module& module, const ast::Entry& entry, const exec::InstructionTable& table,
         bool flush_subnormals) {
    return Lowering(module, entry, table, flush_subnormals).run();
}

std::unique_ptr<Program> decode(const ast::Module& module, const ast::Entry& entry, const Options& options) {
    const exec::InstructionTable& table = exec::InstructionTable::of(options.level);
    Ir ir = lower(module, entry, table, options.flush_subnormals);
    find_reconvergence(ir);
    remove_copies(ir);
    fuse_pairs(ir, table, options.fusion_seed);
    return assign_slots(ir);
}

}  // namespace gradguard::vgpu::decode
