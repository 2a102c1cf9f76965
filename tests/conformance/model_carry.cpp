// SPDX-License-Identifier: Apache-2.0
// PTX ISA "Extended-Precision Integer Arithmetic Instructions": add.cc, addc, sub.cc, subc, mad.cc, madc. The condition
// code is no register, so a short sequence sets it before the instruction and another reads it afterwards.
#include "tests/conformance/model.h"

namespace gradguard::conformance {

namespace {

struct CarryUse {
    bool reads_carry = false;
    bool writes_carry = false;
    bool subtracts = false;
    int part = -1;  ///< mad: 0 lo, 1 hi.
};

/// $0 result, $1 carry afterwards (0, 1; for subtractions 0, -1), then the operands, last the carry before (0 or 1).
std::string sequence(const std::string& name, const CarryUse& shape, const PtxType& type, std::size_t operands) {
    const std::string t = (type.bits == 64 ? "u64" : "u32");
    std::string text = "    .reg .b" + std::to_string(type.bits) + " %flag;\n";
    const std::string carry_in = "$" + std::to_string(2 + operands);
    if (shape.reads_carry && shape.subtracts) text += "    sub.cc." + t + " %flag, 0, " + carry_in + ";\n";
    if (shape.reads_carry && !shape.subtracts) text += "    add.cc." + t + " %flag, " + carry_in + ", -1;\n";
    text += "    " + name + " $0";
    for (std::size_t k = 0; k < operands; ++k) text += ", $" + std::to_string(2 + k);
    text += ";\n";
    text += shape.writes_carry ? std::string("    ") + (shape.subtracts ? "subc." : "addc.") + t + " $1, 0, 0;\n"
                               : "    mov.b" + std::to_string(type.bits) + " $1, 0;\n";
    return text;
}

}  // namespace

std::optional<InstructionModel> carry_model(std::string_view name) {
    NameParts parts(name);
    const std::string opcode = parts.opcode();
    const auto type = parts.take_type();
    CarryUse shape;
    shape.writes_carry = parts.take("cc");
    shape.part = parts.take_one({"lo", "hi"});
    shape.reads_carry = opcode == "addc" || opcode == "subc" || opcode == "madc";
    shape.subtracts = opcode == "sub" || opcode == "subc";
    const bool is_mad = opcode == "mad" || opcode == "madc";
    if (!shape.reads_carry && !(shape.writes_carry && (is_mad || opcode == "add" || opcode == "sub")))
        return std::nullopt;
    if (!type || !type->is_integer() || type->bits < 32 || !parts.empty() || is_mad != (shape.part >= 0))
        return std::nullopt;
    const std::size_t operands = is_mad ? 3 : 2;
    std::vector<PtxType> sources(operands, *type);
    sources.push_back(*type);
    InstructionModel model = lane_model(sources, *type, [=, f = type->int_format()](const Bits* in, Bits* out) {
        const bool carry_in = shape.reads_carry && in[operands] != 0;
        const Bits first = is_mad ? multiply(f, shape.part == 0 ? Half::Lo : Half::Hi, in[0], in[1]) : in[0];
        const Bits second = is_mad ? in[2] : in[1];
        const Carried carried =
            shape.subtracts ? sub_with_borrow(f, first, second, carry_in) : add_with_carry(f, first, second, carry_in);
        out[0] = carried.result;
        out[1] = !shape.writes_carry || !carried.carry ? 0 : shape.subtracts ? ones(f.bits) : 1;
        return true;
    });
    model.sources.back().kind = small_operand(2);
    model.sources.back().kind.is_exact = true;
    model.sources.back().kind.int_format.bits = type->bits;
    for (SourceOperand& source : model.sources) source.may_be_literal = false;
    model.results.push_back(model.results[0]);
    model.body = sequence(std::string(name), shape, *type, operands);
    return model;
}

}  // namespace gradguard::conformance
