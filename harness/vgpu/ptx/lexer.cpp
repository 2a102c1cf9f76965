// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/ptx/lexer.h"

#include <bit>
#include <charconv>
#include <cstdlib>

#include "harness/vgpu/error.h"

namespace gradguard::vgpu::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Lexer {
  public:
    Lexer(std::string_view text, const std::string& file_name) : text_(text), file_name_(file_name) {}

    std::vector<Token> run() {
        std::vector<Token> tokens;
        tokens.reserve(text_.size() / 4);
        for (skip_blanks(); at_ < text_.size(); skip_blanks()) tokens.push_back(next());
        tokens.push_back({Token::Kind::End, text_.substr(text_.size()), 0, line_});
        return tokens;
    }

  private:
    char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    [[noreturn]] void refuse(const std::string& why) const { throw PtxError(file_name_, line_, why); }

    void skip_blanks() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') {
                ++line_;
                ++at_;
            } else if (c == ' ' || c == '\t' || c == '\r' || (c == '\0' && at_ + 1 == text_.size())) {
                ++at_;
            } else if (c == '/' && peek(1) == '/') {
                while (at_ < text_.size() && text_[at_] != '\n') ++at_;
            } else if (c == '/' && peek(1) == '*') {
                skip_comment();
            } else {
                return;
            }
        }
    }

    void skip_comment() {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) refuse("comment without end");
        for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
    }

    Token take(Token::Kind kind, std::size_t begin, std::uint64_t bits = 0) const {
        return {kind, text_.substr(begin, at_ - begin), bits, line_};
    }

    Token next() {
        const std::size_t begin = at_;
        const char c = text_[at_];
        if (is_digit(c)) return number();
        if (is_letter(c) || c == '_' || c == '$' || c == '%') {
            for (++at_; is_word(peek());) ++at_;
            return take(Token::Kind::Word, begin);
        }
        if (c == '.' && (is_letter(peek(1)) || peek(1) == '_' || is_digit(peek(1)))) {
            for (++at_; is_word(peek()) || (peek() == ':' && peek(1) == ':');) at_ += peek() == ':' ? 2 : 1;
            return take(Token::Kind::DotWord, begin);
        }
        if (c == '"') {
            for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n';) ++at_;
            if (peek() != '"') refuse("string without end");
            ++at_;
            Token token = take(Token::Kind::String, begin);
            token.text = token.text.substr(1, token.text.size() - 2);
            return token;
        }
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E) {
            refuse("character that PTX does not have: code " + std::to_string(static_cast<unsigned char>(c)));
        }
        ++at_;
        return take(Token::Kind::Punct, begin);
    }

    Token number() {
        const std::size_t begin = at_;
        const char second = peek(1);
        if (peek() == '0' && (second == 'f' || second == 'F')) return float_bits(8, Token::Kind::Float32);
        if (peek() == '0' && (second == 'd' || second == 'D')) return float_bits(16, Token::Kind::Float64);
        int base = 10;
        std::size_t digits = at_;
        if (peek() == '0' && (second == 'x' || second == 'X')) {
            base = 16;
            digits += 2;
        } else if (peek() == '0' && (second == 'b' || second == 'B')) {
            base = 2;
            digits += 2;
        } else if (is_decimal_float()) {
            return decimal_float();
        } else if (peek() == '0' && is_digit(second)) {
            base = 8;
            digits += 1;
        }
        std::uint64_t value = 0;
        const char* const first = text_.data() + digits;
        const auto [end, status] = std::from_chars(first, text_.data() + text_.size(), value, base);
        if (status != std::errc() || end == first) refuse("integer literal that is malformed or beyond 64 bits");
        at_ = static_cast<std::size_t>(end - text_.data());
        if (peek() == 'U') ++at_;
        // `4U` and friends end here; anything glued to a number is malformed (vector widths such as .v2 are words).
        if (is_word(peek())) refuse("malformed number '" + std::string(text_.substr(begin, at_ + 1 - begin)) + "'");
        return take(Token::Kind::Integer, begin, value);
    }

    bool is_decimal_float() const {
        std::size_t ahead = 0;
        while (is_digit(peek(ahead))) ++ahead;
        if (peek(ahead) == '.' && is_digit(peek(ahead + 1))) return true;
        return peek(ahead) == 'e' || peek(ahead) == 'E' || (peek(ahead) == '.' && !is_letter(peek(ahead + 1)));
    }

    Token decimal_float() {
        const std::size_t begin = at_;
        double value = 0;
        const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (status != std::errc()) refuse("malformed floating-point literal");
        at_ = static_cast<std::size_t>(end - text_.data());
        return take(Token::Kind::Float64, begin, std::bit_cast<std::uint64_t>(value));
    }

    Token float_bits(std::size_t digits, Token::Kind kind) {
        const std::size_t begin = at_;
        at_ += 2;
        std::size_t count = 0;
        while (is_hex(peek(count))) ++count;
        if (count != digits) refuse("floating-point literal without its " + std::to_string(digits) + " digits");
        std::uint64_t value = 0;
        std::from_chars(text_.data() + at_, text_.data() + at_ + digits, value, 16);
        at_ += digits;
        return take(kind, begin, value);
    }

    std::string_view text_;
    const std::string& file_name_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text, const std::string& file_name) {
    return Lexer(text, file_name).run();
}

}  // namespace gradguard::vgpu::ptx
