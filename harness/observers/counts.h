// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/observers/detector.h"

namespace gradguard::observers {

/// What lanes asked of one kind of memory.
struct Traffic {
    std::uint64_t accesses = 0;  ///< Warp instructions.
    std::uint64_t bytes = 0;     ///< Summed over lanes.
    std::uint64_t sectors = 0;   ///< Different 32-byte sectors of each warp instruction, summed. Global memory only.
};

struct Totals {
    Traffic global_reads;
    Traffic global_writes;
    Traffic shared_reads;
    Traffic shared_writes;
    std::uint64_t atomics = 0;  ///< Warp instructions; their bytes count as read and as written.
    std::uint64_t branches = 0;
    std::uint64_t divergent_branches = 0;  ///< Some lanes took it, some did not.
    std::uint64_t barriers = 0;            ///< Completed, of blocks.
    std::uint64_t blocks = 0;
    std::uint64_t launches = 0;
    /// Lane instructions by name; empty unless MachineOptions::count_by_kind is set.
    std::map<std::string, std::uint64_t> instructions;
    std::uint64_t lane_instructions = 0;
};

/// Dynamic counts of everything that ran.
class Counts : public Detector {
  public:
    std::string_view name() const override { return "counts"; }
    Checked checked() const override;
    const Totals& totals() const { return totals_; }
    void reset() { totals_ = {}; }

    void memory(const vgpu::MemoryEvent& event) override;
    void barrier_complete(std::uint64_t, std::uint32_t) override { ++totals_.barriers; }
    void branch(const vgpu::BranchEvent& event) override;
    void launch_end(const vgpu::LaunchStats& stats) override;

  private:
    Totals totals_;
};

}  // namespace gradguard::observers
