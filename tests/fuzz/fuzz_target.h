// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/io/results.h"

/// What NAME_target.cpp defines: libFuzzer calls it with what it made up, replay.cpp with the files of the corpus.
/// Returns 0; ends the process when a property does not hold.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace gradguard::fuzz {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// A property of the target. abort(), because that is what libFuzzer takes for a finding.
inline void require(bool holds, std::string_view property) {
    if (holds) return;
    std::fprintf(stderr, "property does not hold: %.*s\n", static_cast<int>(property.size()), property.data());
    std::abort();
}

/// What people read on a terminal and programs in JSON: one line, no control character, and JSON takes it.
inline void require_one_line(std::string_view message) {
    require(!message.empty(), "a message says something");
    for (std::size_t i = 0; i < message.size(); ++i) {
        const auto code = static_cast<unsigned char>(message[i]);
        const auto next = static_cast<unsigned char>(i + 1 < message.size() ? message[i + 1] : ' ');
        const bool high = code == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F
        if (code >= 0x20 && code != 0x7F && !high) continue;
        std::fprintf(stderr, "message: %.*s\n", static_cast<int>(message.size()), message.data());
        require(false, "a message is one line without control characters");
    }
    const std::string json = harness::error_to_json({"InvalidFile", {}, {}, std::string(message)});
    require(nlohmann::json::accept(json), "an error is told as valid JSON");
}

}  // namespace gradguard::fuzz
