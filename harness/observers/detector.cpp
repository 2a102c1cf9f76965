// SPDX-License-Identifier: Apache-2.0
#include "harness/observers/detector.h"

#include <algorithm>

namespace gradguard::observers {

Checked& Checked::operator+=(const Checked& more) {
    for (const auto& [what, count] : more.counts) {
        const auto known = std::find_if(counts.begin(), counts.end(),
                                        [&known_as = what](const auto& entry) { return entry.first == known_as; });
        if (known == counts.end()) {
            counts.emplace_back(what, count);
        } else {
            known->second += count;
        }
    }
    return *this;
}

bool Checked::nothing() const {
    return std::all_of(counts.begin(), counts.end(), [](const auto& entry) { return entry.second == 0; });
}

vgpu::Finding finding_at(const vgpu::Observed& launch, const vgpu::WarpId& warp, std::uint32_t instruction,
                         std::uint32_t lane) {
    vgpu::Finding finding;
    finding.place = launch.place(instruction);
    finding.block = unflatten(warp.block, launch.config().grid);
    finding.thread = unflatten(std::uint64_t{warp.warp} * vgpu::kWarpLanes + lane, launch.config().block);
    return finding;
}

vgpu::Finding finding_for(const vgpu::Observed& launch, const vgpu::MemoryEvent& event, std::uint32_t lane,
                          vgpu::Space space, vgpu::Address address) {
    vgpu::Finding finding = finding_at(launch, event.warp, event.instruction, lane);
    finding.space = space;
    finding.access = event.kind;
    finding.access_bytes = event.lane_bytes;
    finding.address = address;
    return finding;
}

}  // namespace gradguard::observers
