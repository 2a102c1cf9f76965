// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "reference/fp64/violation.h"

/// A test main of its own: these tests are for a machine that has a C++20 compiler and nothing else.
namespace gradguard::reference_alone {

/// One fact, in words, and the checks that hold it.
struct Fact {
    std::string_view name;
    void (*check)();
};

/// Counts a check; one that does not hold is printed with its place and makes the fact fail.
void check(bool holds, const char* condition, const char* file, int line);
#define GRADGUARD_CHECK(...) \
    ::gradguard::reference_alone::check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

/// The facts of each file.
std::span<const Fact> vocabulary_facts();
std::span<const Fact> option_facts();
std::span<const Fact> coefficient_facts();
std::span<const Fact> norm_facts();
std::span<const Fact> decision_facts();
std::span<const Fact> summary_facts();
std::span<const Fact> arithmetic_facts();

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kMax = std::numeric_limits<float>::max();
inline constexpr float kLeast = std::numeric_limits<float>::denorm_min();

inline std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

/// Whether `violation` is of this kind and names this operand.
inline bool refuses(const std::optional<reference::Violation>& violation, ErrorKind kind, std::string_view operand) {
    return violation && violation->kind == kind && violation->site.operand == operand && !violation->message.empty();
}

}  // namespace gradguard::reference_alone
