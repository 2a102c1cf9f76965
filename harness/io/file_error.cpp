// SPDX-License-Identifier: Apache-2.0
#include "harness/io/file_error.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace gradguard::harness {
namespace {

constexpr std::size_t kLongestName = 120;

std::string describe(const std::string& path, const std::string& tensor, const std::string& message) {
    return path + (tensor.empty() ? ": " : ": tensor " + in_quotes(tensor) + ": ") + message;
}

}  // namespace

FileError::FileError(std::string path, std::string tensor, const std::string& message)
    : std::runtime_error(describe(path, tensor, message)), path_(std::move(path)), tensor_(std::move(tensor)) {}

std::string in_quotes(std::string_view name) {
    std::string text(name.substr(0, kLongestName));
    if (name.size() > kLongestName) text += "...";
    // A cut may split a character: the replacement handler keeps the line valid UTF-8.
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace gradguard::harness
