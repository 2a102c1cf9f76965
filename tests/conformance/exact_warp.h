// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tests/conformance/exact_int.h"

/// An independent model of PTX's warp-wide instructions, as functions of 32 values and the mask of lanes that execute.
namespace gradguard::conformance {

inline constexpr int kLanes = 32;
using Lanes = std::array<Bits, kLanes>;

/// PTX ISA "vote.sync". Predicates are 0 or 1; lanes outside `mask` do not count.
enum class VoteOp : std::uint8_t { All, Any, Uni };
bool vote(VoteOp op, const Lanes& predicates, std::uint32_t mask);
std::uint32_t ballot(const Lanes& predicates, std::uint32_t mask);

/// PTX ISA "match.sync": the lanes that hold the value of `lane`.
std::uint32_t match_any(const Lanes& values, std::uint32_t mask, int lane);
/// `mask` when all its lanes hold the same value, else 0; the predicate says which.
std::uint32_t match_all(const Lanes& values, std::uint32_t mask);

/// PTX ISA "redux.sync".
enum class ReduxOp : std::uint8_t { Add, Min, Max, And, Or, Xor };
Bits redux(ReduxOp op, bool is_signed, const Lanes& values, std::uint32_t mask);

/// PTX ISA "shfl.sync".
enum class ShuffleMode : std::uint8_t { Up, Down, Bfly, Idx };
struct Shuffled {
    std::optional<Bits> value;  ///< Nothing when the source lane does not execute: unpredictable.
    bool in_range = false;
};
Shuffled shuffle(ShuffleMode mode, const Lanes& values, std::uint32_t mask, int lane, Bits b, Bits c);

}  // namespace gradguard::conformance
