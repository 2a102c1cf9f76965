// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "harness/vgpu/decode/definedness.h"
#include "harness/vgpu/warp.h"

/// What the files that follow undefined values share. See decode/definedness.h.
namespace gradguard::vgpu {

template <class F>
void each_lane(std::uint32_t mask, F&& f) {
    for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}

/// Lanes in which a bit of the tracked register is undefined.
inline std::uint32_t undefined_in(const Warp& warp, std::uint32_t number) {
    return number == decode::kUntracked ? 0 : warp.undefined[number];
}

/// Undefined bits of a tracked register in one lane.
inline std::uint64_t undefined_bits_of(const Warp& warp, std::uint32_t number, unsigned lane) {
    if ((undefined_in(warp, number) >> lane & 1U) == 0) return 0;
    return warp.undefined_bits[std::size_t{number} * exec::kLanes + lane];
}

/// All bits of a value of so many bytes; 0 bytes: a predicate, which is undefined as a whole.
inline constexpr std::uint64_t all_bits(std::uint32_t bytes) {
    return bytes == 0 || bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
}

}  // namespace gradguard::vgpu
