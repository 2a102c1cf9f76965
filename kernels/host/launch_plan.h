// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/contract/constants.h"

/// The only copy of the launch geometry on the host side (contract sections 4 and 6).
namespace gradguard::kernels {

/// First-stage blocks for a tensor of `elements` > 0 on a device that allows `max_blocks` >= 1.
constexpr std::uint32_t reduction_blocks(std::uint64_t elements, std::uint32_t max_blocks) {
    const std::uint64_t wanted = (elements + kElementsPerBlock - 1) / kElementsPerBlock;
    return static_cast<std::uint32_t>(
        std::min({wanted, std::uint64_t{kMaxReductionBlocks}, std::uint64_t{max_blocks}}));
}

/// One block's triple is the summary; more need a second launch.
constexpr std::uint32_t reduction_launches(std::uint32_t blocks) { return blocks > 1 ? 2 : 1; }

constexpr std::uint64_t reduction_scratch_bytes(std::uint32_t blocks) {
    return std::uint64_t{kTripleBytes} * blocks + (blocks > 1 ? kTripleBytes : 0);
}

/// Blocks of the update, a grid-stride loop: results do not depend on it. Four elements a thread keep the prologue
/// small and the grid still fills any device.
constexpr std::uint32_t update_blocks(std::uint64_t elements, std::uint32_t max_blocks) {
    const std::uint64_t wanted = (elements + kElementsPerBlock - 1) / kElementsPerBlock;
    return static_cast<std::uint32_t>(std::min(wanted, std::uint64_t{max_blocks}));
}

}  // namespace gradguard::kernels
