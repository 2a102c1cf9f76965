// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/ptx/parser.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "harness/vgpu/ptx/body.h"
#include "harness/vgpu/ptx/cursor.h"
#include "harness/vgpu/ptx/declarations.h"
#include "harness/vgpu/ptx/expand_calls.h"

namespace gradguard::vgpu::ptx {
namespace {

class ModuleParser {
  public:
    ModuleParser(Cursor& cursor, ast::Module& module) : cursor_(cursor), module_(module) {}

    void run() {
        while (!cursor_.at_end()) parse_top();
        if (!saw_version_) cursor_.refuse("module without .version");
        if (module_.target == 0) cursor_.refuse("module without .target");
        for (const ast::Variable& variable : module_.variables) check_addresses(variable);
    }

  private:
    void check_addresses(const ast::Variable& variable) const {
        for (const ast::AddressValue& address : variable.addresses) {
            const auto named = [&](const auto& one) { return one.name == address.name; };
            const auto target = std::find_if(module_.variables.begin(), module_.variables.end(), named);
            const bool is_code = std::any_of(module_.functions.begin(), module_.functions.end(), named) ||
                                 std::any_of(module_.entries.begin(), module_.entries.end(), named);
            const std::string what = "initial value of '" + variable.name + "': '" + address.name + "'";
            if (is_code) cursor_.refuse_at(address.line, what + " is code; indirect calls are not supported");
            if (target == module_.variables.end()) cursor_.refuse_at(address.line, what + " is not defined");
            if (target->space != Space::Global && target->space != Space::Constant)
                cursor_.refuse_at(address.line, what + " is no .global or .const variable");
        }
    }

    void parse_top() {
        if (cursor_.accept(';')) return;
        const Token directive = cursor_.take();
        if (directive.is(".version")) {
            parse_version(directive.line);
        } else if (directive.is(".target")) {
            parse_target(directive.line);
        } else if (directive.is(".address_size")) {
            if (cursor_.expect_integer() != 64) cursor_.refuse_at(directive.line, "only .address_size 64 is supported");
        } else if (directive.is(".file")) {
            parse_file(cursor_, directive.line, module_);
        } else if (directive.is(".section")) {
            cursor_.take();  // debug information only; its name
            cursor_.skip_braces();
        } else if (directive.is(".pragma")) {
            while (cursor_.take().kind == Token::Kind::String && cursor_.peek().is(',')) cursor_.take();
            cursor_.expect(';');
        } else {
            parse_declaration(directive);
        }
    }

    /// What a later version means nobody here has read; the first ones rounded otherwise.
    void parse_version(std::uint32_t line) {
        const Token token = cursor_.take();
        if (token.kind != Token::Kind::Float64) cursor_.refuse_at(line, ".version without its number");
        const auto version = std::bit_cast<double>(token.bits);
        if (version < 2 || version >= 10)
            cursor_.refuse_at(line, ".version " + std::string(token.text) + " is not supported: 2.0 to 9.x are");
        saw_version_ = true;
    }

    /// sm_80, sm_90a, sm_100f.
    void parse_target(std::uint32_t line) {
        do {
            const Token token = cursor_.take();
            if (token.text.substr(0, 3) == "sm_") {
                const char* const end = token.text.data() + token.text.size();
                const char* const after = std::from_chars(token.text.data() + 3, end, module_.target).ptr;
                const std::string_view rest(after, static_cast<std::size_t>(end - after));
                const bool known = module_.target >= 20 && module_.target < 200;
                if (!known || (!rest.empty() && rest != "a" && rest != "f"))
                    cursor_.refuse_at(line, ".target " + Cursor::describe(token) + " is not supported");
            } else if (!token.is("debug")) {
                cursor_.refuse_at(line, ".target option " + Cursor::describe(token) + " is not supported");
            }
        } while (cursor_.accept(','));
    }

    void parse_declaration(Token directive) {
        bool is_extern = false;
        while (directive.is(".visible") || directive.is(".weak") || directive.is(".extern") ||
               directive.is(".common")) {
            is_extern |= directive.is(".extern");
            directive = cursor_.take();
        }
        if (directive.is(".entry")) {
            if (is_extern) cursor_.refuse_at(directive.line, ".extern .entry is not supported");
            return parse_entry(directive.line);
        }
        if (directive.is(".func")) return parse_function(directive.line, is_extern);
        Space space = Space::Global;
        if (directive.is(".global"))
            space = Space::Global;
        else if (directive.is(".const"))
            space = Space::Constant;
        else if (directive.is(".shared"))
            space = Space::Shared;
        else
            cursor_.refuse_at(directive.line, "directive " + Cursor::describe(directive) + " is not supported");
        for (ast::Variable& variable : parse_variables(cursor_, space, is_extern)) {
            const bool known = std::any_of(module_.variables.begin(), module_.variables.end(),
                                           [&](const ast::Variable& other) { return other.name == variable.name; });
            if (known) cursor_.refuse_at(variable.line, "variable '" + variable.name + "' is declared twice");
            module_.variables.push_back(std::move(variable));
        }
        cursor_.expect(';');
    }

    void parse_entry(std::uint32_t line) {
        ast::Entry entry;
        entry.line = line;
        entry.name = cursor_.expect_name();
        const bool known = std::any_of(module_.entries.begin(), module_.entries.end(),
                                       [&](const ast::Entry& other) { return other.name == entry.name; });
        if (known) cursor_.refuse_at(line, "entry '" + entry.name + "' is defined twice");
        parse_parameters(entry);
        while (!cursor_.peek().is('{') && !cursor_.peek().is(';')) parse_performance_directive(entry);
        if (cursor_.accept(';')) return;  // a declaration; the definition follows
        BodyParser(cursor_, module_, entry).run();
        module_.entries.push_back(std::move(entry));
    }

    /// .func (results) name (parameters) { ... }. A declaration says nothing that a call has to know.
    void parse_function(std::uint32_t line, bool is_extern) {
        ast::Entry function;
        function.line = line;
        parse_parameters(function);
        function.result_count = function.param_count;
        function.name = cursor_.expect_name();
        parse_parameters(function);
        for (ast::Variable& formal : function.variables) formal.space = Space::Local;
        while (cursor_.accept(".noreturn")) {
        }
        if (cursor_.accept(';')) return;
        if (is_extern) cursor_.refuse_at(line, ".extern .func with a body");
        const bool known = std::any_of(module_.functions.begin(), module_.functions.end(),
                                       [&](const ast::Entry& other) { return other.name == function.name; });
        if (known) cursor_.refuse_at(line, "function '" + function.name + "' is defined twice");
        BodyParser(cursor_, module_, function).run();
        module_.functions.push_back(std::move(function));
    }

    void parse_parameters(ast::Entry& entry) {
        if (!cursor_.accept('(')) return;
        std::uint64_t offset = 0;
        if (!cursor_.peek().is(')')) {
            do {
                if (!cursor_.accept(".param"))
                    cursor_.refuse("expected .param, got " + Cursor::describe(cursor_.peek()));
                ast::Variable parameter = parse_parameter(cursor_);
                offset = (offset + parameter.align_bytes - 1) / parameter.align_bytes * parameter.align_bytes;
                parameter.offset_bytes = offset;
                offset += parameter.bytes;
                entry.variables.push_back(std::move(parameter));
            } while (cursor_.accept(','));
        }
        cursor_.expect(')');
        if (offset > 32764) cursor_.refuse("more than 32764 bytes of parameters");
        entry.param_count = static_cast<std::uint32_t>(entry.variables.size());
        entry.param_bytes = static_cast<std::uint32_t>(offset);
    }

    Dim3 parse_dimensions() {
        std::uint32_t values[3] = {1, 1, 1};
        int count = 0;
        do {
            const std::uint64_t value = cursor_.expect_integer();
            if (count == 3 || value == 0 || value > 65536) cursor_.refuse("bad dimensions");
            values[count++] = static_cast<std::uint32_t>(value);
        } while (cursor_.accept(','));
        return {values[0], values[1], values[2]};
    }

    static std::uint32_t threads_of(const Dim3& block) {
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(block.count(), UINT32_MAX));
    }

    void parse_performance_directive(ast::Entry& entry) {
        const Token directive = cursor_.take();
        if (directive.is(".maxntid")) {
            entry.max_threads = threads_of(parse_dimensions());
        } else if (directive.is(".reqntid")) {
            entry.required_block = parse_dimensions();
            entry.max_threads = threads_of(entry.required_block);
        } else if (directive.is(".minnctapersm") || directive.is(".maxnctapersm") || directive.is(".maxnreg")) {
            cursor_.expect_integer();  // about registers and occupancy: nothing a program can see
        } else {
            cursor_.refuse_at(directive.line,
                              "directive " + Cursor::describe(directive) + " is not supported for an entry");
        }
    }

    Cursor& cursor_;
    ast::Module& module_;
    bool saw_version_ = false;
};

/// Compiled code and empty files, which are easily given in place of PTX.
void refuse_what_is_no_text(std::string_view text, const std::string& file_name) {
    const auto begins_with = [&](std::string_view magic) { return text.substr(0, magic.size()) == magic; };
    if (begins_with("\x7F"
                    "ELF"))
        throw PtxError(file_name, 1,
                       "this is compiled code (ELF, a cubin or an object), not PTX; nvcc -ptx makes that");
    if (begins_with("\x50\xED\x55\xBA") || begins_with("\xB1\x43\x62\x46"))
        throw PtxError(file_name, 1, "this is a fatbin, not PTX; nvcc -ptx makes that");
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
        throw PtxError(file_name, 1, "there is nothing in it");
}

}  // namespace

std::unique_ptr<ast::Module> parse(std::string_view text, std::string file_name) {
    auto module = std::make_unique<ast::Module>();
    module->file_name = std::move(file_name);
    refuse_what_is_no_text(text, module->file_name);
    const std::vector<Token> tokens = tokenize(text, module->file_name);
    Cursor cursor(tokens, module->file_name);
    ModuleParser(cursor, *module).run();
    for (ast::Entry& entry : module->entries) expand_calls(*module, entry);
    return module;
}

}  // namespace gradguard::vgpu::ptx
