// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/vgpu/exec/op.h"

namespace gradguard::vgpu {

/// One lane's part of a cp.async that is under way.
struct AsyncCopy {
    const exec::Op* op = nullptr;
    std::uint64_t source = 0;       ///< Global.
    std::uint32_t destination = 0;  ///< In the block's shared memory.
    std::uint32_t group = 0;        ///< Of its lane, from 1; 0: not committed yet.
    std::uint8_t lane = 0;
    std::uint8_t bytes = 0;         ///< Written: 4, 8 or 16.
    std::uint8_t source_bytes = 0;  ///< Read; the rest is zero.
};

/// The asynchronous copies of a warp (PTX ISA "Async-group mechanism"): which are under way, and in which group.
class AsyncCopies {
  public:
    bool empty() const { return under_way_.empty(); }
    void clear();
    void start(const AsyncCopy& copy) {
        used_ = true;
        under_way_.push_back(copy);
    }
    /// cp.async.commit_group of these lanes. A group may be empty.
    void commit(std::uint32_t mask);
    /// Takes out what these lanes have under way, oldest first: of committed groups all but the newest `groups`.
    std::vector<AsyncCopy> take_groups(std::uint32_t mask, std::uint32_t groups);
    /// Takes out whatever these lanes have under way, committed or not.
    std::vector<AsyncCopy> take_all(std::uint32_t mask);

  private:
    template <class Wanted>
    std::vector<AsyncCopy> take(Wanted&& wanted);

    bool used_ = false;  ///< Since clear(): most warps have none.
    std::vector<AsyncCopy> under_way_;
    std::array<std::uint32_t, exec::kLanes> committed_{};  ///< Groups, by lane.
};

}  // namespace gradguard::vgpu
