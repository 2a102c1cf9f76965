// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "harness/generators/random.h"
#include "reference/exact/float_bits.h"

namespace gradguard::harness {

/// How long a climb may go on: until its evaluations or its time are used up.
class ClimbBudget {
  public:
    ClimbBudget(double seconds, std::uint64_t evaluations)
        : end_(std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds))),
          most_(evaluations) {}

    /// Counts one evaluation; false when there is none left.
    bool take() {
        if (most_ != 0 && used_ >= most_) return false;
        if (used_ % 1024 == 0 && std::chrono::steady_clock::now() >= end_) return false;
        ++used_;
        return true;
    }
    std::uint64_t used() const { return used_; }

  private:
    std::chrono::steady_clock::time_point end_;
    std::uint64_t most_;
    std::uint64_t used_ = 0;
};

/// A finite neighbour of x of the same sign: a bit flipped, some ulps away, another mantissa, or a binade away.
inline float mutated(float x, Random& random) {
    const std::uint32_t bits = reference::bits_of(x);
    std::uint32_t other = bits;
    switch (random.below(8)) {
        case 0:
        case 1:
        case 2:
            other = bits ^ (1U << random.below(23));
            break;
        case 3:
        case 4:
            other = bits + static_cast<std::uint32_t>(random.below(65)) - 32U;
            break;
        case 5:
        case 6:
            other = (bits & ~reference::kMantissaBits) | static_cast<std::uint32_t>(random.below(1U << 23U));
            break;
        default:
            other = random.percent(50) ? bits + 0x00800000U : bits - 0x00800000U;
            break;
    }
    const float result = reference::float_of(other);
    const bool fits = reference::is_finite_bits(result) && reference::sign_of(result) == reference::sign_of(x);
    return fits ? result : x;
}

}  // namespace gradguard::harness
