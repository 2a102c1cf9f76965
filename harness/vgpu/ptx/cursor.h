// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/vgpu/error.h"
#include "harness/vgpu/ptx/lexer.h"

namespace gradguard::vgpu::ptx {

/// Offsets wrap, as the addresses do that they are added to.
inline std::int64_t add_offset(std::int64_t offset, std::uint64_t more) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(offset) + more);
}

/// Braces, operands and calls within each other: more than this is refused, for each level takes of the host's stack.
inline constexpr std::size_t kMaxNesting = 256;

/// Reads tokens one after the other and complains in the right place.
class Cursor {
  public:
    Cursor(const std::vector<Token>& tokens, const std::string& file_name) : tokens_(tokens), file_name_(file_name) {}

    const Token& peek(std::size_t ahead = 0) const {
        const std::size_t index = at_ + ahead;
        return tokens_[index < tokens_.size() ? index : tokens_.size() - 1];
    }
    const Token& take() {
        const Token& token = peek();
        if (at_ + 1 < tokens_.size()) ++at_;
        return token;
    }
    bool at_end() const { return peek().kind == Token::Kind::End; }
    bool accept(char c) {
        if (!peek().is(c)) return false;
        take();
        return true;
    }
    bool accept(std::string_view word) {
        if (!peek().is(word)) return false;
        take();
        return true;
    }
    void expect(char c) {
        if (!accept(c)) refuse(std::string("expected '") + c + "', got " + describe(peek()));
    }
    std::uint64_t expect_integer() {
        if (peek().kind != Token::Kind::Integer) refuse("expected an integer, got " + describe(peek()));
        return take().bits;
    }
    std::string expect_name() {
        if (peek().kind != Token::Kind::Word) refuse("expected a name, got " + describe(peek()));
        return std::string(take().text);
    }
    /// Everything that stands on line `line` (for .loc and .file, which end with their line).
    void skip_line(std::uint32_t line) {
        while (!at_end() && peek().line == line) take();
    }
    /// From '{' to its '}'.
    void skip_braces() {
        expect('{');
        for (int depth = 1; depth > 0;) {
            if (at_end()) refuse("'{' without its '}'");
            const Token& token = take();
            depth += token.is('{') ? 1 : token.is('}') ? -1 : 0;
        }
    }

    [[noreturn]] void refuse(const std::string& why) const { throw PtxError(file_name_, peek().line, why); }
    [[noreturn]] void refuse_at(std::uint32_t line, const std::string& why) const {
        throw PtxError(file_name_, line, why);
    }
    const std::string& file_name() const { return file_name_; }

    static std::string describe(const Token& token) {
        if (token.kind == Token::Kind::End) return "the end of the file";
        return "'" + std::string(token.text) + "'";
    }

  private:
    const std::vector<Token>& tokens_;
    const std::string& file_name_;
    std::size_t at_ = 0;
};

}  // namespace gradguard::vgpu::ptx
