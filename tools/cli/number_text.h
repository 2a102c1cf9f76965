// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradguard::tools {

/// The FP32 number nearest to decimal or hexadecimal text, in one rounding; infinite beyond the range. "inf" and "nan"
/// are numbers too: whether one is allowed is the option's rule. nullopt for text that is not a number from end to end.
std::optional<float> parse_float(const std::string& text);

/// The exact value of decimal digits; nullopt for anything else, signs and spaces included, and beyond 2^64 - 1.
std::optional<std::uint64_t> parse_u64(const std::string& text);

/// Shortest text that brings the same FP32 number back.
std::string float_text(float value);

}  // namespace gradguard::tools
