// SPDX-License-Identifier: Apache-2.0
#include "harness/observers/counts.h"

#include <algorithm>
#include <array>
#include <bit>

#include "harness/observers/accesses.h"

namespace gradguard::observers {
namespace {

constexpr std::uint64_t kSectorBytes = 32;

std::uint64_t sectors_of(const vgpu::MemoryEvent& event) {
    if (const auto stretch = stretch_of(event)) {
        return (stretch->begin + stretch->bytes - 1) / kSectorBytes - stretch->begin / kSectorBytes + 1;
    }
    // A lane touches at most two sectors (16 bytes, perhaps misaligned).
    std::array<std::uint64_t, 2 * vgpu::kWarpLanes> sectors;
    std::size_t count = 0;
    for (std::uint32_t mask = event.mask; mask != 0; mask &= mask - 1) {
        const vgpu::Address address = event.addresses[static_cast<std::size_t>(std::countr_zero(mask))];
        sectors[count++] = address / kSectorBytes;
        sectors[count++] = (address + event.lane_bytes - 1) / kSectorBytes;
    }
    const auto end = sectors.begin() + static_cast<std::ptrdiff_t>(count);
    std::sort(sectors.begin(), end);
    return static_cast<std::uint64_t>(std::unique(sectors.begin(), end) - sectors.begin());
}

}  // namespace

Checked Counts::checked() const {
    return {
        std::string(name()),
        {{"launches", totals_.launches}, {"blocks", totals_.blocks}, {"lane instructions", totals_.lane_instructions}}};
}

void Counts::memory(const vgpu::MemoryEvent& event) {
    for_each_space(event, [this](const vgpu::MemoryEvent& part, vgpu::Space space) {
        const bool shared = space == vgpu::Space::Shared;
        const std::uint64_t bytes = std::uint64_t{lane_count(part.mask)} * part.lane_bytes;
        const std::uint64_t sectors = shared ? 0 : sectors_of(part);
        const auto add = [&](Traffic& traffic) {
            ++traffic.accesses;
            traffic.bytes += bytes;
            traffic.sectors += sectors;
        };
        if (reads(part)) add(shared ? totals_.shared_reads : totals_.global_reads);
        if (writes(part)) add(shared ? totals_.shared_writes : totals_.global_writes);
        totals_.atomics += part.kind == vgpu::AccessKind::Atomic;
    });
}

void Counts::branch(const vgpu::BranchEvent& event) {
    ++totals_.branches;
    const std::uint32_t taken = event.taken & event.mask;
    totals_.divergent_branches += taken != 0 && taken != event.mask;
}

void Counts::launch_end(const vgpu::LaunchStats& stats) {
    ++totals_.launches;
    totals_.blocks += stats.counters.blocks;
    totals_.lane_instructions += stats.counters.lane_instructions;
    for (const auto& entry : stats.instructions_by_kind) totals_.instructions[entry.name] += entry.lane_instructions;
}

}  // namespace gradguard::observers
