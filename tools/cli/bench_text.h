// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace gradguard::tools {

/// A report of `bench step` for people: one screen.
std::string bench_report_text(const nlohmann::ordered_json& report);

/// Several as a table, a line for each path.
std::string bench_table_text(std::span<const nlohmann::ordered_json> reports);

}  // namespace gradguard::tools
