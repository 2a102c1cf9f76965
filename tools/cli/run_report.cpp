// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/text_table.h"

namespace gradguard::tools {
namespace {

using Json = nlohmann::ordered_json;

/// Adds numbers of `more` to those of `sum`, member by member; what only one has is taken over.
void add_numbers(Json& sum, const Json& more) {
    if (sum.is_number() && more.is_number()) {
        sum = sum.get<std::uint64_t>() + more.get<std::uint64_t>();
    } else if (sum.is_object() && more.is_object()) {
        for (const auto& [name, value] : more.items()) {
            if (sum.contains(name))
                add_numbers(sum[name], value);
            else
                sum[name] = value;
        }
    }
}

/// The element of `array` that has the same values under `keys`, made if need be; true when it was there.
bool find_like(Json& array, const Json& like, std::initializer_list<const char*> keys, Json*& found) {
    for (Json& element : array) {
        if (!std::all_of(keys.begin(), keys.end(), [&](const char* key) { return element.at(key) == like.at(key); }))
            continue;
        found = &element;
        return true;
    }
    array.push_back(like);
    found = &array.back();
    return false;
}

void add_elements(Json& array, const Json& more, std::initializer_list<const char*> keys) {
    for (const Json& element : more) {
        Json* same = nullptr;
        if (!find_like(array, element, keys, same)) continue;
        if (same->contains("message"))
            (*same)["count"] = same->at("count").get<std::uint64_t>() + element.at("count").get<std::uint64_t>();
        else
            add_numbers(*same, element);
    }
}

/// "ex2.approx.f32 (1,024)", or without the number when nobody counted.
std::string names_and_counts(const Json& instructions) {
    std::string text;
    for (const auto& [name, count] : instructions.items()) {
        text += text.empty() ? "" : ", ";
        text += count.is_null() ? name : fmt::format("{} ({})", name, grouped(count.get<std::uint64_t>()));
    }
    return text;
}

std::string kernels_text(const Json& kernels) {
    using Align = TextTable::Align;
    TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
    table.add({"kernel", "launches", "blocks", "lane instructions", "barriers"});
    for (const Json& kernel : kernels) {
        const auto number = [&](const char* name) { return grouped(kernel.at(name).get<std::uint64_t>()); };
        table.add({printable(kernel.at("kernel").get<std::string>()), number("launches"), number("blocks"),
                   number("lane_instructions"), number("barriers")});
    }
    return kernels.empty() ? "" : table.text();
}

std::string inexact_text(const Json& kernels) {
    std::string text;
    for (const auto& [member, words] : {std::pair{"approximate_instructions", "approximate"},
                                        std::pair{"flushing_instructions", "subnormals flushed by"}}) {
        for (const Json& kernel : kernels) {
            if (kernel.at(member).empty()) continue;
            text += fmt::format("  {}: {}: {}\n", printable(kernel.at("kernel").get<std::string>()), words,
                                names_and_counts(kernel.at(member)));
        }
    }
    return text;
}

std::string finding_text(const Json& finding) {
    const auto count = finding.at("count").get<std::uint64_t>();
    const auto message = finding.at("message").get<std::string>();
    const bool says_so = count == 1 || message.find(std::to_string(count)) != std::string::npos;
    return fmt::format("finding: {}{}\n", message, says_so ? "" : fmt::format(" (seen {} times)", grouped(count)));
}

std::string checked_text(const Json& report) {
    std::string text;
    for (const auto& [observer, counts] : report.at("checked").items()) {
        std::string what;
        for (const auto& [name, count] : counts.items())
            what += fmt::format("{}{} {}", what.empty() ? "" : ", ", name, grouped(count.get<std::uint64_t>()));
        text += fmt::format("{} {} ({})", text.empty() ? "observed:" : ",", observer, what);
    }
    const std::size_t findings = report.at("findings").size();
    if (text.empty()) text = "observed: by nobody";
    return text + "; " + (findings == 0 ? "no finding" : counted(findings, "finding")) + "\n";
}

}  // namespace

nlohmann::ordered_json merge_reports(const std::vector<Json>& reports) {
    Json all = reports.front();
    for (std::size_t i = 1; i < reports.size(); ++i) {
        const Json& more = reports[i];
        add_elements(all["kernels"], more.at("kernels"), {"kernel", "ptx_file"});
        add_elements(all["findings"], more.at("findings"), {"kind", "message"});
        for (const char* list : {"refused", "failures"})
            for (const Json& words : more.at(list)) all[list].push_back(words);
        for (const Json& allocation : more.at("live").at("allocations"))
            all["live"]["allocations"].push_back(allocation);
        for (const char* numbers : {"calls", "checked", "live", "not_supported"})
            add_numbers(all[numbers], more.at(numbers));
    }
    all["processes"] = reports.size();
    return all;
}

bool has_complaints(const Json& report) { return !report.at("findings").empty() || !report.at("failures").empty(); }

std::uint64_t launches_in(const Json& report) {
    std::uint64_t launches = 0;
    for (const Json& kernel : report.at("kernels")) launches += kernel.at("launches").get<std::uint64_t>();
    return launches;
}

std::string report_text(const Json& report) {
    const Json& kernels = report.at("kernels");
    const std::uint64_t launches = launches_in(report);
    std::string text = fmt::format("virtual GPU (not hardware): {} {} of {}, {}\n", grouped(launches),
                                   launches == 1 ? "launch" : "launches", counted(kernels.size(), "kernel"),
                                   counted(report.at("calls").get<std::uint64_t>(), "driver call"));
    text += kernels_text(kernels) + inexact_text(kernels);
    for (const auto& [function, calls] : report.at("not_supported").items())
        text += fmt::format("not supported: {} (called {} times)\n", function, grouped(calls.get<std::uint64_t>()));
    for (const Json& words : report.at("refused")) text += "refused: " + words.get<std::string>() + "\n";
    for (const Json& words : report.at("failures")) text += "failed: " + words.get<std::string>() + "\n";
    for (const Json& finding : report.at("findings")) text += finding_text(finding);
    return text + checked_text(report);
}

}  // namespace gradguard::tools
