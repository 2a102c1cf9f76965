// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/campaign/shrink_failure.h"
#include "harness/campaign/summary.h"
#include "harness/case/case_file.h"
#include "harness/io/file_error.h"
#include "tests/campaign/fake_subject.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::testing {
namespace {

using harness::CampaignOptions;
using harness::CampaignResult;
using harness::Case;
using harness::Outcome;
using harness::OutcomeEntry;
using harness::Property;
using harness::StepOutcome;

/// A campaign of the named properties, or of all, on fakes.
CampaignOptions campaign(std::uint64_t cases, FakeSubject::Change change = {},
                         const std::vector<std::string>& only = {}) {
    CampaignOptions options;
    options.cases = cases;
    options.subjects = {"fake/one", "fake/two"};
    for (const Property& property : harness::properties()) {
        if (only.empty() || std::ranges::find(only, property.name) != only.end()) {
            options.properties.push_back(&property);
        }
    }
    options.factory = fake_factory(std::move(change));
    return options;
}

/// Forgets the decay: parameters of every updated entry are a step of one ulp away.
void wrong_parameters(const Case& c, Outcome& outcome) {
    if (c.operation != harness::Operation::kGuardedStep) return;
    for (StepOutcome& step : outcome.steps) {
        for (OutcomeEntry& entry : step.entries) {
            if (!entry.updated) continue;
            for (float& p : entry.parameters) p = std::nextafter(p, std::numeric_limits<float>::infinity());
        }
    }
}

/// A norm that is wrong from a size on.
void wrong_norm_of_large(const Case& c, Outcome& outcome) {
    std::uint64_t elements = 0;
    for (const auto& entry : c.entries) elements += entry.gradients.values.size();
    for (StepOutcome& step : outcome.steps) {
        if (step.report && elements > 64) step.report->stats.total_norm *= 2;
    }
}

std::vector<std::uint64_t> cases_of(const CampaignResult& result) {
    std::vector<std::uint64_t> cases;
    for (const auto& pair : result.pairs) cases.push_back(pair.tally.cases);
    return cases;
}

TEST(Campaign, TheOracleHoldsEveryProperty) {
    const CampaignResult result = run_campaign(campaign(1500));
    for (const auto& failure : result.failures) {
        ADD_FAILURE() << failure.property << "\n" << describe(failure.failures.front()) << show(failure.shrunk);
    }
    EXPECT_EQ(result.cases, 1500);
    EXPECT_TRUE(std::ranges::all_of(cases_of(result), [](std::uint64_t cases) { return cases != 0; }));
}

TEST(Campaign, JobsDoNotChangeTheCases) {
    const CampaignResult one = run_campaign(campaign(400));
    for (const unsigned jobs : {2U, 3U}) {
        CampaignOptions options = campaign(400);
        options.jobs = jobs;
        const CampaignResult several = run_campaign(options);
        EXPECT_EQ(several.digest, one.digest) << jobs;
        EXPECT_EQ(cases_of(several), cases_of(one)) << jobs;
        EXPECT_EQ(harness::total_of(several).coverage, harness::total_of(one).coverage) << jobs;
    }
}

TEST(Campaign, ShardsTogetherAreTheWhole) {
    const CampaignResult whole = run_campaign(campaign(301));
    std::uint64_t digest = 0, cases = 0;
    harness::Tally total;
    for (std::uint64_t shard = 0; shard < 3; ++shard) {
        CampaignOptions options = campaign(301);
        options.shard = shard;
        options.shards = 3;
        const CampaignResult part = run_campaign(options);
        digest += part.digest;
        cases += part.cases;
        total.merge(harness::total_of(part));
    }
    EXPECT_EQ(cases, 301);
    EXPECT_EQ(digest, whole.digest);
    EXPECT_EQ(total.coverage, harness::total_of(whole).coverage);
    EXPECT_EQ(total.worst_ulp(), harness::total_of(whole).worst_ulp());
}

TEST(Campaign, AnotherSeedDrawsOtherCases) {
    CampaignOptions options = campaign(50);
    const CampaignResult one = run_campaign(options);
    options.seed = 1;
    EXPECT_NE(run_campaign(options).digest, one.digest);
}

TEST(Campaign, AFailureIsTheOneOfLeastNumberWhateverTheJobs) {
    const TemporaryFolder folder;
    CampaignOptions options = campaign(2000, wrong_norm_of_large);
    options.failure_folder = folder.path("cases");
    const CampaignResult one = run_campaign(options);
    ASSERT_EQ(one.failures.size(), 1);
    for (const unsigned jobs : {2U, 3U}) {
        options.jobs = jobs;
        const CampaignResult several = run_campaign(options);
        ASSERT_EQ(several.failures.size(), 1);
        EXPECT_EQ(several.failures[0].number, one.failures[0].number);
        EXPECT_EQ(several.failures[0].case_file, one.failures[0].case_file);
        EXPECT_EQ(several.cases, one.cases);
        EXPECT_EQ(several.digest, one.digest);
    }
}

TEST(Campaign, AFailureIsShrunkAndKept) {
    const TemporaryFolder folder;
    CampaignOptions options = campaign(2000, wrong_parameters, {"guarded_step"});
    options.failure_folder = folder.path("cases");
    const CampaignResult result = run_campaign(options);
    ASSERT_EQ(result.failures.size(), 1);
    const harness::CampaignFailure& failure = result.failures[0];
    EXPECT_EQ(size_of(failure.shrunk).elements, 1);
    EXPECT_LE(size_of(failure.shrunk).nonzero_values, 4);
    EXPECT_EQ(failure.failures.front().operand, "parameters");
    EXPECT_TRUE(identical(harness::read_case(failure.case_file), failure.shrunk));
}

TEST(Campaign, AFailureIsKeptEvenWhereItsFolderCannotBeMade) {
    const TemporaryFolder folder;
    CampaignOptions options = campaign(2000, wrong_parameters, {"guarded_step"});
    options.failure_folder = folder.write("file", "") + "/below";
    const CampaignResult result = run_campaign(options);
    ASSERT_EQ(result.failures.size(), 1);
    EXPECT_TRUE(identical(harness::read_case(result.failures[0].case_file), result.failures[0].shrunk));
}

TEST(Campaign, AKeptFailureRunsFirstTheNextTime) {
    const TemporaryFolder folder;
    CampaignOptions options = campaign(2000, wrong_parameters, {"guarded_step"});
    options.failure_folder = options.corpus = folder.path("cases");
    const CampaignResult first = run_campaign(options);
    ASSERT_EQ(first.failures.size(), 1);
    const CampaignResult second = run_campaign(options);
    ASSERT_EQ(second.failures.size(), 1);
    EXPECT_EQ(second.cases, 0);
    EXPECT_EQ(second.corpus_cases, 1);
    EXPECT_EQ(second.failures[0].case_file, first.failures[0].case_file);
    EXPECT_FALSE(second.failures[0].number.has_value());
}

TEST(Campaign, ACorpusThatPassesIsCountedAndTheRunGoesOn) {
    const TemporaryFolder folder;
    CampaignOptions wrong = campaign(2000, wrong_parameters, {"guarded_step"});
    wrong.failure_folder = folder.path("cases");
    ASSERT_EQ(run_campaign(wrong).failures.size(), 1);
    CampaignOptions right = campaign(20, {}, {"guarded_step"});
    right.corpus = folder.path("cases");
    const CampaignResult result = run_campaign(right);
    EXPECT_TRUE(result.failures.empty());
    EXPECT_EQ(result.corpus_cases, 2);  // on both subjects
    EXPECT_EQ(result.cases, 20);
}

TEST(Campaign, ACorpusFileThatIsNoCaseIsAnErrorThatNamesIt) {
    const TemporaryFolder folder;
    folder.write("broken.json", "{}");
    CampaignOptions options = campaign(20);
    options.corpus = folder.path("");
    try {
        run_campaign(options);
        FAIL() << "no error";
    } catch (const harness::FileError& error) {
        EXPECT_NE(std::string(error.what()).find("broken.json"), std::string::npos) << error.what();
    }
}

TEST(Campaign, FindingsFailARelation) {
    const auto finding = [](const Case&, Outcome& outcome) { outcome.steps[0].findings.push_back("race"); };
    const TemporaryFolder folder;
    CampaignOptions options = campaign(50, finding, {"signs_flipped"});
    options.failure_folder = folder.path("cases");
    const CampaignResult result = run_campaign(options);
    ASSERT_EQ(result.failures.size(), 1);
    EXPECT_EQ(result.failures[0].failures.front().got, "race");
}

TEST(Campaign, WhatASubjectThrowsEndsTheRun) {
    const auto broken = [](const Case& c, Outcome&) {
        if (c.entries.size() > 1) throw Error(ErrorKind::kDeviceFailure, {{}, "launch"}, "gone");
    };
    CampaignOptions options = campaign(500, broken);
    options.jobs = 2;
    EXPECT_THROW(run_campaign(options), Error);
}

TEST(Campaign, AStopLeavesWhatWasDone) {
    std::atomic<bool> stop{false};
    std::atomic<int> calls{0};
    CampaignOptions options = campaign(1000000, [&](const Case&, Outcome&) {
        if (++calls == 200) stop = true;
    });
    options.cases.reset();
    options.stop = &stop;
    const CampaignResult result = run_campaign(options);
    EXPECT_TRUE(result.interrupted);
    EXPECT_TRUE(result.failures.empty());
    EXPECT_GT(result.cases, 0);
    EXPECT_LE(result.cases, 200);
}

TEST(Campaign, ATimeEndsIt) {
    CampaignOptions options = campaign(0);
    options.cases.reset();
    options.time = std::chrono::milliseconds(200);
    const CampaignResult result = run_campaign(options);
    EXPECT_FALSE(result.interrupted);
    EXPECT_GT(result.cases, 0);
    EXPECT_TRUE(result.failures.empty());
}

/// Promises the classes of all cases, and draws balanced ones after the first.
harness::CaseShape narrow_shape(const harness::Abilities& abilities, std::uint64_t index) {
    harness::CaseShape shape;
    shape.abilities = abilities;
    shape.balanced = index != 0;
    shape.bad_values = index == 0;
    return shape;
}
bool to_all(const harness::Abilities&) { return true; }
harness::PropertyVerdict nothing(const Property&, const harness::Bench&, const Case&) { return {}; }
harness::PropertyVerdict never(const Property&, const harness::Bench&, const Case&) { return {false, {}}; }

TEST(Campaign, AClassThatIsNotHitFailsALongRun) {
    const Property narrow{"narrow", "nothing", 1, to_all, narrow_shape, nothing};
    CampaignOptions options = campaign(2000);
    options.properties = {&narrow};
    const CampaignResult result = run_campaign(options);
    EXPECT_TRUE(result.failures.empty());
    EXPECT_FALSE(result.ok());
    ASSERT_FALSE(result.pairs[0].gaps.empty());
    EXPECT_EQ(result.pairs[0].tally.coverage.count(result.pairs[0].gaps[0]), 0);
}

TEST(Campaign, ARelationThatHardlyEverAppliesFailsALongRun) {
    const Property idle{"idle",
                        "nothing",
                        1,
                        to_all,
                        [](const harness::Abilities& abilities, std::uint64_t) {
                            harness::CaseShape shape;
                            shape.abilities = abilities;
                            return shape;
                        },
                        never};
    CampaignOptions options = campaign(400);
    options.properties = {&idle};
    const CampaignResult result = run_campaign(options);
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.pairs[0].gaps.back(), "cases that meet the preconditions (0 of 200)");
}

TEST(Campaign, AShortRunPromisesNothing) {
    const Property narrow{"narrow", "nothing", 1, to_all, narrow_shape, never};
    CampaignOptions options = campaign(20);
    options.properties = {&narrow};
    EXPECT_TRUE(run_campaign(options).ok());
}

TEST(Campaign, ElementsAreExact) {
    CampaignOptions options =
        campaign(20,
                 [](const Case& c, Outcome&) {
                     std::uint64_t elements = 0;
                     for (const auto& entry : c.entries) {
                         elements += entry.gradients.values.size() / element_bytes(entry.gradients.layout.dtype);
                     }
                     if (elements != 64) throw std::logic_error("group of " + std::to_string(elements));
                 },
                 {"guarded_step"});
    options.shape.elements = 64;
    EXPECT_EQ(run_campaign(options).cases, 20);
}

}  // namespace
}  // namespace gradguard::testing
