// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace gradguard::tools {

/// A type of PTX as arguments and buffers have it: b, u, s with 8 to 64 bits, f16, bf16, f32, f64.
struct ElementType {
    enum class Kind : std::uint8_t { kBits, kUnsigned, kSigned, kFloat };

    std::string name;
    Kind kind = Kind::kBits;
    std::uint32_t bytes = 0;

    bool is_float() const { return kind == Kind::kFloat; }
};

/// nullopt when no type has this name.
std::optional<ElementType> element_type(std::string_view name);

/// The bits of the value that `text` writes, right-aligned: integers decimal or hexadecimal and within the type's
/// range, floating-point numbers decimal or hexadecimal and rounded to nearest (to FP64 on the way to 16 bits).
/// nullopt for any other text.
std::optional<std::uint64_t> parse_element(const ElementType& type, const std::string& text);

/// `index` as a value of the type: wrapped, or rounded to nearest.
std::uint64_t element_of_index(const ElementType& type, std::uint64_t index);

/// Bits as text that parse_element() takes back, NaN payloads aside: hexadecimal for b types, else decimal.
std::string element_text(const ElementType& type, std::uint64_t bits);

/// The same as a JSON number; "inf", "-inf", "nan" and the text of b types are strings.
nlohmann::ordered_json element_json(const ElementType& type, std::uint64_t bits);

}  // namespace gradguard::tools
