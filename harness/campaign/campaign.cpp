// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "harness/campaign/shrink_failure.h"
#include "harness/campaign/summary.h"
#include "harness/campaign/workers.h"
#include "harness/case/case_file.h"
#include "harness/io/file_error.h"

namespace gradguard::harness {
namespace {

/// Relations may ask nothing of a case that does not meet their preconditions; that must stay the exception.
constexpr std::uint64_t kEnoughToTell = 100;

constexpr std::uint64_t kSmallGroup = 32;   ///< Elements of the groups in which a smaller failure is looked for.
constexpr std::uint64_t kSmallCases = 300;  ///< For each size.

std::vector<std::string> corpus_files(const std::string& folder) {
    std::vector<std::string> files;
    if (folder.empty() || !std::filesystem::exists(folder)) return files;
    try {
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            if (entry.path().extension() == ".json") files.push_back(entry.path().string());
        }
    } catch (const std::filesystem::filesystem_error& error) {
        throw FileError(folder, "cannot read the corpus: " + error.code().message());
    }
    std::ranges::sort(files);
    return files;
}

/// Runs every case file on every subject that it fits; adds what fails.
void run_corpus(const CampaignOptions& options, OpenSubjects& subjects, CampaignResult& result) {
    for (const std::string& path : corpus_files(options.corpus)) {
        Case c = read_case(path);
        const Property* property = find_property(c.property);
        if (property == nullptr) throw FileError(path, "no property is named \"" + c.property + "\"");
        if (std::ranges::find(options.properties, property) == options.properties.end()) continue;
        for (const std::string& name : options.subjects) {
            if (options.stop != nullptr && *options.stop) return;
            const Bench& bench = subjects.bench(name);
            if (!accepts(*property, bench.subject().abilities(), c)) continue;
            c.subject = name;
            ++result.corpus_cases;
            PropertyVerdict verdict = property->check(*property, bench, c);
            if (!verdict.failed()) continue;
            result.failures.push_back({property->name, name, {}, path, c, std::move(verdict.verdict.failures), 0, 0});
            return;
        }
    }
}

/// Writes a case file and gives its path. Throws FileError.
std::string keep(const std::string& folder, const Case& c) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);  // write_case() says what is wrong
    std::string path = (std::filesystem::path(folder) / case_file_name(c)).string();
    write_case(path, c);
    return path;
}

/// Shrinks one failure of a pair, and then looks for smaller ones.
class Shrinking {
  public:
    Shrinking(const CampaignOptions& options, const Pair& pair, const Bench& bench)
        : options_(options), pair_(pair), bench_(bench) {}

    ShrunkFailure run(const CaseRecipe& recipe) {
        ShrunkFailure best = shrunk(recipe);
        // Taking elements away one by one gets stuck where a fault shows only by the luck of a rounding. Small cases of
        // the same property drawn anew do not.
        for (std::uint64_t elements = 1; elements <= kSmallGroup; elements *= 2) {
            if (elements >= size(best).elements) break;
            for (std::uint64_t index = 0; index < kSmallCases && !done(); ++index) {
                CaseShape shape = shape_of(*pair_.property, pair_.abilities, {}, 0);
                shape.max_elements = elements;
                const CaseRecipe small = draw_case(shape, options_.seed, pair_.property->name + "/small", index);
                ++evaluations_;
                if (!check(small).failed()) continue;
                ShrunkFailure other = shrunk(small);
                if (simpler(size(other), size(best))) best = std::move(other);
                break;
            }
        }
        best.evaluations = evaluations_;
        return best;
    }

  private:
    PropertyVerdict check(const CaseRecipe& recipe) const {
        return pair_.property->check(*pair_.property, bench_, case_of(pair_, recipe));
    }
    ShrunkFailure shrunk(const CaseRecipe& recipe) {
        const std::uint64_t left = options_.shrink_evaluations - std::min(evaluations_, options_.shrink_evaluations);
        ShrunkFailure result = shrink_failure(
            recipe, [this](const CaseRecipe& candidate) { return check(candidate); }, left, options_.stop);
        evaluations_ += result.evaluations;
        return result;
    }
    CaseSize size(const ShrunkFailure& failure) const { return size_of(case_of(pair_, failure.recipe)); }
    static bool simpler(const CaseSize& a, const CaseSize& b) {
        return std::tie(a.elements, a.nonzero_values) < std::tie(b.elements, b.nonzero_values);
    }
    bool done() const {
        return evaluations_ >= options_.shrink_evaluations || (options_.stop != nullptr && *options_.stop);
    }

    const CampaignOptions& options_;
    const Pair& pair_;
    const Bench& bench_;
    std::uint64_t evaluations_ = 0;
};

void shrink_and_keep(const CampaignOptions& options, const Plan& plan, std::uint64_t number, OpenSubjects& subjects,
                     CampaignResult& result) {
    const Plan::Place place = plan.at(number);
    const Pair& pair = plan.pairs()[place.pair];
    if (options.progress) options.progress({result.cases, {}, 0.0, 0.0, "shrinking"});
    ShrunkFailure shrunk = Shrinking(options, pair, subjects.bench(pair.subject))
                               .run(recipe_of(pair, options.shape, options.seed, place.index));
    Case c = case_of(pair, shrunk.recipe);
    std::string path;
    try {
        path = keep(options.failure_folder, c);
    } catch (const FileError&) {  // a failure must not get lost for the want of a place
        path = keep((std::filesystem::temp_directory_path() / "gradguard-cases").string(), c);
    }
    result.failures.push_back({pair.property->name, pair.subject, number, path, std::move(c),
                               std::move(shrunk.verdict.verdict.failures), shrunk.evaluations, shrunk.steps});
}

std::vector<std::string> gaps_of(const CampaignOptions& options, const PairResult& result) {
    std::vector<std::string> gaps;
    const Property& property = *result.pair.property;
    const Tally& tally = result.tally;
    // The few large groups have a shape of their own.
    const CaseShape shape = shape_of(property, result.pair.abilities, options.shape, 0);
    for (const std::string& name : coverage_floor(shape, tally.cases - tally.cases / 16)) {
        const auto at = tally.coverage.find(name);
        if (at == tally.coverage.end() || at->second == 0) gaps.push_back(name);
    }
    if (tally.cases >= kEnoughToTell && 2 * tally.not_applicable > tally.cases) {
        gaps.push_back(fmt::format("cases that meet the preconditions ({} of {})", tally.cases - tally.not_applicable,
                                   tally.cases));
    }
    return gaps;
}

Plan make_plan(const CampaignOptions& options, OpenSubjects& subjects) {
    std::vector<Plan::SubjectAbilities> abilities;
    for (const std::string& name : options.subjects) {
        abilities.push_back({name, subjects.bench(name).subject().abilities()});
    }
    return {options.properties, abilities};
}

}  // namespace

bool CampaignResult::ok() const {
    return failures.empty() && std::ranges::all_of(pairs, [](const PairResult& pair) { return pair.gaps.empty(); });
}

Case campaign_case(const CampaignResult& result, std::uint64_t number) {
    const Plan::Place place = result.plan->at(number);
    const Pair& pair = result.plan->pairs()[place.pair];
    return case_of(pair, recipe_of(pair, result.shape, result.seed, place.index));
}

CampaignResult run_campaign(const CampaignOptions& options) {
    CampaignResult result;
    result.seed = options.seed;
    result.shard = options.shard;
    result.shards = options.shards;
    result.jobs = options.jobs;
    result.shape = options.shape;
    OpenSubjects subjects(options.factory);
    result.plan = std::make_shared<const Plan>(make_plan(options, subjects));
    const Plan& plan = *result.plan;
    for (const Pair& pair : plan.pairs()) result.pairs.push_back({pair, {}, {}});
    run_corpus(options, subjects, result);
    result.interrupted = options.stop != nullptr && *options.stop;
    if (!result.failures.empty() || result.interrupted || plan.pairs().empty()) return result;

    Workers workers(options, plan);
    const auto begin = std::chrono::steady_clock::now();
    workers.run();
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    result.cases = workers.cases();
    result.interrupted = workers.interrupted();
    for (std::size_t i = 0; i < result.pairs.size(); ++i) {
        result.pairs[i].tally = workers.tallies()[i];
        result.digest += result.pairs[i].tally.digest;
    }
    if (const auto number = workers.failed()) {
        shrink_and_keep(options, plan, *number, subjects, result);
    } else if (!result.interrupted) {
        for (PairResult& pair : result.pairs) pair.gaps = gaps_of(options, pair);
    }
    return result;
}

}  // namespace gradguard::harness
