// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// What virtual drivers say of the programs that they ran (harness/vdriver/control.h, "Report").
namespace gradguard::tools {

/// One report of several processes: counts are summed, equal findings folded. Keeps "configuration" of the first.
nlohmann::ordered_json merge_reports(const std::vector<nlohmann::ordered_json>& reports);

/// What is against the program: findings, and what stopped its contexts. Of what was refused it has an error code.
bool has_complaints(const nlohmann::ordered_json& report);
std::uint64_t launches_in(const nlohmann::ordered_json& report);

/// For people: a table of kernels, the approximate and flushing instructions, the findings, what was checked.
std::string report_text(const nlohmann::ordered_json& report);

}  // namespace gradguard::tools
