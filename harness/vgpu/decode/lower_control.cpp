// SPDX-License-Identifier: Apache-2.0
// Branches, exits, barriers, and what lanes of a warp do together.
#include <cstring>

#include "harness/vgpu/decode/lowering.h"

namespace gradguard::vgpu::decode {

using ast::Operand;

void Lowering::set_condition() {
    const ast::Instruction& instruction = binder_.instruction();
    if (instruction.guard < 0) return;
    block().segment.conditional = true;
    block().predicate = {Value::Kind::Register, static_cast<std::uint32_t>(instruction.guard)};
    block().segment.invert = instruction.guard_negated ? exec::kFullMask : 0;
}

void Lowering::lower_branch(const Modifiers& name) {
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

/// One comparison and branch for each target; an index beyond them all is an error.
void Lowering::lower_indexed_branch() {
    const ast::Instruction& instruction = binder_.instruction();
    const std::uint32_t index = block().segment.end_instruction;
    if (instruction.name != "brx.idx" && instruction.name != "brx.idx.uni") refuse_name();
    if (instruction.operands.size() != 2 || instruction.operands[1].kind != Operand::Kind::Label ||
        entry_.labels[instruction.operands[1].index].targets.empty()) {
        binder_.refuse("an index and the name of a list of .branchtargets are expected");
    }
    if (instruction.guard >= 0) go_round();
    const Value chosen = binder_.source(instruction.operands[0], Letter::of('w'), false);
    std::uint64_t number = 0;
    for (const std::uint32_t target : entry_.labels[instruction.operands[1].index].targets) {
        const Value matches =
            binder_.compute("setp.eq.u32", SlotClass::Predicate, {chosen, binder_.literal(number++, 4)});
        block().segment.end = EndKind::Branch;
        block().segment.target = entry_.labels[target].position;
        block().segment.conditional = true;
        block().predicate = matches;
        start_block(index);
        binder_.begin(instruction, index, block());
    }
    block().segment.end = EndKind::Trap;
    leads_next_ = true;
}

void Lowering::lower_exit(const Modifiers& name) {
    if (!name.is_any_of({"ret", "ret.uni", "exit", "trap", "brkpt"})) refuse_name();
    if (!binder_.instruction().operands.empty()) binder_.refuse("no operands expected");
    if (name.opcode() == "trap" || name.opcode() == "brkpt") {
        if (binder_.instruction().guard >= 0) go_round();
        block().segment.end = EndKind::Trap;
    } else {
        block().segment.end = EndKind::Exit;
        set_condition();
    }
    leads_next_ = true;
}

Value Lowering::barrier_operand(const Operand& operand, std::uint64_t limit) {
    if (operand.kind == Operand::Kind::Integer && operand.bits > limit) binder_.refuse("barrier operand out of range");
    return binder_.source(operand, Letter::of('w'), false);
}

void Lowering::go_round() {
    const ast::Instruction& instruction = binder_.instruction();
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

void Lowering::wait_at(const Operand& barrier, const Operand* thread_count) {
    Segment& segment = block().segment;
    segment.end = EndKind::Barrier;
    block().barrier = barrier_operand(barrier, segment.of_warp ? 0xFFFFFFFFFFFFFFFF : 15);
    if (thread_count) {
        segment.has_thread_count = true;
        block().thread_count = barrier_operand(*thread_count, 1024);
    }
    leads_next_ = true;
}

void Lowering::lower_barrier(const Modifiers& name) {
    const ast::Instruction& instruction = binder_.instruction();
    if (name.size() > 2 && (name[1] == "red" || name[2] == "red")) return lower_barrier_reduction(name);
    const bool of_warp = name.is_any_of({"bar.warp.sync"});
    const bool aligned_arrival =
        name.is_any_of({"bar.arrive", "bar.cta.arrive", "barrier.arrive.aligned", "barrier.cta.arrive.aligned"});
    const bool arrives = aligned_arrival || name.is_any_of({"barrier.arrive", "barrier.cta.arrive"});
    const bool aligned = aligned_arrival || name.is_any_of({"bar.sync", "bar.cta.sync", "barrier.sync.aligned",
                                                            "barrier.cta.sync.aligned"});
    if (!aligned && !arrives && !of_warp && !name.is_any_of({"barrier.sync", "barrier.cta.sync"})) refuse_name();
    if (instruction.operands.empty() || instruction.operands.size() > 2 ||
        (of_warp && instruction.operands.size() != 1)) {
        binder_.refuse("one or two operands expected");
    }
    if (arrives && instruction.operands.size() != 2) binder_.refuse("a barrier and a number of threads are expected");
    if (instruction.guard >= 0) go_round();
    Segment& segment = block().segment;
    segment.aligned = aligned;
    segment.waits = !arrives;
    segment.of_warp = of_warp;
    wait_at(instruction.operands[0], instruction.operands.size() == 2 ? &instruction.operands[1] : nullptr);
}

/// bar.red.popc.u32 d, a{, b}, {!}c; bar.red.and.pred and bar.red.or.pred p, a{, b}, {!}c
void Lowering::lower_barrier_reduction(const Modifiers& name) {
    const ast::Instruction& instruction = binder_.instruction();
    const std::vector<Operand>& operands = instruction.operands;
    const std::string& whole = instruction.name;
    const std::string opcode(name.opcode());
    std::string rest = whole.substr(opcode.size());
    if (rest.compare(0, 4, ".cta") == 0) rest.erase(0, 4);
    const std::string alignment = ".aligned";
    const std::size_t at = rest.find(alignment);
    const bool aligned = opcode == "bar" || at != std::string::npos;
    if (opcode == "barrier" && at != std::string::npos) rest.erase(at, alignment.size());
    Reduction reduction = Reduction::None;
    if (rest == ".red.popc.u32") reduction = Reduction::Count;
    if (rest == ".red.and.pred") reduction = Reduction::And;
    if (rest == ".red.or.pred") reduction = Reduction::Or;
    if (reduction == Reduction::None) refuse_name();
    if (operands.size() != 3 && operands.size() != 4) binder_.refuse("three or four operands expected");
    if (instruction.guard >= 0) go_round();
    const Letter letter = Letter::of(reduction == Reduction::Count ? 'w' : 'p');
    IrOp op = binder_.make(reduction == Reduction::Count ? "%barrier.u32" : "%barrier.pred");
    op.sources = {binder_.source(operands.back(), Letter::of('p'), false)};
    op.destinations = {binder_.destination(operands[0], letter, false, false)};
    op.when_released = true;
    block().segment.aligned = aligned;
    block().segment.reduction = reduction;
    wait_at(operands[1], operands.size() == 4 ? &operands[2] : nullptr);
    block().ops.push_back(std::move(op));
}

void Lowering::lower_warp_operation(const exec::Row& row) {
    const ast::Instruction& instruction = binder_.instruction();
    std::vector<Operand> operands = instruction.operands;
    const char* const equals = std::strchr(row.format, '=');
    const auto destinations = static_cast<std::size_t>(equals - row.format);
    if (instruction.guard >= 0) go_round();
    std::vector<Operand> results;
    if (!operands.empty() && operands[0].kind == Operand::Kind::Pair)
        results = operands[0].elements;
    else if (!operands.empty())
        results = {operands[0]};
    if (results.empty() || results.size() > destinations || operands.size() != 2 + std::strlen(equals + 1)) {
        binder_.refuse("wrong number of operands");
    }
    results.resize(destinations);  // without "|p": a sink
    IrOp op = binder_.make(row.name);
    for (std::size_t i = 0; equals[1 + i] != 0; ++i)
        op.sources.push_back(binder_.source(operands[1 + i], Letter::of(equals[1 + i]), false));
    for (std::size_t i = 0; i < destinations; ++i)
        op.destinations.push_back(binder_.destination(results[i], Letter::of(row.format[i]), false, false));
    op.when_released = true;
    Segment& segment = block().segment;
    segment.aligned = false;
    segment.of_warp = true;
    wait_at(operands.back(), nullptr);
    block().ops.push_back(std::move(op));
}

}  // namespace gradguard::vgpu::decode
