// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/vgpu/exec/op.h"
#include "harness/vgpu/observer.h"

namespace gradguard::observers {

/// What an observer keeps for each allocation, found by any address in it. `Shadow` is made from the size in bytes when
/// the allocation is first looked at.
template <class Shadow>
class ShadowMap {
  public:
    struct Entry {
        vgpu::Address begin = 0;
        std::uint64_t bytes = 0;
        std::unique_ptr<Shadow> shadow;

        /// Whether [address, address + size) lies inside.
        bool holds(vgpu::Address address, std::uint64_t size) const {
            return address >= begin && size <= bytes && address - begin <= bytes - size;
        }
        Shadow& get() {
            if (!shadow) shadow = std::make_unique<Shadow>(bytes);
            return *shadow;
        }
    };

    void add(vgpu::Address begin, std::uint64_t bytes) {
        const std::uint64_t number = begin >> vgpu::exec::kOffsetBits;
        if (number >= entries_.size()) entries_.resize(number + 1);
        entries_[number] = Entry{begin, bytes, nullptr};
    }
    void remove(vgpu::Address begin) {
        if (Entry* entry = find(begin)) *entry = Entry{};
    }
    /// Null when the address belongs to nothing that is known.
    Entry* find(vgpu::Address address) {
        const std::uint64_t number = address >> vgpu::exec::kOffsetBits;
        return number < entries_.size() && entries_[number].begin != 0 ? &entries_[number] : nullptr;
    }

    template <class Handle>
    void for_each_shadow(Handle&& handle) {
        for (Entry& entry : entries_) {
            if (entry.shadow) handle(*entry.shadow);
        }
    }

  private:
    std::vector<Entry> entries_;
};

}  // namespace gradguard::observers
