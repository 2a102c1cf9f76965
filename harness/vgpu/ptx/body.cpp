// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/ptx/body.h"

#include <algorithm>
#include <charconv>

#include "harness/vgpu/ptx/declarations.h"

namespace gradguard::vgpu::ptx {
namespace {

constexpr std::uint64_t kMaxRegisters = 1U << 20;
constexpr std::size_t kMaxInlining = 256;  // a chain of calls that names itself must end

using ast::Operand;

std::string join_text(const Token& first, const Token& last) {
    // Tokens point into one text, so the words between them are still there; blanks and line ends become one blank.
    const std::string_view text(first.text.data(),
                                static_cast<std::size_t>(last.text.data() + last.text.size() - first.text.data()));
    std::string folded;
    for (const char c : text) {
        // Comments may hold anything.
        const bool blank = static_cast<unsigned char>(c) <= ' ' || c == '\x7F';
        if (!blank)
            folded += c;
        else if (!folded.empty() && folded.back() != ' ')
            folded += ' ';
    }
    return folded;
}

/// Their operands have a form of their own, so they are refused before those are read.
bool is_about_textures(const std::string& name) {
    const std::string opcode = name.substr(0, name.find('.'));
    static constexpr std::string_view kOpcodes[] = {"tex", "tld4", "txq", "suld", "sust", "sured", "suq"};
    return std::find(std::begin(kOpcodes), std::end(kOpcodes), opcode) != std::end(kOpcodes);
}

}  // namespace

void BodyParser::run() {
    parse_block();
    resolve_labels();
}

void BodyParser::parse_block() {
    cursor_.expect('{');
    if (++block_depth_ > kMaxNesting) cursor_.refuse("blocks nest too deeply");
    scopes_.emplace_back().parent = scope_;
    const std::int32_t outer = scope_;
    scope_ = static_cast<std::int32_t>(scopes_.size()) - 1;
    while (!cursor_.peek().is('}')) {
        if (cursor_.at_end()) cursor_.refuse("'{' without its '}'");
        parse_statement();
    }
    cursor_.expect('}');
    scope_ = outer;
    --block_depth_;
}

void BodyParser::parse_statement() {
    const Token& token = cursor_.peek();
    if (token.is('{')) return parse_block();
    if (token.is(';')) return void(cursor_.take());
    if (token.kind == Token::Kind::DotWord) return parse_directive();
    if (token.kind == Token::Kind::Word && cursor_.peek(1).is(':')) return parse_label();
    parse_instruction();
}

void BodyParser::parse_directive() {
    const Token directive = cursor_.take();
    if (directive.is(".loc")) {
        return set_source(parse_loc(cursor_, directive.line));
    }
    if (directive.is(".reg")) {
        parse_registers();
    } else if (directive.is(".pragma")) {
        // Pragmas ask the optimizer for something ("nounroll", "used_bytes_mask"); none changes what a program means.
        do {
            if (cursor_.take().kind != Token::Kind::String) cursor_.refuse(".pragma without its text");
        } while (cursor_.accept(','));
    } else if (directive.is(".branchtargets")) {
        parse_branch_targets(directive.line);
    } else if (directive.is(".shared") || directive.is(".local") || directive.is(".param")) {
        // Parameters of calls live in the caller's local memory.
        const Space space = directive.is(".shared") ? Space::Shared : Space::Local;
        for (ast::Variable& variable : parse_variables(cursor_, space, false)) {
            scopes_[scope_].variables[variable.name] = static_cast<std::uint32_t>(entry_.variables.size());
            entry_.variables.push_back(std::move(variable));
        }
    } else {
        cursor_.refuse_at(directive.line,
                          "directive '" + std::string(directive.text) + "' is not supported in a kernel");
    }
    cursor_.expect(';');
}

/// What is inlined names the place of the call, and that, if it was inlined itself, is a .loc that came before.
void BodyParser::set_source(const Loc& loc) {
    inlined_at_[loc.at] = loc.inlined_at;
    std::vector<ast::SourceLine> calls{loc.at};
    for (ast::SourceLine at = loc.inlined_at; at.file != 0 && calls.size() < kMaxInlining;) {
        calls.push_back(at);
        const auto outer = inlined_at_.find(at);
        at = outer == inlined_at_.end() ? ast::SourceLine{} : outer->second;
    }
    // Headers of the toolkit tell a reader little: the innermost place in the file that has the kernel itself.
    const std::uint32_t file = calls.back().file;
    source_ = *std::find_if(calls.begin(), calls.end(), [&](const ast::SourceLine& at) { return at.file == file; });
    inlined_ = source_ == loc.at ? ast::SourceLine{} : loc.at;
}

/// LABEL: .branchtargets A, B, ...;
void BodyParser::parse_branch_targets(std::uint32_t line) {
    if (entry_.labels.empty() || entry_.labels.back().position != entry_.instructions.size())
        cursor_.refuse_at(line, ".branchtargets without a label");
    const auto list = static_cast<std::uint32_t>(entry_.labels.size() - 1);
    do target_uses_.push_back({list, cursor_.expect_name(), scope_, line});
    while (cursor_.accept(','));
}

void BodyParser::parse_registers() {
    const Token type_token = cursor_.take();
    const auto type =
        type_token.kind == Token::Kind::DotWord ? ast::parse_type(type_token.text.substr(1)) : std::nullopt;
    if (!type)
        cursor_.refuse_at(type_token.line, "registers of type " + Cursor::describe(type_token) + " are not supported");
    do {
        const std::string name = cursor_.expect_name();
        if (!cursor_.accept('<')) {
            add_register(name, *type);
            continue;
        }
        const std::uint64_t count = cursor_.expect_integer();
        if (count > kMaxRegisters) cursor_.refuse("too many registers");
        cursor_.expect('>');
        add_range({name, count, *type});
    } while (cursor_.accept(','));
}

void BodyParser::refuse_special(const std::string& name) const {
    if (ast::parse_special_register(name) || ast::parse_special_register(name + ".x"))
        cursor_.refuse("register '" + name + "' has the name of a special register");
}

void BodyParser::add_register(const std::string& name, ast::Type type) {
    const auto index = static_cast<std::uint32_t>(entry_.registers.size());
    refuse_special(name);
    Scope& scope = scopes_[scope_];
    const bool in_range = std::any_of(scope.ranges.begin(), scope.ranges.end(),
                                      [&](const RegisterRange& range) { return range.has(name); });
    if (in_range || !scope.registers.emplace(name, index).second)
        cursor_.refuse("register '" + name + "' is declared twice");
    entry_.registers.push_back({name, type});
}

void BodyParser::add_range(RegisterRange range) {
    if (range.count == 0) return;
    Scope& scope = scopes_[scope_];
    for (const auto& [name, index] : scope.registers) {
        if (range.has(name)) cursor_.refuse("register '" + name + "' is declared twice");
    }
    for (const RegisterRange& other : scope.ranges) {
        // %r<20> and %r1<5> share %r10, the first of the latter.
        for (const std::string& first : {range.stem + "0", other.stem + "0"}) {
            if (range.has(first) && other.has(first)) cursor_.refuse("register '" + first + "' is declared twice");
        }
    }
    scope.ranges.push_back(std::move(range));
}

bool BodyParser::RegisterRange::has(const std::string& name) const {
    if (name.size() <= stem.size() || name.compare(0, stem.size(), stem) != 0) return false;
    const char* const first = name.data() + stem.size();
    const char* const last = name.data() + name.size();
    if (*first == '0' && last - first > 1) return false;
    std::uint64_t number = 0;
    const auto [end, status] = std::from_chars(first, last, number);
    return status == std::errc() && end == last && number < count;
}

std::optional<std::uint32_t> BodyParser::find_register(const std::string& name) {
    for (std::int32_t at = scope_; at >= 0; at = scopes_[at].parent) {
        Scope& scope = scopes_[at];
        if (const auto known = scope.registers.find(name); known != scope.registers.end()) return known->second;
        for (const RegisterRange& range : scope.ranges) {
            if (!range.has(name)) continue;
            const auto index = static_cast<std::uint32_t>(entry_.registers.size());
            refuse_special(name);
            scope.registers.emplace(name, index);
            entry_.registers.push_back({name, range.type});
            return index;
        }
    }
    return std::nullopt;
}

void BodyParser::parse_label() {
    const Token token = cursor_.take();
    cursor_.expect(':');
    const auto index = static_cast<std::uint32_t>(entry_.labels.size());
    if (!scopes_[scope_].labels.emplace(std::string(token.text), index).second) {
        cursor_.refuse_at(token.line, "label '" + std::string(token.text) + "' is defined twice");
    }
    entry_.labels.push_back({std::string(token.text), static_cast<std::uint32_t>(entry_.instructions.size()), {}});
}

void BodyParser::parse_instruction() {
    ast::Instruction instruction;
    const Token first = cursor_.peek();
    instruction.line = first.line;
    instruction.source = source_;
    instruction.inlined = inlined_;
    if (cursor_.accept('@')) {
        instruction.guard_negated = cursor_.accept('!');
        const std::string name = cursor_.expect_name();
        const std::optional<std::uint32_t> index = find_register(name);
        if (!index || entry_.registers[*index].type.kind != ast::TypeKind::Predicate) {
            cursor_.refuse_at(first.line, "guard '" + name + "' is no predicate register");
        }
        instruction.guard = static_cast<std::int32_t>(*index);
    }
    instruction.name = cursor_.expect_name();
    while (cursor_.peek().kind == Token::Kind::DotWord) instruction.name += cursor_.take().text;
    try {
        if (is_about_textures(instruction.name))
            cursor_.refuse("instruction '" + instruction.name + "' is not supported");
        if (instruction.name == "call" || instruction.name == "call.uni") parse_call(instruction);
        while (!cursor_.peek().is(';')) {
            operand_path_.assign(1, static_cast<std::uint32_t>(instruction.operands.size()));
            instruction.operands.push_back(parse_operand());
            if (!cursor_.peek().is(';')) cursor_.expect(',');
        }
    } catch (const PtxError& error) {
        // Name the instruction, not only the operand.
        std::string message = error.what();
        message.erase(0, message.find(": ") + 2);
        Token last = cursor_.peek();
        for (std::size_t i = 0; i < 64 && !last.is(';') && last.kind != Token::Kind::End; ++i) last = cursor_.peek(i);
        throw PtxError(cursor_.file_name(), first.line, message + ": " + join_text(first, last));
    }
    instruction.text = join_text(first, cursor_.peek());
    cursor_.expect(';');
    entry_.instructions.push_back(std::move(instruction));
}

/// call (results), name, (arguments). Arguments in registers are not supported: compilers pass .param variables.
void BodyParser::parse_call(ast::Instruction& instruction) {
    const auto parse_actuals = [&] {
        if (cursor_.accept(')')) return;
        do {
            const std::string name = cursor_.expect_name();
            std::uint32_t index = 0;
            if (find_register(name) || !find_variable(name, index) || entry_.variables[index].space != Space::Local) {
                cursor_.refuse("'" + name + "' is no .param variable of this call");
            }
            Operand operand;
            operand.kind = Operand::Kind::Variable;
            operand.index = index;
            instruction.operands.push_back(operand);
        } while (cursor_.accept(','));
        cursor_.expect(')');
    };
    if (cursor_.accept('(')) {
        parse_actuals();
        instruction.result_count = static_cast<std::uint32_t>(instruction.operands.size());
        cursor_.expect(',');
    }
    instruction.callee = cursor_.expect_name();
    if (find_register(instruction.callee)) cursor_.refuse("indirect calls are not supported");
    if (cursor_.accept(',')) {
        cursor_.expect('(');
        parse_actuals();
    }
}

const std::uint32_t* BodyParser::find(std::unordered_map<std::string, std::uint32_t> Scope::*table,
                                      const std::string& name, std::int32_t scope) const {
    for (; scope >= 0; scope = scopes_[scope].parent) {
        const auto& names = scopes_[scope].*table;
        if (const auto it = names.find(name); it != names.end()) return &it->second;
    }
    return nullptr;
}

bool BodyParser::find_variable(const std::string& name, std::uint32_t& index) {
    if (const std::uint32_t* local = find(&Scope::variables, name, scope_)) {
        index = *local;
        return true;
    }
    // Parameters, and variables of the module that the body has already named.
    const auto known = std::find_if(entry_.variables.begin(), entry_.variables.end(),
                                    [&](const ast::Variable& variable) { return variable.name == name; });
    if (known != entry_.variables.end()) {
        index = static_cast<std::uint32_t>(known - entry_.variables.begin());
        return true;
    }
    const auto outer = std::find_if(module_.variables.begin(), module_.variables.end(),
                                    [&](const ast::Variable& variable) { return variable.name == name; });
    if (outer == module_.variables.end()) return false;
    index = static_cast<std::uint32_t>(entry_.variables.size());
    entry_.variables.push_back(*outer);
    return true;
}

void BodyParser::resolve_labels() {
    for (const LabelUse& use : label_uses_) {
        ast::Instruction& instruction = entry_.instructions[use.instruction];
        const std::uint32_t* index = find(&Scope::labels, use.name, use.scope);
        if (!index) {
            cursor_.refuse_at(instruction.line, "'" + use.name + "' is not defined: " + instruction.text);
        }
        Operand* operand = &instruction.operands[use.path[0]];
        for (std::size_t i = 1; i < use.path.size(); ++i) operand = &operand->elements[use.path[i]];
        if (operand->kind == Operand::Kind::Label) operand->index = *index;
    }
    for (const TargetUse& use : target_uses_) {
        const std::uint32_t* index = find(&Scope::labels, use.name, use.scope);
        if (!index) cursor_.refuse_at(use.line, "'" + use.name + "' is not defined: .branchtargets");
        entry_.labels[use.list].targets.push_back(*index);
    }
}

}  // namespace gradguard::vgpu::ptx
