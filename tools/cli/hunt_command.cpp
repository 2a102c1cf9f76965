// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/hunt_command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>

#include "harness/campaign/hunt.h"
#include "harness/campaign/summary.h"
#include "harness/case/case_file.h"
#include "harness/compare/report.h"
#include "harness/io/file_error.h"
#include "tools/cli/number_text.h"
#include "tools/cli/options.h"
#include "tools/cli/text_table.h"

namespace gradguard::tools {
namespace {

using harness::Find;
using harness::HuntObjective;

constexpr std::uint64_t kLongestMilliseconds = 24ULL * 3600 * 1000;

constexpr const char* kFooter =
    R"(Climbs over exponents and bits of the inputs, on the update's and the norm's formulas in process, towards inputs whose
rounding errors add up; then replays the worst on the device and prints how much of the bound it used there. Only
balanced inputs in the normal range count: an underflow or one dominant summand fills any bound. Further objectives drive
an intermediate to the edge of overflow or underflow. Each find becomes a case file.

Exit status: 0 every find is admitted by its judge, 1 one is not, 2 bad usage, 4 device trouble.

Examples:
  gradguard hunt
  gradguard hunt --objective p/fmad --time 60s --seed 3
  gradguard hunt --json --out finds)";

std::uint64_t integer(const std::string& flag, const std::string& text) {
    const auto value = parse_u64(text);
    if (!value) throw UsageError(flag + ": want an integer from 0 to 2^64 - 1, got \"" + text + "\"");
    return *value;
}

std::uint64_t milliseconds(const std::string& text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string unit = text.substr(digits);
    const std::pair<const char*, std::uint64_t> units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}};
    const auto count = parse_u64(text.substr(0, digits));
    for (const auto& [name, factor] : units) {
        if (unit != name || !count || *count == 0 || *count > kLongestMilliseconds / factor) continue;
        return *count * factor;
    }
    throw UsageError("--time: want a time like 500ms, 10s or 5m, at most a day, got \"" + text + "\"");
}

std::vector<const HuntObjective*> chosen(const HuntRequest& request) {
    std::vector<const HuntObjective*> objectives;
    const auto& all = harness::hunt_objectives();
    if (request.objectives.empty()) {
        for (const HuntObjective& objective : all) objectives.push_back(&objective);
    }
    for (const std::string& name : request.objectives) {
        const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
        if (found != all.end()) {
            objectives.push_back(&*found);
            continue;
        }
        std::string known;
        for (const HuntObjective& objective : all) known += (known.empty() ? "" : ", ") + objective.name;
        throw UsageError("--objective: want one of " + known + ", got \"" + name + "\"");
    }
    return objectives;
}

int list() {
    TextTable table({TextTable::Align::kLeft, TextTable::Align::kLeft, TextTable::Align::kLeft});
    for (const HuntObjective& objective : harness::hunt_objectives()) {
        table.add({objective.name, objective.subject, objective.description});
    }
    fmt::print("{}", table.text(""));
    return kWithinBounds;
}

/// "m/fmad" is written to m-fmad.json.
std::string file_of(const HuntRequest& request, const HuntObjective& objective) {
    std::string name = objective.name;
    std::replace(name.begin(), name.end(), '/', '-');
    return (std::filesystem::path(request.out) / (name + ".json")).string();
}

void make_folder(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw harness::FileError(folder, "cannot make the folder: " + error.message());
}

nlohmann::ordered_json find_json(const Find& find, const std::string& replay) {
    nlohmann::ordered_json json;
    json["name"] = find.objective.name;
    json["worst_fraction_of_bound"] = find.fraction;
    json["replay"] = replay;
    json["subject"] = find.objective.subject;
    json["fills_bound"] = find.objective.fills_bound;
    json["ulp"] = find.ulp;
    json["error"] = find.error;
    json["bound"] = find.bound;
    json["place"] = find.place;
    json["evaluations"] = find.evaluations;
    json["admitted"] = find.verdict.ok();
    return json;
}

std::string failures_text(const Find& find, const std::string& replay) {
    std::string text;
    for (harness::Failure failure : find.verdict.failures) {
        failure.notes.push_back("replay   " + replay);
        text += harness::describe(failure);
    }
    return text;
}

}  // namespace

CLI::App* add_hunt(CLI::App& app, HuntRequest& request) {
    CLI::App* hunt =
        app.add_subcommand("hunt", "Searches for the inputs that fill the bounds, and replays them.")->footer(kFooter);
    const auto add = [hunt](const char* flag, const char* type, const char* description,
                            const std::function<void(const std::string&)>& set) {
        hunt->add_option_function<std::string>(flag, set, description)->type_name(type);
    };
    hunt->add_option_function<std::vector<std::string>>(
            "--objective", [&request](const std::vector<std::string>& names) { request.objectives = names; },
            "what to search for, more than once for several; see --list [all]")
        ->allow_extra_args(false)
        ->type_name("NAME");
    add("--time", "T", "for each objective: 500ms, 10s, 5m [10s]",
        [&request](const std::string& text) { request.milliseconds = milliseconds(text); });
    add("--evaluations", "N", "at most so many for each objective, for a result that does not depend on speed",
        [&request](const std::string& text) { request.evaluations = integer("--evaluations", text); });
    add("--seed", "N", "searches elsewhere [0]",
        [&request](const std::string& text) { request.seed = integer("--seed", text); });
    add("--device", "NAME", "what the finds are replayed on [vgpu]",
        [&request](const std::string& text) { request.device = text; });
    add("--out", "DIR", "where the finds go as case files [gradguard-hunt]", [&request](const std::string& text) {
        if (text.empty()) throw UsageError("--out: want a folder, got nothing");
        request.out = text;
    });
    hunt->add_flag("--list", request.list, "print the objectives, and search for nothing");
    hunt->add_flag("--json", request.json, "print one JSON object on standard output");
    return hunt;
}

int run_hunt(const HuntRequest& request) {
    if (request.list) return list();
    const auto objectives = chosen(request);
    make_folder(request.out);
    harness::HuntOptions options;
    options.seconds = static_cast<double>(request.milliseconds) * 1e-3;
    options.evaluations = request.evaluations;
    options.seed = request.seed;
    options.subject.device = request.device;
    using Align = TextTable::Align;
    TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
    table.add({"objective", "worst found", "bound", "share", "ulp", "replay"});
    nlohmann::ordered_json json;
    json["objectives"] = nlohmann::ordered_json::array();
    std::string failures;
    for (const HuntObjective* objective : objectives) {
        const Find find = harness::hunt(objective->name, options);
        const std::string file = file_of(request, *objective);
        harness::write_case(file, find.worst_case);
        const std::string replay = harness::replay_command(file, {});
        table.add({objective->name, fmt::format("{:.4g}", find.error), fmt::format("{:.4g}", find.bound),
                   fmt::format("{:.1f} %", 100.0 * find.fraction), fmt::format("{:.3f}", find.ulp), replay});
        json["objectives"].push_back(find_json(find, replay));
        failures += failures_text(find, replay);
    }
    json["seed"] = request.seed;
    if (request.json) {
        fmt::print("{}\n", json.dump());
    } else {
        fmt::print("worst found against bound\n{}", table.text());
    }
    fmt::print(stderr, "{}", failures);
    return failures.empty() ? kWithinBounds : kOutOfBounds;
}

}  // namespace gradguard::tools
