// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "harness/vgpu/async_copy.h"
#include "harness/vgpu/exec/op.h"

/// What handlers of rare instructions ask of the launch that runs them.
namespace gradguard::vgpu::exec {

void start_copies(Context& context, const std::vector<AsyncCopy>& copies);
/// cp.async.commit_group of these lanes.
void commit_copies(Context& context, std::uint32_t mask);
/// Until at most `groups` groups of each of these lanes are under way.
void wait_for_copies(Context& context, std::uint32_t mask, std::uint32_t groups);
/// The 128 bytes at `address` lose what they held.
void discard_line(Context& context, const Op& op, std::uint64_t address, unsigned lane);
/// The value of a special register that may differ at each read (ast::SpecialRegister as a number).
std::uint64_t read_special(Context& context, std::uint32_t which);

/// Which access of an instruction that makes several.
struct MemoryPlace {
    bool is_shared = false;  ///< Else global.
    bool is_store = false;
    std::uint32_t bytes = 0;
};
/// memory_fault() for such an access. Throws.
[[noreturn]] void memory_fault_at(Context& context, const Op& op, MemoryPlace place, std::uint64_t address,
                                  unsigned lane);

}  // namespace gradguard::vgpu::exec
