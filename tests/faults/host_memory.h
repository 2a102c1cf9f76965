// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// This program's operator new, which counts and can be made to fail. For programs of one thread.
namespace gradguard::testing::host_memory {

/// The n-th allocation from now (0 is the next one) throws std::bad_alloc, and only that one.
void fail_at(std::uint64_t n);

/// No allocation fails any more; whether one did since fail_at().
bool stop_failing();

/// Allocations so far.
std::uint64_t allocations();

/// Those of them that have not been freed.
std::uint64_t live();

}  // namespace gradguard::testing::host_memory
