// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/faults/operation.h"

namespace gradguard::testing {

/// What an enumeration of host allocations has found.
struct AllocationPoints {
    std::uint64_t thrown = 0;     ///< Points at which std::bad_alloc came out of the step.
    std::uint64_t reported = 0;   ///< At which the device failed for want of host memory, and said so.
    std::uint64_t completed = 0;  ///< At which somebody coped, and the step was as it should be.
    std::vector<std::string> problems;

    std::uint64_t points() const { return thrown + reported + completed; }
};

enum class Bench : std::uint8_t {
    kWarm,     ///< The kernels are loaded.
    kCold,     ///< Each point has a new device: loading and decoding of the kernels is part of the step.
    kObserved  ///< Warm, under all observers, with recorded calls.
};

/// Fails the k-th host allocation of a step (operator new, the virtual GPU's own included) for every k. Each step must
/// end with std::bad_alloc, with DeviceFailure or Readback that names it, or as if nothing had failed; with inputs bit
/// for bit as they were, no host or device memory left, and the next step as undisturbed.
AllocationPoints fail_every_allocation(const Group& group, const Operation& operation, Bench kind);

/// The same for a call that needs no device call: it ends with std::bad_alloc, or as it does with enough memory, which
/// `ending` tells.
AllocationPoints fail_every_allocation(const std::function<std::string()>& ending);

}  // namespace gradguard::testing
