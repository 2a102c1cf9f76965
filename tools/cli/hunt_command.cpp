// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/hunt_command.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "harness/campaign/hunt.h"
#include "harness/campaign/summary.h"
#include "harness/case/case_file.h"
#include "harness/compare/report.h"
#include "harness/io/file_error.h"
#include "tools/cli/open_subject.h"
#include "tools/cli/options.h"
#include "tools/cli/text_table.h"

namespace gradguard::tools {
namespace {

using harness::Find;
using harness::HuntObjective;

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

int run_hunt(const HuntRequest& request) {
    if (request.list) return list();
    const auto objectives = chosen(request);
    make_folder(request.out);
    harness::HuntOptions options;
    options.seconds = static_cast<double>(request.milliseconds) * 1e-3;
    options.evaluations = request.evaluations;
    options.seed = request.seed;
    options.subject = subject_options(request.device, request.compiler);
    options.compiler = request.compiler.name.value_or("ptx");
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
