// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gradguard::vgpu::ptx {

struct Token {
    enum class Kind : std::uint8_t {
        Word,     ///< Identifier: letters, digits, _ and $, or one that begins with %.
        DotWord,  ///< .reg, .f32, .L2::128B: with its dot.
        Integer,  ///< `bits`.
        Float32,  ///< 0f...: `bits`.
        Float64,  ///< 0d... or decimal: `bits`.
        String,   ///< Without quotes.
        Punct,    ///< One character.
        End,
    };
    Kind kind = Kind::End;
    std::string_view text;  ///< In the module text.
    std::uint64_t bits = 0;
    std::uint32_t line = 0;

    bool is(char c) const { return kind == Kind::Punct && text[0] == c; }
    bool is(std::string_view word) const { return (kind == Kind::Word || kind == Kind::DotWord) && text == word; }
};

/// All tokens, comments gone, an End last. Throws PtxError. The tokens point into `text`.
std::vector<Token> tokenize(std::string_view text, const std::string& file_name);

}  // namespace gradguard::vgpu::ptx
