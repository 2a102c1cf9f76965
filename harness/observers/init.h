// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "harness/observers/defined_bytes.h"
#include "harness/observers/detector.h"
#include "harness/observers/folder.h"
#include "harness/observers/shadow_map.h"

namespace gradguard::observers {

/// Reads of memory that neither the host nor a kernel has written since it was allocated (shared: since the block
/// began). Atomics read what they change. An access is reported when any of its bytes is undefined.
///
/// Local memory is another thing: what compilers keep there is copied whole, with parts that were never set. Reading
/// such bytes is no finding; using what was read is, as with registers (decode/definedness.h in harness/vgpu). The
/// finding is at the read; its other place is the use. Parameters of calls are no memory of the program.
class Init : public Detector {
  public:
    std::string_view name() const override { return "init"; }
    Checked checked() const override;

    void launch_begin(vgpu::Observed& launch) override;
    void block_begin(std::uint64_t block) override;
    void memory(const vgpu::MemoryEvent& event) override;
    bool wants_registers() const override { return true; }
    void undefined_register(const vgpu::UndefinedRegisterEvent& event) override;
    void block_end(std::uint64_t block) override;
    void launch_end(const vgpu::LaunchStats& stats) override;
    void allocated(vgpu::Address address, std::uint64_t bytes) override { global_.add(address, bytes); }
    void known(vgpu::Address address, std::uint64_t bytes) override { global_.add(address, bytes); }
    void freed(vgpu::Address address) override { global_.remove(address); }
    void host_wrote(vgpu::Address address, std::uint64_t bytes) override;

  private:
    void access(const vgpu::MemoryEvent& event, vgpu::Space space);
    /// One lane or neighbouring ones, from lane `first` on.
    void check(const vgpu::MemoryEvent& event, vgpu::Space space, DefinedBytes& memory, vgpu::Address base,
               std::uint64_t offset, std::uint32_t bytes, std::uint32_t first);
    vgpu::Finding describe(const vgpu::UndefinedRegisterEvent& event, std::uint32_t lane) const;
    /// What the threads of a block share.
    DefinedBytes& shared_of(std::uint64_t block);

    vgpu::Observed* launch_ = nullptr;
    FindingFolder folder_;
    ShadowMap<DefinedBytes> global_;
    std::unordered_map<std::uint64_t, std::unique_ptr<DefinedBytes>> shared_;
    std::vector<std::unique_ptr<DefinedBytes>> spare_;
    std::uint64_t last_block_ = 0;
    DefinedBytes* last_shared_ = nullptr;
    std::uint64_t shared_bytes_ = 0;
    std::uint64_t shared_reads_ = 0;
    std::uint64_t global_reads_ = 0;
    std::uint64_t local_reads_ = 0;
};

}  // namespace gradguard::observers
