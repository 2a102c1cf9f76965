// SPDX-License-Identifier: Apache-2.0
// Special registers of which PTX says little: identifiers that may be any, clocks that only go forward. The seed picks.
#include <algorithm>

#include "harness/vgpu/exec/launch_rows.h"
#include "harness/vgpu/launch.h"

namespace gradguard::vgpu {

using ast::SpecialRegister;

namespace {

/// Unit in which shared memory is given to blocks, and what the system keeps of it (sm_80 and later).
constexpr std::uint32_t kSharedUnitBytes = 128;
constexpr std::uint32_t kSystemSharedBytes = 1024;

}  // namespace

/// PTX ISA "Special Registers: %nwarpid, %nsmid": upper limits of identifiers, not numbers of things.
std::uint32_t Launch::warp_identifiers() const {
    return seeded_ ? std::max(block_warps_, 8U << (mix(options_.seed) >> 40 & 3U)) : block_warps_;
}

std::uint32_t Launch::multiprocessors() const {
    return seeded_ ? 1 + static_cast<std::uint32_t>(mix(options_.seed + 0x53) % 160) : 1;
}

/// "%warpid": unique in the block, and no more is promised: it need not be thread / 32.
std::uint32_t Launch::warp_identifier(std::uint32_t warp) const {
    if (!seeded_) return warp;
    const std::uint32_t shift = static_cast<std::uint32_t>(mix(options_.seed + number_) >> 33);
    return (warp + shift % block_warps_) % block_warps_;
}

std::uint64_t Launch::launch_special(SpecialRegister which) const {
    const std::uint32_t units = (shared_bytes_ + kSharedUnitBytes - 1) / kSharedUnitBytes;
    switch (which) {
        case SpecialRegister::NwarpId:
            return warp_identifiers();
        case SpecialRegister::NsmId:
            return multiprocessors();
        case SpecialRegister::GridId:
            return number_ + 1;
        case SpecialRegister::DynamicSharedBytes:
            return config_.dynamic_shared_bytes;
        case SpecialRegister::TotalSharedBytes:
            return std::uint64_t{units} * kSharedUnitBytes;
        case SpecialRegister::AllSharedBytes:
            return std::uint64_t{units} * kSharedUnitBytes + kSystemSharedBytes;
        case SpecialRegister::ReservedShared:
            // Cooperative groups take this address and use what is there for tiles of several warps only. The system's
            // shared memory is not modelled: it lies behind the block's own, where an access is a finding.
            return std::uint64_t{units} * kSharedUnitBytes;
        case SpecialRegister::ClusterBlocks:
            return 1;  // a block that was not launched in a cluster is one of its own
        default:
            return 0;  // ClusterRank
    }
}

/// Clocks begin anywhere (so that 32-bit ones may wrap), and each read finds some time gone; more and more of it, so
/// that a kernel that waits for a long time to pass comes to an end.
std::uint64_t Launch::read_special(SpecialRegister which) {
    const std::uint64_t multiprocessor =
        multiprocessors() == 1 ? 0 : mix(options_.seed ^ mix(running_block_->index)) % multiprocessors();
    if (which == SpecialRegister::SmId) return multiprocessor;
    const std::uint64_t step = std::uint64_t{32} << std::min<std::uint64_t>(clock_reads_++ / 64, 26);
    clock_ += seeded_ ? 1 + random_.below(2 * step) : step;
    const std::uint64_t start = seeded_ ? mix(options_.seed + multiprocessor) >> 24 : 0;
    const std::uint64_t cycles = start + clock_;
    // "%globaltimer": its rate and how often it moves are not specified.
    const std::uint64_t grain = seeded_ ? std::uint64_t{1} << (mix(options_.seed) % 11) : 1;
    const std::uint64_t nanoseconds = (std::uint64_t{1} << 60) + clock_ / 2 / grain * grain;
    switch (which) {
        case SpecialRegister::Clock:
        case SpecialRegister::Clock64:
            return cycles;
        case SpecialRegister::ClockHigh:
            return cycles >> 32;
        case SpecialRegister::GlobalTimerHigh:
            return nanoseconds >> 32;
        default:
            return nanoseconds;  // GlobalTimer, GlobalTimerLow
    }
}

std::uint64_t exec::read_special(Context& context, std::uint32_t which) {
    return static_cast<Launch*>(context.owner)->read_special(static_cast<SpecialRegister>(which));
}

}  // namespace gradguard::vgpu
