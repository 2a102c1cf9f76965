// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "bench/step_paths.h"
#include "harness/observers/counts.h"

namespace gradguard::bench {

/// What one step of a path asks of its device.
struct CallCounts {
    std::uint64_t launches = 0;
    std::uint64_t allocations = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t readbacks = 0;
    std::uint64_t readback_bytes = 0;
};

/// Takes one step of `path` through a decorator that records every call. Throws Error, BenchFailure.
CallCounts count_calls(const std::shared_ptr<Device>& device, const Entries& start, const StepPath& path);

/// What one step of a path does on a virtual GPU of its own with the kernels of `source`, by kernel: instructions,
/// bytes, 32-byte sectors. Counts, not times. Throws Error, BenchFailure.
std::map<std::string, observers::Totals> count_work(const KernelSource& source, const Entries& start,
                                                    const StepPath& path);

}  // namespace gradguard::bench
