// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "harness/vgpu/finding.h"

namespace gradguard::vgpu {

/// Findings in the order of first sight; equal ones (same kind, place, other party) are folded and counted.
class FindingLog {
  public:
    void add(Finding finding) {
        const auto same = std::find_if(findings_.begin(), findings_.end(), [&](const Finding& old) {
            return old.kind == finding.kind && old.place == finding.place && old.other == finding.other &&
                   old.space == finding.space;
        });
        if (same == findings_.end())
            findings_.push_back(std::move(finding));
        else
            same->count += finding.count;
    }
    std::span<const Finding> all() const { return findings_; }

  private:
    std::vector<Finding> findings_;
};

}  // namespace gradguard::vgpu
