// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/element_type.h"

#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "tools/cli/number_text.h"

namespace gradguard::tools {
namespace {

/// A 16-bit format, by the bits of its significand's fraction.
struct HalfFormat {
    int fraction_bits;
    int bias;
    int max_exponent;

    static HalfFormat of(const ElementType& type) {
        return type.name == "bf16" ? HalfFormat{7, 127, 127} : HalfFormat{10, 15, 15};
    }
};

std::uint64_t round_to_half(double value, HalfFormat format) {
    const std::uint64_t sign = std::signbit(value) ? 0x8000U : 0;
    const auto infinity = static_cast<std::uint64_t>(2 * format.bias + 1) << format.fraction_bits;
    if (std::isnan(value)) return 0x7FFF;
    const double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return sign | infinity;
    if (magnitude == 0) return sign;
    const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
    // In units of the last place: a small integer, subnormals included; ties go to even.
    const auto units =
        static_cast<std::uint64_t>(std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent)));
    const std::uint64_t one = std::uint64_t{1} << format.fraction_bits;
    // A carry out of the significand moves into the exponent by itself.
    const std::uint64_t word =
        units < one ? units : (static_cast<std::uint64_t>(exponent + format.bias - 1) << format.fraction_bits) + units;
    return sign | std::min(word, infinity);
}

double half_value(std::uint64_t bits, HalfFormat format) {
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    const auto fraction = static_cast<double>(bits & ((std::uint64_t{1} << format.fraction_bits) - 1));
    const int exponent = static_cast<int>((bits & 0x7FFFU) >> format.fraction_bits);
    if (exponent == 2 * format.bias + 1) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias - format.fraction_bits);
    return sign *
           std::ldexp(fraction + std::ldexp(1.0, format.fraction_bits), exponent - format.bias - format.fraction_bits);
}

std::optional<double> parse_double(const std::string& text) {
    if (text.empty() || std::isspace(static_cast<unsigned char>(text.front())) != 0) return std::nullopt;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size()) return std::nullopt;
    return value;
}

std::uint64_t mask_of(const ElementType& type) { return ~std::uint64_t{0} >> (64 - 8 * type.bytes); }

std::optional<std::uint64_t> parse_integer(const ElementType& type, std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (hexadecimal) text.remove_prefix(2);
    std::uint64_t magnitude = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, magnitude, hexadecimal ? 16 : 10);
    if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
    const std::uint64_t half = (mask_of(type) >> 1) + 1;
    const bool is_signed = type.kind == ElementType::Kind::kSigned;
    if (negative) {
        if (type.kind == ElementType::Kind::kUnsigned || magnitude > half) return std::nullopt;
        return (0 - magnitude) & mask_of(type);
    }
    if (magnitude > mask_of(type) || (is_signed && magnitude >= half)) return std::nullopt;
    return magnitude;
}

double float_value(const ElementType& type, std::uint64_t bits) {
    if (type.bytes == 8) return std::bit_cast<double>(bits);
    if (type.bytes == 4) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    return half_value(bits, HalfFormat::of(type));
}

std::int64_t signed_value(const ElementType& type, std::uint64_t bits) {
    const unsigned shift = 64 - 8 * type.bytes;
    return static_cast<std::int64_t>(bits << shift) >> shift;
}

}  // namespace

std::optional<ElementType> element_type(std::string_view name) {
    using Kind = ElementType::Kind;
    if (name == "bf16") return ElementType{std::string(name), Kind::kFloat, 2};
    if (name.size() < 2) return std::nullopt;
    const std::string_view digits = name.substr(1);
    const std::uint32_t bytes = digits == "8" ? 1 : digits == "16" ? 2 : digits == "32" ? 4 : digits == "64" ? 8 : 0;
    if (bytes == 0) return std::nullopt;
    switch (name.front()) {
        case 'b':
            return ElementType{std::string(name), Kind::kBits, bytes};
        case 'u':
            return ElementType{std::string(name), Kind::kUnsigned, bytes};
        case 's':
            return ElementType{std::string(name), Kind::kSigned, bytes};
        case 'f':
            if (bytes > 1) return ElementType{std::string(name), Kind::kFloat, bytes};
            [[fallthrough]];
        default:
            return std::nullopt;
    }
}

std::optional<std::uint64_t> parse_element(const ElementType& type, const std::string& text) {
    if (!type.is_float()) return parse_integer(type, text);
    if (type.bytes == 4) {
        const std::optional<float> value = parse_float(text);
        return value ? std::optional<std::uint64_t>(std::bit_cast<std::uint32_t>(*value)) : std::nullopt;
    }
    const std::optional<double> value = parse_double(text);
    if (!value) return std::nullopt;
    return type.bytes == 8 ? std::bit_cast<std::uint64_t>(*value) : round_to_half(*value, HalfFormat::of(type));
}

std::uint64_t element_of_index(const ElementType& type, std::uint64_t index) {
    if (!type.is_float()) return index & mask_of(type);
    if (type.bytes == 8) return std::bit_cast<std::uint64_t>(static_cast<double>(index));
    if (type.bytes == 4) return std::bit_cast<std::uint32_t>(static_cast<float>(index));
    return round_to_half(static_cast<double>(index), HalfFormat::of(type));
}

std::string element_text(const ElementType& type, std::uint64_t bits) {
    switch (type.kind) {
        case ElementType::Kind::kBits:
            return fmt::format("0x{:0{}x}", bits, 2 * type.bytes);
        case ElementType::Kind::kUnsigned:
            return std::to_string(bits);
        case ElementType::Kind::kSigned:
            return std::to_string(signed_value(type, bits));
        case ElementType::Kind::kFloat:
            break;
    }
    const double value = float_value(type, bits);
    return type.bytes == 8 ? fmt::format("{}", value) : float_text(static_cast<float>(value));
}

nlohmann::ordered_json element_json(const ElementType& type, std::uint64_t bits) {
    if (type.kind == ElementType::Kind::kUnsigned) return bits;
    if (type.kind == ElementType::Kind::kSigned) return signed_value(type, bits);
    if (type.is_float() && std::isfinite(float_value(type, bits))) return float_value(type, bits);
    return element_text(type, bits);
}

}  // namespace gradguard::tools
