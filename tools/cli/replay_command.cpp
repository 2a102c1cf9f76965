// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/campaign/case_story.h"
#include "harness/campaign/summary.h"
#include "harness/case/case_file.h"
#include "harness/generators/recipe.h"
#include "harness/io/file_error.h"
#include "harness/subjects/subject.h"
#include "tools/cli/commands.h"
#include "tools/cli/open_subject.h"

namespace gradguard::tools {
namespace {

using Json = nlohmann::ordered_json;
using harness::CaseStory;

/// What is run.
struct Replay {
    harness::Case c;
    const harness::Property* property = nullptr;
    std::string subject;
};

Replay read_replay(const ReplayRequest& request) {
    Replay replay;
    replay.c = harness::read_case(request.file);
    replay.property = harness::find_property(replay.c.property);
    if (replay.property == nullptr) {
        throw harness::FileError(request.file, "no property is named \"" + replay.c.property + "\"; see check --list");
    }
    replay.subject = request.subject.value_or(replay.c.subject.empty() ? "vgpu/fmad" : replay.c.subject);
    replay.subject = subject_of(replay.subject, request.device, request.compiler);
    replay.c.subject = replay.subject;
    return replay;
}

void print_lines(const char* heading, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    fmt::print("{}\n", heading);
    for (const std::string& line : lines) fmt::print("    {}\n", line);
}

std::string verdict_text(const CaseStory& story) {
    if (!story.verdict.applicable) return "not applicable: the case does not meet the property's preconditions";
    return story.verdict.verdict.ok() ? "within bounds" : "out of bounds";
}

void print_text(const Replay& replay, const CaseStory& story) {
    fmt::print("{}\nproperty {}: {}\nsubject {}\n", harness::show(replay.c), replay.property->name,
               replay.property->fact, replay.subject);
    for (std::size_t k = 0; k < story.steps.size(); ++k) {
        const harness::StepStory& step = story.steps[k];
        fmt::print("\nstep {}: {}\n", k, step.control);
        if (step.expected == step.got) {
            print_lines("  oracle and subject", step.got);
        } else {
            print_lines("  oracle", step.expected);
            print_lines("  subject", step.got);
        }
        print_lines("  the norm", step.norm);
    }
    if (story.element) {
        fmt::print("\nstep {}, entry {}, element {}\n", story.element->step, story.element->entry,
                   story.element->index);
        for (const std::string& line : story.lines) fmt::print("  {}\n", line);
    }
    for (const harness::Failure& failure : story.verdict.verdict.failures) {
        fmt::print("\n{}", harness::describe(failure));
    }
    fmt::print("\n{}\n", verdict_text(story));
}

void print_json(const ReplayRequest& request, const Replay& replay, const CaseStory& story) {
    Json json = {
        {"case_file", request.file}, {"property", replay.property->name},      {"fact", replay.property->fact},
        {"subject", replay.subject}, {"applicable", story.verdict.applicable}, {"ok", !story.verdict.failed()}};
    json["steps"] = Json::array();
    for (const harness::StepStory& step : story.steps) {
        json["steps"].push_back(
            {{"control", step.control}, {"oracle", step.expected}, {"subject", step.got}, {"norm", step.norm}});
    }
    json["element"] = nullptr;
    if (story.element) {
        json["element"] = {{"step", story.element->step},
                           {"entry", story.element->entry},
                           {"index", story.element->index},
                           {"lines", story.lines}};
    }
    json["worst"] = Json::object();
    for (std::size_t q = 0; q < harness::kQuantities; ++q) {
        const harness::Worst& worst = story.verdict.verdict.worst[q];
        if (worst.ulp == 0.0 && worst.fraction == 0.0) continue;
        json["worst"][std::string(to_string(static_cast<harness::Quantity>(q)))] = {
            {"ulp", std::isfinite(worst.ulp) ? Json(worst.ulp) : Json("inf")}, {"fraction_of_bound", worst.fraction}};
    }
    json["failures"] = Json::array();
    for (const harness::Failure& failure : story.verdict.verdict.failures) {
        json["failures"].push_back(harness::describe(failure));
    }
    fmt::print("{}\n", json.dump(1));
}

}  // namespace

int run_replay(const ReplayRequest& request) {
    const Replay replay = read_replay(request);
    const harness::SubjectFactory factory = [opening = subject_options(request.device, request.compiler)](
                                                std::string_view name) { return open_subject(name, opening); };
    const std::unique_ptr<harness::Subject> subject = factory(replay.subject);
    const harness::Bench bench(*subject, factory);
    CaseStory story;
    try {
        story = tell_case(*replay.property, bench, replay.c, {request.step, request.entry, request.index});
    } catch (const std::invalid_argument& error) {
        throw UsageError(request.file + ": " + error.what());
    }
    if (request.json) {
        print_json(request, replay, story);
    } else {
        print_text(replay, story);
    }
    return story.verdict.failed() ? kOutOfBounds : kWithinBounds;
}

}  // namespace gradguard::tools
