// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "harness/vgpu/observer.h"

namespace gradguard::observers {

/// Findings of one launch, folded where they arise: a broken kernel has one for each access, and describing it in words
/// is slow. Two are equal when kind, space and both instructions are.
class FindingFolder {
  public:
    /// Counts one more; `describe()` makes the finding when it is the first of its kind.
    template <class Describe>
    void add(vgpu::FindingKind kind, vgpu::Space space, std::uint32_t instruction, std::uint32_t other,
             Describe&& describe) {
        const Key key{kind, space, instruction, other};
        const auto at = findings_.find(key);
        if (at != findings_.end()) {
            ++at->second.second.count;
            return;
        }
        findings_.emplace(key, std::pair{order_++, describe()});
    }
    /// Hands them to the launch, in the order of first sight, and starts anew.
    void report_to(vgpu::Observed& launch) {
        std::map<std::uint64_t, vgpu::Finding> ordered;
        for (auto& [key, entry] : findings_) ordered.emplace(entry.first, std::move(entry.second));
        findings_.clear();
        for (auto& [order, finding] : ordered) launch.report(std::move(finding));
    }
    void clear() { findings_.clear(); }

  private:
    using Key = std::tuple<vgpu::FindingKind, vgpu::Space, std::uint32_t, std::uint32_t>;
    std::map<Key, std::pair<std::uint64_t, vgpu::Finding>> findings_;
    std::uint64_t order_ = 0;
};

}  // namespace gradguard::observers
