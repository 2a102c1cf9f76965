// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "harness/observers/counts.h"
#include "harness/observers/detector.h"
#include "harness/vgpu/finding.h"

/// What observers have to say, for people and as JSON.
namespace gradguard::tools {

struct Observations {
    std::vector<observers::Checked> checked;
    std::vector<vgpu::Finding> findings;
    std::map<std::string, observers::Totals> kernels;  ///< Empty when nobody counted.
};

/// One line: what each observer looked at, which saw nothing to check, how many findings. Empty without observers.
std::string checked_text(const Observations& observations);
/// A line for each finding.
std::string findings_text(std::span<const vgpu::Finding> findings);
/// Traffic by kernel and instructions by kind.
std::string counts_text(const std::map<std::string, observers::Totals>& kernels);

/// Adds "observers", "nothing_to_check" and "findings", and, where somebody counted, "counts".
void add_json(nlohmann::ordered_json& json, const Observations& observations);

/// One line for an error message: the first finding and how many more there are.
std::string summary_of(std::span<const vgpu::Finding> findings);

}  // namespace gradguard::tools
