// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/observers/detector.h"
#include "harness/observers/folder.h"

/// The observers that need no shadow memory.
namespace gradguard::observers {

/// What a value is used for, in words: "the address".
const char* description_of(vgpu::RegisterUse use);

/// The machine itself checks bounds, alignment and lifetime of every access and reports what is wrong; this one counts
/// what was there to check.
class Bounds : public Detector {
  public:
    std::string_view name() const override { return "bounds"; }
    Checked checked() const override { return {std::string(name()), {{"accesses", accesses_}}}; }
    void memory(const vgpu::MemoryEvent& event) override;

  private:
    std::uint64_t accesses_ = 0;
};

/// Values from registers that the thread never wrote, where they matter: as address, guard, condition, operand of an
/// atomic or a barrier, or stored in global memory. Copying, selecting and computing with them is no finding, as
/// compilers do so and drop the result; see decode/definedness.h in harness/vgpu. Those that come from local memory are
/// findings of Init.
class Registers : public Detector {
  public:
    std::string_view name() const override { return "registers"; }
    Checked checked() const override { return {std::string(name()), {{"register reads", reads_}}}; }
    bool wants_registers() const override { return true; }
    void launch_begin(vgpu::Observed& launch) override;
    void undefined_register(const vgpu::UndefinedRegisterEvent& event) override;
    void launch_end(const vgpu::LaunchStats& stats) override;

  private:
    vgpu::Finding describe(const vgpu::UndefinedRegisterEvent& event, std::uint32_t lane) const;

    vgpu::Observed* launch_ = nullptr;
    FindingFolder folder_;
    std::uint64_t reads_ = 0;
};

/// Writes to buffers that are inputs of a launch.
class Inputs : public Detector {
  public:
    std::string_view name() const override { return "inputs"; }
    /// Accesses that could have written to a marked buffer, and writes seen.
    Checked checked() const override;

    /// No kernel may write [address, address + bytes) until it is unmarked. Marks may overlap and are counted.
    void mark_read_only(vgpu::Address address, std::uint64_t bytes);
    /// Takes back one such mark; without one, nothing happens.
    void unmark(vgpu::Address address, std::uint64_t bytes);

    void launch_begin(vgpu::Observed& launch) override;
    void memory(const vgpu::MemoryEvent& event) override;
    void launch_end(const vgpu::LaunchStats& stats) override;

  private:
    struct Range {
        vgpu::Address begin;
        vgpu::Address end;
    };
    /// The marked range that [begin, end) touches, null if none.
    const Range* touched(vgpu::Address begin, vgpu::Address end) const;

    vgpu::Observed* launch_ = nullptr;
    FindingFolder folder_;
    std::vector<Range> ranges_;
    std::uint64_t writes_ = 0;
    std::uint64_t reads_ = 0;
};

/// Buffers that were allocated and never freed. Ask final_findings() when all owners should be gone.
class Leaks : public Detector {
  public:
    std::string_view name() const override { return "leaks"; }
    Checked checked() const override { return {std::string(name()), {{"allocations", allocations_}}}; }
    std::vector<vgpu::Finding> final_findings() const override;
    void allocated(vgpu::Address address, std::uint64_t bytes) override;
    void freed(vgpu::Address address) override { live_.erase(address); }

  private:
    std::map<vgpu::Address, std::uint64_t> live_;
    std::uint64_t allocations_ = 0;
};

/// Barriers. The machine reports those that a warp fills from different instructions and those that cannot be filled
/// (DivergentBarrier, Deadlock). Beyond that, as BarrierMismatch: arrivals in one phase of a barrier that expect
/// different thread counts, and a barrier of the whole block (__syncthreads()) that warps reach at different places.
/// PTX gives the latter a meaning, CUDA C++ does not.
class Barriers : public Detector {
  public:
    std::string_view name() const override { return "barriers"; }
    Checked checked() const override {
        return {std::string(name()), {{"arrivals", arrivals_}, {"barriers", completed_}}};
    }
    void launch_begin(vgpu::Observed& launch) override;
    void barrier(const vgpu::BarrierEvent& event) override;
    void barrier_complete(std::uint64_t block, std::uint32_t barrier) override;
    void block_end(std::uint64_t block) override;
    void launch_end(const vgpu::LaunchStats& stats) override;

  private:
    /// Between two completions of a barrier of a block: its first arrival.
    struct Phase {
        std::uint32_t expected = 0;
        std::uint32_t instruction = 0;
        vgpu::WarpId warp;
        std::uint32_t lane = 0;
        bool empty = true;
    };
    static constexpr std::uint32_t kBarriers = 16;
    using Phases = std::array<Phase, kBarriers>;
    void mismatch(const vgpu::BarrierEvent& event, const Phase& other, std::string detail);
    Phases& phases_of(std::uint64_t block);

    vgpu::Observed* launch_ = nullptr;
    FindingFolder folder_;
    std::unordered_map<std::uint64_t, Phases> phases_;
    std::uint64_t last_block_ = 0;
    Phases* last_ = nullptr;
    std::uint64_t arrivals_ = 0;
    std::uint64_t completed_ = 0;
};

}  // namespace gradguard::observers
