// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/number_text.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cstdlib>

namespace gradguard::tools {

std::optional<float> parse_float(const std::string& text) {
    if (text.empty() || std::isspace(static_cast<unsigned char>(text.front())) != 0) return std::nullopt;
    // Straight to FP32: by way of FP64 it would be rounded twice. Beyond the range it returns infinity or zero.
    char* end = nullptr;
    const float value = std::strtof(text.c_str(), &end);
    if (end != text.c_str() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::uint64_t> parse_u64(const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
    return value;
}

std::string float_text(float value) { return fmt::format("{}", value); }

}  // namespace gradguard::tools
