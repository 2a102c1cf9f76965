// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/campaign/campaign.h"
#include "harness/campaign/shrink_failure.h"
#include "harness/campaign/summary.h"
#include "harness/generators/recipe.h"
#include "harness/subjects/subject.h"
#include "tools/cli/commands.h"
#include "tools/cli/open_subject.h"
#include "tools/cli/text_table.h"

namespace gradguard::tools {
namespace {

using harness::CampaignFailure;
using harness::CampaignOptions;
using harness::CampaignResult;
using harness::Property;
using Align = TextTable::Align;

constexpr std::uint64_t kUsualCases = 10000;
constexpr const char* kSourceCorpus = "property_tests/corpus";
constexpr const char* kLocalCorpus = "gradguard-cases";

std::atomic<bool> interrupted{false};
std::atomic<int> stop_signal{0};  // which it was
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

/// While it lives, the first SIGINT or SIGTERM asks the campaign to stop; a second one ends the program.
class StopOnSignal {
  public:
    StopOnSignal() {
        interrupted = false;
        stop_signal = 0;
        struct sigaction action = {};
        action.sa_handler = [](int signal) {
            stop_signal = signal;
            interrupted = true;
        };
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        sigaction(SIGINT, &action, &old_interrupt_);
        sigaction(SIGTERM, &action, &old_terminate_);
    }
    ~StopOnSignal() {
        sigaction(SIGINT, &old_interrupt_, nullptr);
        sigaction(SIGTERM, &old_terminate_, nullptr);
    }
    StopOnSignal(const StopOnSignal&) = delete;
    StopOnSignal& operator=(const StopOnSignal&) = delete;

  private:
    struct sigaction old_interrupt_ = {}, old_terminate_ = {};
};

/// One line on a terminal that renews itself; nothing elsewhere.
class ProgressLine {
  public:
    ~ProgressLine() { clear(); }
    void show(const harness::CampaignProgress& progress) {
        if (::isatty(STDERR_FILENO) == 0) return;
        std::string line;
        if (progress.stage == "cases") {
            line = fmt::format("{} cases", grouped(progress.cases));
            if (progress.of) line += fmt::format(" of {}", grouped(*progress.of));
            const double rate = progress.seconds > 0 ? static_cast<double>(progress.cases) / progress.seconds : 0.0;
            line += fmt::format(", {}/s, worst {:.3f} of a bound", grouped(static_cast<std::uint64_t>(rate)),
                                progress.worst_fraction);
        } else {
            line = fmt::format("a failure after {} cases: {}", grouped(progress.cases), progress.stage);
        }
        fmt::print(stderr, "\r\033[K{}", line);
        std::fflush(stderr);
        shown_ = true;
    }
    void clear() {
        if (shown_) fmt::print(stderr, "\r\033[K");
        shown_ = false;
    }

  private:
    bool shown_ = false;
};

int list_json() {
    nlohmann::ordered_json json = {{"properties", nlohmann::ordered_json::array()},
                                   {"subjects", nlohmann::ordered_json::array()}};
    for (const Property& property : harness::properties()) {
        json["properties"].push_back({{"name", property.name}, {"fact", property.fact}});
    }
    for (const harness::SubjectInfo& subject : harness::list_subjects()) {
        json["subjects"].push_back(
            {{"name", subject.name}, {"description", subject.description}, {"planted", subject.planted}});
    }
    fmt::print("{}\n", json.dump(1));
    return kWithinBounds;
}

int list_all() {
    TextTable properties({Align::kLeft, Align::kLeft});
    for (const Property& property : harness::properties()) properties.add({property.name, property.fact});
    TextTable subjects({Align::kLeft, Align::kLeft});
    for (const harness::SubjectInfo& subject : harness::list_subjects())
        subjects.add({subject.name, subject.description});
    subjects.add({"ptx:FOLDER", "the library with statistics.ptx and update.ptx of a folder"});
    fmt::print("properties (--only NAME):\n{}\nsubjects (--subject NAME):\n{}", properties.text(), subjects.text());
    return kWithinBounds;
}

std::vector<const Property*> chosen_properties(const CheckRequest& request) {
    std::vector<const Property*> chosen;
    std::vector<std::string> names = request.properties;
    if (names.empty() && request.elements) names = {"guarded_step"};
    for (const std::string& name : names) {
        const Property* property = harness::find_property(name);
        if (property == nullptr) throw UsageError("--only: no property is named \"" + name + "\"; see check --list");
        chosen.push_back(property);
    }
    if (chosen.empty()) {
        for (const Property& property : harness::properties()) chosen.push_back(&property);
    }
    return chosen;
}

bool is_planted(const std::string& name) {
    const std::vector<harness::SubjectInfo> known = harness::list_subjects();
    return std::ranges::any_of(known, [&](const auto& info) { return info.name == name && info.planted; });
}

bool is_own(const std::string& name) {
    return harness::subject_on(name, "vgpu").starts_with("vgpu/") || name == "oracle";
}

CampaignOptions options_of(const CheckRequest& request) {
    CampaignOptions options;
    options.seed = request.seed;
    options.cases = request.cases;
    options.time = request.time;
    if (!request.cases && !request.time) options.cases = kUsualCases;
    options.shard = request.shard;
    options.shards = request.shards;
    options.jobs = request.jobs;
    options.subjects = request.subjects;
    if (options.subjects.empty()) options.subjects = {"vgpu/fmad", "vgpu/nofmad"};
    for (std::string& subject : options.subjects) subject = subject_of(subject, request.device, request.compiler);
    options.properties = chosen_properties(request);
    options.shape.elements = request.elements;
    options.factory = [opening = subject_options(request.device, request.compiler)](std::string_view name) {
        return open_subject(name, opening);
    };
    options.stop = &interrupted;
    // What is wrong on purpose is to be found anew each time, and only the library's own failures are the source
    // tree's.
    const bool planted = std::ranges::any_of(options.subjects, is_planted);
    const bool own = std::ranges::all_of(options.subjects, is_own);
    const std::string usual = own && std::filesystem::is_directory(kSourceCorpus) ? kSourceCorpus : kLocalCorpus;
    const bool none = request.corpus == "none";
    options.failure_folder = none ? kLocalCorpus : request.corpus.value_or(usual);
    if (!none && (!planted || request.corpus)) options.corpus = options.failure_folder;
    if (request.corpus && !none && !std::filesystem::is_directory(*request.corpus)) {
        if (std::filesystem::exists(*request.corpus))
            throw UsageError("--corpus: " + *request.corpus + " is no folder");
    }
    return options;
}

/// "m on vgpu/fmad, case 12, entry 0, index 3": where the property used most of a bound, else erred most.
std::string where(const CampaignResult& result, const harness::Tally& tally) {
    for (const bool of_bound : {true, false}) {
        std::size_t best = harness::kQuantities;
        for (std::size_t q = 0; q < harness::kQuantities; ++q) {
            const auto record = [&](std::size_t i) {
                return of_bound ? tally.quantities[i].fraction : tally.quantities[i].ulp;
            };
            if (record(q).seen && (best == harness::kQuantities || record(q).value > record(best).value)) best = q;
        }
        if (best == harness::kQuantities) continue;
        const harness::Record& record = of_bound ? tally.quantities[best].fraction : tally.quantities[best].ulp;
        const harness::Pair& pair = result.plan->pairs()[result.plan->at(record.number).pair];
        return fmt::format("{} on {}, {}", to_string(static_cast<harness::Quantity>(best)), pair.subject,
                           harness::place_text(record));
    }
    return "";
}

void print_table(const CampaignResult& result) {
    TextTable table(
        {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
    table.add({"property", "cases", "asserted", "classes", "worst ulp", "of bound", "where"});
    std::size_t untried = 0;
    for (const harness::PropertySummary& summary : harness::summarize(result)) {
        const harness::Tally& total = summary.total;
        if (total.cases == 0) {
            ++untried;
            continue;
        }
        table.add({summary.property->name, grouped(total.cases), grouped(total.cases - total.not_applicable),
                   std::to_string(total.coverage.size()), harness::short_number(total.worst_ulp()),
                   harness::short_number(total.worst_fraction()), where(result, total)});
    }
    fmt::print("{}", table.text());
    if (untried != 0) fmt::print("  {} more had no case before the run ended\n", untried);
}

void print_failure(const CampaignFailure& failure) {
    const harness::CaseSize size = harness::size_of(failure.shrunk);
    fmt::print("\n{} on {}, {}\n", failure.property, failure.subject,
               failure.number ? fmt::format("case {}, shrunk in {} steps ({} cases run)", *failure.number,
                                            failure.shrink_steps, failure.shrink_evaluations)
                              : "a case of the corpus");
    fmt::print("{} of gradients, {} not zero\n\n", counted(size.elements, "element"), size.nonzero_gradients);
    if (!failure.failures.empty()) fmt::print("{}", harness::describe(failure.failures.front()));
    if (failure.failures.size() > 1) fmt::print("  and {} more\n", counted(failure.failures.size() - 1, "failure"));
    fmt::print("\n{}\nreplay: {}\n", harness::show(failure.shrunk),
               harness::replay_command(failure.case_file, failure.subject));
}

void print_result(const CheckRequest& request, const CampaignResult& result) {
    fmt::print("check of {}: seed {}, shard {}/{}\n\n", fmt::join(harness::subjects_of(result), ", "), result.seed,
               result.shard + 1, result.shards);
    print_table(result);
    fmt::print("\n{} and {} of the corpus in {:.1f} s with {}: {:.0f} cases a second\n", counted(result.cases, "case"),
               result.corpus_cases, result.seconds, counted(result.jobs, "job"), result.cases_per_second());
    for (const harness::PropertySummary& summary : harness::summarize(result)) {
        for (const std::string& gap : summary.gaps) fmt::print("not hit: {} on {}\n", summary.property->name, gap);
    }
    for (const CampaignFailure& failure : result.failures) print_failure(failure);
    if (request.report) fmt::print("report: {}\n", (std::filesystem::path(*request.report) / "report.html").string());
    fmt::print("{}\n", !result.failures.empty() ? "out of bounds: a property failed"
                       : !result.ok()           ? "not hit: a run of this length must hit every class"
                       : result.interrupted     ? "interrupted: within bounds as far as it came"
                                                : "within bounds: every property held in every case");
}

}  // namespace

int run_check(const CheckRequest& request) {
    if (request.list) return request.json ? list_json() : list_all();
    CampaignOptions options = options_of(request);
    if (request.report) harness::require_writable_folder(*request.report);
    CampaignResult result;
    {
        const StopOnSignal signals;
        ProgressLine line;
        options.progress = [&line](const harness::CampaignProgress& progress) { line.show(progress); };
        result = harness::run_campaign(options);
        line.clear();
        if (result.pairs.empty()) throw UsageError("--only: none of these properties applies to the subject");
        if (request.report) harness::write_reports(*request.report, result);
    }
    if (request.json) {
        fmt::print("{}\n", harness::campaign_to_json(result, harness::worst_cases(result)));
    } else {
        print_result(request, result);
    }
    if (stop_signal != 0) return kStoppedBySignal + stop_signal;
    if (!result.failures.empty()) return kOutOfBounds;
    return result.ok() ? kWithinBounds : kOutOfBounds;
}

}  // namespace gradguard::tools
