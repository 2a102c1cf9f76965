// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/plan.h"
#include "harness/campaign/properties.h"
#include "harness/campaign/tally.h"

namespace gradguard::harness {

/// How far a campaign has come.
struct CampaignProgress {
    std::uint64_t cases = 0;
    std::optional<std::uint64_t> of;  ///< Absent where time is the limit.
    double seconds = 0.0;
    double worst_fraction = 0.0;
    std::string stage;  ///< "cases", "shrinking".
};

struct CampaignOptions {
    std::uint64_t seed = 0;
    /// Cases in all, over all shards; absent: no limit but time.
    std::optional<std::uint64_t> cases;
    std::optional<std::chrono::milliseconds> time;
    std::uint64_t shard = 0, shards = 1;  ///< This run takes the case numbers c with c mod shards = shard.
    unsigned jobs = 1;
    std::vector<std::string> subjects;
    std::vector<const Property*> properties;
    ShapeOptions shape;
    SubjectFactory factory;
    std::string corpus;  ///< Folder of case files that run first; empty or absent: none.
    std::string
        failure_folder;  ///< Where a shrunk failure goes, made where it is missing; else the system's temporary folder.
    std::uint64_t shrink_evaluations = 5000;  ///< Not a time: the same failure shrinks to the same case everywhere.
    const std::atomic<bool>* stop = nullptr;  ///< Set from outside (SIGINT): what was done so far is reported.
    std::function<void(const CampaignProgress&)> progress;  ///< Called ten times a second, by the calling thread.
};

/// A failure, shrunk.
struct CampaignFailure {
    std::string property, subject;
    std::optional<std::uint64_t> number;  ///< Of the case in the campaign; absent for one of the corpus.
    std::string case_file;
    Case shrunk;
    std::vector<Failure> failures;
    std::uint64_t shrink_evaluations = 0, shrink_steps = 0;
};

struct PairResult {
    Pair pair;
    Tally tally;
    std::vector<std::string> gaps;  ///< What a run of this length must have hit and did not.
};

struct CampaignResult {
    std::uint64_t seed = 0;
    std::uint64_t shard = 0, shards = 1;
    unsigned jobs = 1;
    std::uint64_t cases = 0;         ///< Without the corpus.
    std::uint64_t corpus_cases = 0;  ///< Files times subjects.
    double seconds = 0.0;            ///< Of the cases: without the corpus and without shrinking.
    bool interrupted = false;
    ShapeOptions shape;
    std::vector<PairResult> pairs;
    std::vector<CampaignFailure> failures;
    std::uint64_t digest = 0;  ///< Tally::digest of all.
    std::shared_ptr<const Plan> plan;

    double cases_per_second() const { return seconds > 0.0 ? static_cast<double>(cases) / seconds : 0.0; }
    bool ok() const;
};

/// The case of a number that such a campaign has.
Case campaign_case(const CampaignResult& result, std::uint64_t number);

/// Runs the corpus, then cases until a limit or the failure of least number: all cases before it have been run, so that
/// jobs do not change the result. Shrinks it and writes it to failure_folder. Throws what a subject throws that cannot
/// work, std::invalid_argument for unknown names, FileError for the corpus and the failure's file.
CampaignResult run_campaign(const CampaignOptions& options);

}  // namespace gradguard::harness
