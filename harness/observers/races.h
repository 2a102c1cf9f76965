// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/observers/detector.h"
#include "harness/observers/folder.h"
#include "harness/observers/ordering.h"
#include "harness/observers/race_shadow.h"
#include "harness/observers/shadow_map.h"

namespace gradguard::observers {

struct RaceOptions {
    bool shared = true;
    bool global = true;
    /// Also reports unordered writes of one value to one place, which do no harm (`found = true` by many threads).
    /// They are counted in any case.
    bool same_value_writes = false;
};

/// Races in shared and global memory: two threads access the same byte, at least one of them writes, not both by strong
/// operations, and nothing orders them (see Ordering). Whether the schedule at hand made them clash does not matter.
///
/// A strong write is ordered before what follows a strong read of it, atomics in between included, as in PTX's
/// causality order. So the block that takes the last ticket may reset the counter by a plain store. Only the write
/// itself is ordered: what its thread did before needs a fence.
///
/// Volatile accesses are strong, as in PTX, but not between lanes of one warp in shared memory: code that relies on
/// lanes in lockstep is wrong since Volta, volatile or not.
class Races : public Detector, private ConflictJudge {
  public:
    explicit Races(RaceOptions options);

    /// Accesses count lanes; the rest events.
    struct Totals {
        std::uint64_t shared_accesses = 0;
        std::uint64_t global_accesses = 0;
        std::uint64_t barriers = 0;
        std::uint64_t warp_syncs = 0;
        std::uint64_t fences = 0;
        std::uint64_t strong_accesses = 0;
        std::uint64_t same_value_writes = 0;   ///< Not reported unless asked for.
        std::uint64_t unwatched_accesses = 0;  ///< To memory that nobody told of, or out of bounds.
    };

    std::string_view name() const override;
    Checked checked() const override;
    const Totals& totals() const { return totals_; }

    void launch_begin(vgpu::Observed& launch) override;
    void block_begin(std::uint64_t block) override;
    void memory(const vgpu::MemoryEvent& event) override;
    void barrier(const vgpu::BarrierEvent& event) override { ordering_.arrive(event); }
    void barrier_complete(std::uint64_t block, std::uint32_t barrier) override;
    void warp_sync(const vgpu::WarpSyncEvent& event) override;
    void fence(const vgpu::FenceEvent& event) override;
    void block_end(std::uint64_t block) override;
    void launch_end(const vgpu::LaunchStats& stats) override;
    void allocated(vgpu::Address address, std::uint64_t bytes) override { global_.add(address, bytes); }
    void known(vgpu::Address address, std::uint64_t bytes) override { global_.add(address, bytes); }
    void freed(vgpu::Address address) override { global_.remove(address); }

  private:
    void access(const vgpu::MemoryEvent& event, vgpu::Space space);
    void access_lanes(const vgpu::MemoryEvent& event, vgpu::Space space, BlockOrder& me, Access& now);
    void synchronise(const vgpu::MemoryEvent& event, vgpu::Space space);
    void judge(const Access& earlier, const Access& now, std::uint64_t offset, const History& history) override;
    /// Whether a strong write of lane `earlier_lane` was read by something that happens before what `thread` does now.
    bool observed(const Access& earlier, std::uint32_t earlier_lane, std::uint32_t thread,
                  const History& history) const;
    bool strong_together(const Access& earlier, const Access& now) const;
    void conflict(const Access& earlier, std::uint32_t earlier_lane, const Access& now, std::uint32_t lane,
                  std::uint64_t offset);
    bool writes_same_value(const Access& earlier, std::uint32_t earlier_lane, const Access& now,
                           std::uint32_t lane) const;
    RaceShadow& shared_of(const BlockOrder& me);

    RaceOptions options_;
    Ordering ordering_;
    FindingFolder folder_;
    vgpu::Observed* launch_ = nullptr;
    ShadowMap<RaceShadow> global_;
    std::vector<std::unique_ptr<RaceShadow>> shared_;  ///< By slot of the block.
    std::uint64_t shared_bytes_ = 0;

    // Of the access that is being judged.
    const vgpu::MemoryEvent* event_ = nullptr;
    vgpu::Space space_ = vgpu::Space::Global;
    vgpu::Address base_ = 0;  ///< Of offset 0 of the shadow.
    const BlockOrder* me_ = nullptr;

    Totals totals_;
};

}  // namespace gradguard::observers
