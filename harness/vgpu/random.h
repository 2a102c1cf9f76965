// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradguard::vgpu {

/// splitmix64: the same seed gives the same choices on every machine.
constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15ULL;
        return mix(state_);
    }
    /// In [0, bound), bound > 0. Its slight bias does not matter for choices.
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }
    bool coin() { return (next() & 1) != 0; }

  private:
    std::uint64_t state_;
};

}  // namespace gradguard::vgpu
