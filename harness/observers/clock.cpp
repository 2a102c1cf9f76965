// SPDX-License-Identifier: Apache-2.0
#include "harness/observers/clock.h"

#include <algorithm>

namespace gradguard::observers {

void Clock::raise(std::uint64_t key, Time time) {
    if (time == 0) return;
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                                     [](const Entry& entry, std::uint64_t k) { return entry.key < k; });
    if (at != entries_.end() && at->key == key) {
        at->time = std::max(at->time, time);
    } else {
        entries_.insert(at, Entry{key, time});
    }
}

Time Clock::find(std::uint64_t key) const {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                                     [](const Entry& entry, std::uint64_t k) { return entry.key < k; });
    return at != entries_.end() && at->key == key ? at->time : 0;
}

Time Clock::of(ThreadId id) const {
    if (entries_.empty()) return 0;
    return std::max({find(key(id.block, 0)), find(key(id.block, 1 + id.warp())), find(key(id.block, 64U + id.thread))});
}

void Clock::join(const Clock& other) {
    if (other.entries_.size() <= 4) {
        for (const Entry& entry : other.entries_) raise(entry.key, entry.time);
        return;
    }
    std::vector<Entry> merged;
    merged.reserve(entries_.size() + other.entries_.size());
    auto mine = entries_.begin();
    for (const Entry& entry : other.entries_) {
        while (mine != entries_.end() && mine->key < entry.key) merged.push_back(*mine++);
        if (mine != entries_.end() && mine->key == entry.key) {
            merged.push_back({entry.key, std::max(entry.time, mine->time)});
            ++mine;
        } else {
            merged.push_back(entry);
        }
    }
    merged.insert(merged.end(), mine, entries_.end());
    entries_ = std::move(merged);
}

ClockPointer join(const ClockPointer& a, const ClockPointer& b) {
    if (!b || a == b) return a;
    if (!a) return b;
    auto both = std::make_shared<Clock>(*a);
    both->join(*b);
    return both;
}

}  // namespace gradguard::observers
