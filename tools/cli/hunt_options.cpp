// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "tools/cli/hunt_command.h"
#include "tools/cli/number_text.h"
#include "tools/cli/options.h"

namespace gradguard::tools {
namespace {

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
    add_compiler(*hunt, request.compiler, "ptx");
    add("--out", "DIR", "where the finds go as case files [gradguard-hunt]", [&request](const std::string& text) {
        if (text.empty()) throw UsageError("--out: want a folder, got nothing");
        request.out = text;
    });
    hunt->add_flag("--list", request.list, "print the objectives, and search for nothing");
    hunt->add_flag("--json", request.json, "print one JSON object on standard output");
    return hunt;
}

}  // namespace gradguard::tools
