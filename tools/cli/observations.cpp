// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/observations.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/devices/finding_json.h"
#include "harness/observers/registry.h"
#include "tools/cli/text_table.h"

namespace gradguard::tools {
namespace {

using Json = nlohmann::ordered_json;
using observers::Totals;
using observers::Traffic;
using Align = TextTable::Align;

/// Kinds of instruction that the text shows; JSON has them all.
constexpr std::size_t kMostKinds = 16;

Json traffic_json(const Traffic& traffic, bool with_sectors) {
    Json json{{"warp_accesses", traffic.accesses}, {"bytes", traffic.bytes}};
    if (with_sectors) json["sectors"] = traffic.sectors;
    return json;
}

Json totals_json(const std::string& kernel, const Totals& totals) {
    Json json;
    json["kernel"] = kernel;
    json["launches"] = totals.launches;
    json["blocks"] = totals.blocks;
    json["lane_instructions"] = totals.lane_instructions;
    json["global_read"] = traffic_json(totals.global_reads, true);
    json["global_written"] = traffic_json(totals.global_writes, true);
    json["shared_read"] = traffic_json(totals.shared_reads, false);
    json["shared_written"] = traffic_json(totals.shared_writes, false);
    json["atomics"] = totals.atomics;
    json["branches"] = totals.branches;
    json["divergent_branches"] = totals.divergent_branches;
    json["barriers"] = totals.barriers;
    json["instructions"] = Json::object();
    for (const auto& [name, count] : totals.instructions) json["instructions"][name] = count;
    return json;
}

std::string instructions_text(const std::map<std::string, Totals>& kernels) {
    std::map<std::string, std::uint64_t> sums;
    std::uint64_t all = 0;
    for (const auto& [kernel, totals] : kernels) {
        for (const auto& [name, count] : totals.instructions) {
            if (count == 0) continue;
            sums[name] += count;
            all += count;
        }
    }
    std::vector<std::pair<std::string, std::uint64_t>> order(sums.begin(), sums.end());
    std::ranges::stable_sort(order, std::ranges::greater{}, [](const auto& entry) { return entry.second; });
    TextTable table({Align::kLeft, Align::kRight, Align::kRight});
    table.add({"instruction", "executed", "share"});
    for (std::size_t i = 0; i < std::min(order.size(), kMostKinds); ++i) {
        table.add({order[i].first, grouped(order[i].second),
                   fmt::format("{:.1f} %", 100.0 * static_cast<double>(order[i].second) / static_cast<double>(all))});
    }
    std::string text = table.text();
    if (order.size() > kMostKinds)
        text += fmt::format("  and {} (--json lists all)\n", counted(order.size() - kMostKinds, "more kind"));
    return text;
}

}  // namespace

std::string checked_text(const Observations& observations) {
    if (observations.checked.empty()) return {};
    std::string text = "observed:";
    const char* separator = " ";
    for (const observers::Checked& checked : observations.checked) {
        text += separator + checked.observer + " (";
        for (std::size_t i = 0; i < checked.counts.size(); ++i) {
            text +=
                fmt::format("{}{} {}", i == 0 ? "" : ", ", checked.counts[i].first, grouped(checked.counts[i].second));
        }
        text += ")";
        separator = ", ";
    }
    const std::vector<std::string> nothing = observers::checked_nothing(observations.checked);
    if (!nothing.empty()) text += fmt::format("; nothing to check for {}", fmt::join(nothing, ", "));
    const std::size_t findings = observations.findings.size();
    return text + "; " + (findings == 0 ? "no finding" : counted(findings, "finding")) + "\n";
}

std::string findings_text(std::span<const vgpu::Finding> findings) {
    std::string text;
    for (const vgpu::Finding& finding : findings) text += "finding: " + finding.message() + "\n";
    return text;
}

std::string counts_text(const std::map<std::string, Totals>& kernels) {
    if (kernels.empty()) return {};
    std::vector<Align> columns(9, Align::kRight);
    columns[0] = Align::kLeft;
    TextTable table(columns);
    table.add({"kernel", "launches", "lane instructions", "bytes read", "sectors", "bytes written", "sectors",
               "shared bytes", "barriers"});
    for (const auto& [kernel, totals] : kernels) {
        table.add({printable(kernel), grouped(totals.launches), grouped(totals.lane_instructions),
                   grouped(totals.global_reads.bytes), grouped(totals.global_reads.sectors),
                   grouped(totals.global_writes.bytes), grouped(totals.global_writes.sectors),
                   grouped(totals.shared_reads.bytes + totals.shared_writes.bytes), grouped(totals.barriers)});
    }
    return table.text() + "\n" + instructions_text(kernels);
}

void add_json(Json& json, const Observations& observations) {
    json["observers"] = Json::array();
    for (const observers::Checked& checked : observations.checked) {
        Json counts = Json::object();
        for (const auto& [what, count] : checked.counts) counts[what] = count;
        json["observers"].push_back({{"name", checked.observer}, {"checked", std::move(counts)}});
    }
    json["nothing_to_check"] = observers::checked_nothing(observations.checked);
    json["findings"] = Json::array();
    for (const vgpu::Finding& finding : observations.findings)
        json["findings"].push_back(Json::parse(harness::finding_to_json(finding)));
    if (observations.kernels.empty()) return;
    Json& kernels = json["counts"]["kernels"];
    for (const auto& [kernel, totals] : observations.kernels) kernels.push_back(totals_json(kernel, totals));
}

std::string summary_of(std::span<const vgpu::Finding> findings) {
    std::string text = findings.size() == 1 ? "a finding" : counted(findings.size(), "finding");
    return text + " against the kernels: " + findings.front().message();
}

}  // namespace gradguard::tools
