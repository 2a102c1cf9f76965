// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradguard::harness {

/// splitmix64's output function: the same seed gives the same draws on every machine.
constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31U);
}

/// FNV-1a: std::hash may differ from one library to the next.
constexpr std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    return hash;
}

/// Splitmix64: what a recipe is drawn and an array is filled with. The standard's distributions differ from one library
/// to the next, and RapidCheck's generators need 220 ns for a number.
class Random {
  public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

    constexpr std::uint64_t next() {
        const std::uint64_t drawn = mix(state_);
        state_ += 0x9E3779B97F4A7C15ULL;
        return drawn;
    }
    /// In [0, bound), bound > 0. Its bias of at most bound / 2^64 does not matter here.
    constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }
    /// In [low, high].
    constexpr int between(int low, int high) {
        return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    constexpr bool percent(unsigned chance) { return below(100) < chance; }
    template <class T, std::size_t kCount>
    constexpr const T& pick(const std::array<T, kCount>& values) {
        return values[below(kCount)];
    }

  private:
    std::uint64_t state_;
};

}  // namespace gradguard::harness
