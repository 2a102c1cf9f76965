// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace gradguard::observers {

/// Logical time of one launch: grows with every synchronisation, so that accesses before and after one differ.
using Time = std::uint32_t;

/// A thread, as the ordering of a launch names it.
struct ThreadId {
    std::uint32_t block = 0;
    std::uint16_t thread = 0;

    std::uint32_t warp() const { return thread / 32U; }
    std::uint32_t lane() const { return thread % 32U; }
    bool operator==(const ThreadId&) const = default;
};

/// What somebody knows: for blocks, warps and threads, the time up to which everything they did happens before. A
/// vector clock, compressed: most synchronisation is by whole blocks.
class Clock {
  public:
    void raise_block(std::uint32_t block, Time time) { raise(key(block, 0), time); }
    void raise_warp(std::uint32_t block, std::uint32_t warp, Time time) { raise(key(block, 1 + warp), time); }
    void raise_thread(ThreadId id, Time time) { raise(key(id.block, 64U + id.thread), time); }
    void join(const Clock& other);
    /// The time up to which the actions of this thread are known; 0: nothing is.
    Time of(ThreadId id) const;
    bool empty() const { return entries_.empty(); }

  private:
    struct Entry {
        std::uint64_t key;
        Time time;
    };
    static std::uint64_t key(std::uint32_t block, std::uint32_t code) { return (std::uint64_t{block} << 12) | code; }
    void raise(std::uint64_t key, Time time);
    Time find(std::uint64_t key) const;

    std::vector<Entry> entries_;  ///< Sorted by key.
};

using ClockPointer = std::shared_ptr<const Clock>;

/// The two together; shares an argument where the other is null or the same.
ClockPointer join(const ClockPointer& a, const ClockPointer& b);

}  // namespace gradguard::observers
