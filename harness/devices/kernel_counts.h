// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "harness/observers/counts.h"

namespace gradguard::harness {

/// Dynamic counts of everything that ran, apart for each kernel.
class KernelCounts : public vgpu::Observer {
  public:
    /// By the kernel's name.
    const std::map<std::string, observers::Counts>& by_kernel() const { return by_kernel_; }

    void launch_begin(vgpu::Observed& launch) override;
    void memory(const vgpu::MemoryEvent& event) override { current_->memory(event); }
    void barrier_complete(std::uint64_t block, std::uint32_t barrier) override {
        current_->barrier_complete(block, barrier);
    }
    void branch(const vgpu::BranchEvent& event) override { current_->branch(event); }
    void launch_end(const vgpu::LaunchStats& stats) override { current_->launch_end(stats); }

  private:
    std::map<std::string, observers::Counts> by_kernel_;
    observers::Counts* current_ = nullptr;
};

}  // namespace gradguard::harness
