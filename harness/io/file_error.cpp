// SPDX-License-Identifier: Apache-2.0
#include "harness/io/file_error.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace gradguard::harness {
namespace {

constexpr std::size_t kLongestName = 120;

std::string describe(const std::string& path, const std::string& tensor, const std::string& message) {
    return one_line(path + (tensor.empty() ? ": " : ": tensor " + in_quotes(tensor) + ": ") + message);
}

}  // namespace

FileError::FileError(std::string path, std::string tensor, const std::string& message)
    : std::runtime_error(describe(path, tensor, message)), path_(std::move(path)), tensor_(std::move(tensor)) {}

std::string in_quotes(std::string_view name) {
    std::string text(name.substr(0, kLongestName));
    if (name.size() > kLongestName) text += "...";
    // A cut may split a character: the replacement handler keeps the line valid UTF-8.
    return one_line(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string one_line(std::string_view text) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : ' '); };
    // U+0080 to U+009F in UTF-8.
    const auto is_pair = [&](std::size_t i) { return byte(i) == 0xC2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xA0; };
    std::string line;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool control = byte(i) < 0x20 || byte(i) == 0x7F || is_pair(i) || (i > 0 && is_pair(i - 1));
        if (!control) {
            line += text[i];
            continue;
        }
        line += "\\x";
        line += {kDigits[byte(i) >> 4U], kDigits[byte(i) & 15U]};
    }
    return line;
}

}  // namespace gradguard::harness
