// SPDX-License-Identifier: Apache-2.0
// Operands of instructions.
#include "harness/vgpu/ptx/body.h"

namespace gradguard::vgpu::ptx {

using ast::Operand;

Operand BodyParser::parse_operand() {
    if (++operand_depth_ > kMaxNesting) cursor_.refuse("operands nest too deeply");
    Operand operand = parse_operand_here();
    --operand_depth_;
    return operand;
}

Operand BodyParser::parse_operand_here() {
    const Token& token = cursor_.peek();
    if (token.is('!')) {
        cursor_.take();
        Operand operand = parse_name();
        if (operand.kind != Operand::Kind::Register ||
            entry_.registers[operand.index].type.kind != ast::TypeKind::Predicate) {
            cursor_.refuse("'!' before something that is no predicate");
        }
        operand.negated = true;
        return operand;
    }
    if (token.is('{')) {
        cursor_.take();
        Operand operand = parse_list('}');
        operand.kind = Operand::Kind::Vector;
        return operand;
    }
    if (token.is('[')) return parse_address();
    if (token.is('-')) return parse_negative();
    Operand operand;
    if (token.kind == Token::Kind::Integer || token.kind == Token::Kind::Float32 ||
        token.kind == Token::Kind::Float64) {
        operand.kind = token.kind == Token::Kind::Integer   ? Operand::Kind::Integer
                       : token.kind == Token::Kind::Float32 ? Operand::Kind::Float32
                                                            : Operand::Kind::Float64;
        operand.bits = cursor_.take().bits;
        return operand;
    }
    if (token.kind != Token::Kind::Word) cursor_.refuse("expected an operand, got " + Cursor::describe(token));
    if (token.is("_"))
        cursor_.take();
    else
        operand = parse_name();
    if (cursor_.accept('|')) {
        Operand pair;
        pair.kind = Operand::Kind::Pair;
        pair.elements.push_back(std::move(operand));
        pair.elements.push_back(parse_operand());
        return pair;
    }
    return operand;
}

Operand BodyParser::parse_negative() {
    cursor_.expect('-');
    const Token token = cursor_.take();
    Operand operand;
    if (token.kind == Token::Kind::Integer) {
        operand.kind = Operand::Kind::Integer;
        operand.bits = 0 - token.bits;
    } else if (token.kind == Token::Kind::Float64) {
        operand.kind = Operand::Kind::Float64;
        operand.bits = token.bits ^ (std::uint64_t{1} << 63);
    } else {
        cursor_.refuse("'-' before " + Cursor::describe(token));
    }
    return operand;
}

Operand BodyParser::parse_list(char close) {
    Operand list;
    do {
        operand_path_.push_back(static_cast<std::uint32_t>(list.elements.size()));
        list.elements.push_back(parse_operand());
        operand_path_.pop_back();
    } while (cursor_.accept(','));
    cursor_.expect(close);
    return list;
}

Operand BodyParser::parse_name() {
    std::string name = cursor_.expect_name();
    if (name[0] == '%' && cursor_.peek().kind == Token::Kind::DotWord) name += cursor_.take().text;
    Operand operand;
    if (const std::optional<std::uint32_t> index = find_register(name)) {
        operand.kind = Operand::Kind::Register;
        operand.index = *index;
        return operand;
    }
    if (const auto special = ast::parse_special_register(name)) {
        operand.kind = Operand::Kind::Special;
        operand.special = *special;
        return operand;
    }
    if (name.compare(0, 7, "%envreg") == 0)
        cursor_.refuse("'" + name + "' is set by the driver (for cooperative grids, say) and is not supported");
    if (name[0] == '%')
        cursor_.refuse("register '" + name + "' is neither declared nor a special register that is supported");
    if (name == "WARP_SZ") {
        operand.kind = Operand::Kind::Integer;
        operand.bits = 32;
        return operand;
    }
    if (find_variable(name, operand.index)) {
        operand.kind = Operand::Kind::Variable;
        if (cursor_.accept('+')) {
            operand.offset = static_cast<std::int64_t>(cursor_.expect_integer());
        } else if (cursor_.accept('[')) {  // PTX ISA "Arrays as Operands": the address of that element
            operand.offset =
                static_cast<std::int64_t>(cursor_.expect_integer() * entry_.variables[operand.index].element_bytes);
            cursor_.expect(']');
        }
        return operand;
    }
    operand.kind = Operand::Kind::Label;
    label_uses_.push_back({static_cast<std::uint32_t>(entry_.instructions.size()), operand_path_, name, scope_});
    return operand;
}

Operand BodyParser::parse_address() {
    cursor_.expect('[');
    Operand address;
    address.kind = Operand::Kind::Address;
    if (cursor_.peek().kind == Token::Kind::Integer) {
        Operand base;
        base.kind = Operand::Kind::Integer;
        base.bits = cursor_.take().bits;
        address.elements.push_back(base);
    } else {
        Operand base = parse_name();
        if (base.kind != Operand::Kind::Register && base.kind != Operand::Kind::Variable) {
            cursor_.refuse("address of something unknown");
        }
        address.offset = base.offset;
        base.offset = 0;
        address.elements.push_back(base);
    }
    while (!cursor_.peek().is(']')) {
        bool negative = false;
        // "[%r-16]" is not PTX: ptxas takes "[%r+-16]" only.
        if (!cursor_.accept('+')) cursor_.refuse("this form of address is not supported");
        negative = cursor_.accept('-');
        const std::uint64_t value = cursor_.expect_integer();
        address.offset = add_offset(address.offset, negative ? 0 - value : value);
    }
    cursor_.expect(']');
    return address;
}

}  // namespace gradguard::vgpu::ptx
