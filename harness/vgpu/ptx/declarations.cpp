// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/ptx/declarations.h"

#include <bit>
#include <cstring>

namespace gradguard::vgpu::ptx {
namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 32;

std::uint32_t parse_align(Cursor& cursor) {
    const std::uint64_t align = cursor.expect_integer();
    if (align == 0 || align > 4096 || !std::has_single_bit(align))
        cursor.refuse("alignment must be a power of two up to 4096");
    return static_cast<std::uint32_t>(align);
}

ast::Type parse_element_type(Cursor& cursor) {
    const Token token = cursor.peek();
    if (token.kind != Token::Kind::DotWord) cursor.refuse("expected a type, got " + Cursor::describe(token));
    const auto type = ast::parse_type(token.text.substr(1));
    if (!type || type->kind == ast::TypeKind::Predicate) {
        cursor.refuse("variables of type " + Cursor::describe(token) + " are not supported");
    }
    cursor.take();
    return *type;
}

/// name, name+offset or generic(name)+offset, of a .global or .const variable: their generic addresses are the same.
void parse_initial_address(Cursor& cursor, ast::Type type, ast::Variable& variable) {
    ast::AddressValue address;
    address.line = cursor.peek().line;
    const bool is_generic = cursor.peek().is("generic") && cursor.peek(1).is('(');
    if (type.bytes != 8 || type.kind == ast::TypeKind::Float)
        cursor.refuse("initial value " + Cursor::describe(cursor.peek()) + " needs a type of 64 bits");
    if (is_generic) {
        cursor.take();
        cursor.expect('(');
    }
    address.name = cursor.expect_name();
    const auto take_offset = [&] {
        const bool negative = cursor.peek().is('-');
        if (!cursor.accept('+') && !cursor.accept('-')) return;
        const std::uint64_t offset = cursor.expect_integer();
        address.offset = add_offset(address.offset, negative ? 0 - offset : offset);
    };
    take_offset();
    if (is_generic) {
        cursor.expect(')');
        take_offset();
    }
    address.at_bytes = variable.initial.size();
    variable.initial.insert(variable.initial.end(), type.bytes, 0);
    variable.addresses.push_back(std::move(address));
}

void parse_initial_value(Cursor& cursor, ast::Type type, ast::Variable& variable, std::size_t depth = 0) {
    if (depth > kMaxNesting) cursor.refuse("initial values nest too deeply");
    if (cursor.accept('{')) {
        if (cursor.accept('}')) return;
        do parse_initial_value(cursor, type, variable, depth + 1);
        while (cursor.accept(','));
        cursor.expect('}');
        return;
    }
    if (cursor.peek().kind == Token::Kind::Word) return parse_initial_address(cursor, type, variable);
    const bool negative = cursor.accept('-');
    const Token token = cursor.take();
    std::uint64_t bits = token.bits;
    const bool is_float = type.kind == ast::TypeKind::Float;
    if (token.kind == Token::Kind::Integer && !is_float) {
        if (negative) bits = 0 - bits;
    } else if (token.kind == Token::Kind::Float32 && is_float && type.bytes == 4 && !negative) {
        // as written
    } else if (token.kind == Token::Kind::Float64 && is_float && type.bytes >= 4) {
        double value = std::bit_cast<double>(bits);
        if (negative) value = -value;
        bits = type.bytes == 8 ? std::bit_cast<std::uint64_t>(value)
                               : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    } else {
        cursor.refuse_at(token.line, "initial value " + Cursor::describe(token) + " is not supported for this type");
    }
    for (unsigned i = 0; i < type.bytes; ++i) variable.initial.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
}

/// The [n][m] after a name: number of elements, 0 for [].
std::uint64_t parse_extents(Cursor& cursor) {
    std::uint64_t elements = 1;
    while (cursor.accept('[')) {
        if (cursor.accept(']')) return 0;
        const std::uint64_t extent = cursor.expect_integer();
        if (extent == 0 || extent > kMaxVariableBytes / elements) cursor.refuse("array extent out of range");
        elements *= extent;
        cursor.expect(']');
    }
    return elements;
}

struct Layout {
    ast::Type type;
    std::uint32_t align_bytes;
};

ast::Variable parse_declarator(Cursor& cursor, Layout layout) {
    ast::Variable variable;
    variable.line = cursor.peek().line;
    variable.name = cursor.expect_name();
    variable.align_bytes = layout.align_bytes;
    variable.bytes = parse_extents(cursor) * layout.type.bytes;
    variable.element_bytes = layout.type.bytes;
    return variable;
}

/// [.ptr [.space]] [.align n] .type, in the orders that compilers write.
Layout parse_layout(Cursor& cursor, bool is_parameter) {
    std::uint32_t align = 0;
    std::optional<ast::Type> type;
    for (;;) {
        if (cursor.accept(".align")) {
            const std::uint32_t value = parse_align(cursor);
            // After .ptr it speaks of the pointee, which is no business of the parameter's layout.
            if (!type) align = value;
        } else if (is_parameter && type &&
                   (cursor.accept(".ptr") || cursor.accept(".global") || cursor.accept(".shared") ||
                    cursor.accept(".const") || cursor.accept(".local"))) {
            continue;
        } else if (!type && cursor.peek().kind == Token::Kind::DotWord) {
            type = parse_element_type(cursor);
        } else {
            break;
        }
    }
    if (!type) cursor.refuse("declaration without a type");
    return {*type, align ? align : type->bytes};
}

}  // namespace

std::vector<ast::Variable> parse_variables(Cursor& cursor, Space space, bool is_extern) {
    const Layout layout = parse_layout(cursor, false);
    std::vector<ast::Variable> variables;
    do {
        ast::Variable variable = parse_declarator(cursor, layout);
        variable.space = space;
        variable.is_extern = is_extern;
        if (cursor.accept('=')) {
            if (space == Space::Shared || is_extern) cursor.refuse("this variable cannot have an initial value");
            parse_initial_value(cursor, layout.type, variable);
            if (variable.bytes == 0) variable.bytes = variable.initial.size();
            if (variable.initial.size() > variable.bytes) cursor.refuse("more initial values than elements");
        }
        if (is_extern && space != Space::Shared) cursor.refuse(".extern is only supported for .shared");
        if (variable.bytes == 0 && !is_extern) cursor.refuse("variable '" + variable.name + "' has no size");
        if (is_extern && variable.bytes != 0) cursor.refuse(".extern .shared arrays of known size are not supported");
        variables.push_back(std::move(variable));
    } while (cursor.accept(','));
    return variables;
}

ast::Variable parse_parameter(Cursor& cursor) {
    const Layout layout = parse_layout(cursor, true);
    ast::Variable variable = parse_declarator(cursor, layout);
    variable.space = Space::Param;
    if (variable.bytes == 0 || variable.bytes > 32764) cursor.refuse("parameter size out of range");
    return variable;
}

/// .loc FILE LINE COLUMN[, function_name LABEL[+N]][, inlined_at FILE LINE COLUMN]
Loc parse_loc(Cursor& cursor, std::uint32_t line) {
    const auto number = [&] { return static_cast<std::uint32_t>(cursor.expect_integer()); };
    const auto same_line = [&] { return !cursor.at_end() && cursor.peek().line == line; };
    Loc loc;
    loc.at.file = number();
    loc.at.line = number();
    if (same_line()) loc.at.column = number();
    while (same_line()) {
        if (!cursor.take().is("inlined_at")) continue;
        loc.inlined_at.file = number();
        loc.inlined_at.line = number();
        loc.inlined_at.column = number();
    }
    return loc;
}

void parse_file(Cursor& cursor, std::uint32_t line, ast::Module& module) {
    const auto number = static_cast<std::uint32_t>(cursor.expect_integer());
    if (cursor.peek().kind != Token::Kind::String) cursor.refuse(".file without a name");
    module.source_files[number] = std::string(cursor.take().text);
    cursor.skip_line(line);
}

}  // namespace gradguard::vgpu::ptx
