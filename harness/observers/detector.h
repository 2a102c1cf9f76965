// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/vgpu/observer.h"

/// Detectors and counters that watch a virtual GPU from outside. The machine does not know them.
namespace gradguard::observers {

/// What an observer has looked at so far. A run in which an observer saw nothing to check proves nothing.
struct Checked {
    std::string observer;
    std::vector<std::pair<std::string, std::uint64_t>> counts;  ///< What, and how many of it.

    /// Sums up `more` of the same observer.
    Checked& operator+=(const Checked& more);
    /// Whether every count is 0.
    bool nothing() const;
};

/// An observer with a name that can say what it checked.
class Detector : public vgpu::Observer {
  public:
    /// The name it is attached by.
    virtual std::string_view name() const = 0;
    /// Sums over everything since it was made.
    virtual Checked checked() const = 0;
    /// Findings that belong to no launch (leaks). Ask when all work is done.
    virtual std::vector<vgpu::Finding> final_findings() const { return {}; }
};

/// Thread `index` of a block (or block `index` of a grid), x fastest.
inline vgpu::Dim3 unflatten(std::uint64_t index, const vgpu::Dim3& shape) {
    const std::uint64_t x = shape.x ? shape.x : 1, y = shape.y ? shape.y : 1;
    return {static_cast<std::uint32_t>(index % x), static_cast<std::uint32_t>(index / x % y),
            static_cast<std::uint32_t>(index / x / y)};
}

/// A finding about lane `lane` of a warp at an instruction: place, block and thread.
vgpu::Finding finding_at(const vgpu::Observed& launch, const vgpu::WarpId& warp, std::uint32_t instruction,
                         std::uint32_t lane);
/// A finding about lane `lane` of a memory event, complete but for kind, other party and detail.
vgpu::Finding finding_for(const vgpu::Observed& launch, const vgpu::MemoryEvent& event, std::uint32_t lane,
                          vgpu::Space space, vgpu::Address address);

}  // namespace gradguard::observers
