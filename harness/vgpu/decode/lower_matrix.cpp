// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "harness/vgpu/decode/lowering.h"

namespace gradguard::vgpu::decode {

using ast::Operand;

namespace {

std::size_t words_of(char letter) { return static_cast<std::size_t>(letter - '0'); }

}  // namespace

/// A fragment of the registers in braces.
Value Lowering::gather(const Operand& operand, std::size_t words) {
    if (operand.kind != Operand::Kind::Vector || operand.elements.size() != words)
        binder_.refuse(std::to_string(words) + (words == 1 ? " register" : " registers") + " in braces expected");
    std::vector<Value> registers;
    for (const Operand& element : operand.elements)
        registers.push_back(binder_.source(element, Letter::of('W'), false));
    return binder_.compute(("%gather." + std::to_string(words)).c_str(), SlotClass::Fragment, std::move(registers));
}

void Lowering::lower_matrix_operation() {
    const ast::Instruction& instruction = binder_.instruction();
    const exec::Row* const row = table_.find(instruction.name);  // .row.col has an order
    if (!row) refuse_name();
    const std::vector<Operand>& operands = instruction.operands;
    const std::string_view format = row->format;  // D=ABC
    if (operands.size() != 4) binder_.refuse("wrong number of operands");
    const std::size_t results = words_of(format[0]);
    if (operands[0].kind != Operand::Kind::Vector || operands[0].elements.size() != results)
        binder_.refuse(std::to_string(results) + " registers in braces expected");
    if (instruction.guard >= 0) go_round();
    const std::uint32_t index = block().segment.end_instruction;
    IrOp op = binder_.make(row->name);
    for (std::size_t i = 1; i < operands.size(); ++i)
        op.sources.push_back(gather(operands[i], words_of(format[1 + i])));
    op.destinations = {ir_.new_register(SlotClass::Fragment)};
    op.when_released = true;
    const Value result = op.destinations[0];
    Segment& segment = block().segment;
    segment.aligned = false;
    segment.of_warp = segment.whole_warp = true;
    segment.end = EndKind::Barrier;
    block().barrier = binder_.literal(exec::kFullMask, 4);
    block().ops.push_back(std::move(op));
    start_block(index);
    binder_.begin(instruction, index, block());
    for (std::size_t word = 0; word < results; ++word) {
        IrOp part = binder_.make("%part");
        part.immediate = static_cast<std::int32_t>(word);
        part.sources = {result};
        part.destinations = {binder_.destination(operands[0].elements[word], Letter::of('W'), false, false)};
        block().ops.push_back(std::move(part));
    }
}

}  // namespace gradguard::vgpu::decode
