// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/case_story.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "harness/campaign/plan.h"
#include "tests/campaign/fake_subject.h"

namespace gradguard::testing {
namespace {

using harness::Case;
using harness::CaseStory;
using harness::Outcome;

const harness::Property& trajectory() { return *harness::find_property("trajectory"); }

/// A case of several steps, two of which at least updated something.
Case case_of_steps() {
    const auto oracle = harness::make_oracle_subject();
    for (std::uint64_t index = 0; index < 1000; ++index) {
        const harness::Pair pair{&trajectory(), "fake", {}};
        Case c = case_of(pair, recipe_of(pair, {}, 0, index));
        const Outcome outcome = oracle->step(c);
        std::size_t updated = 0;
        for (const auto& step : outcome.steps) {
            updated += !step.entries.empty() && step.entries[0].updated ? 1 : 0;
        }
        if (updated >= 2 && outcome.steps.size() == 1 + c.later.size()) return c;
    }
    throw std::logic_error("no such case");
}

CaseStory told(const Case& c, FakeSubject::Change change, const harness::ElementChoice& choice = {}) {
    const harness::SubjectFactory factory = fake_factory(std::move(change));
    const auto subject = factory("fake");
    return tell_case(trajectory(), harness::Bench(*subject, factory), c, choice);
}

std::size_t last_updated(const Case& c) {
    const Outcome outcome = harness::make_oracle_subject()->step(c);
    std::size_t last = 0;
    for (std::size_t k = 0; k < outcome.steps.size(); ++k) {
        if (outcome.steps[k].entries[0].updated) last = k;
    }
    return last;
}

TEST(CaseStory, ARightSubjectDoesWhatTheOracleDoesInEveryStep) {
    const Case c = case_of_steps();
    const CaseStory story = told(c, {});
    EXPECT_FALSE(story.verdict.failed());
    ASSERT_EQ(story.steps.size(), 1 + c.later.size());
    for (const harness::StepStory& step : story.steps) EXPECT_EQ(step.expected, step.got);
    ASSERT_TRUE(story.element.has_value());
    EXPECT_FALSE(story.lines.empty());
}

TEST(CaseStory, TheElementThatFailedIsExplained) {
    const Case c = case_of_steps();
    const std::size_t step = last_updated(c);
    const CaseStory story = told(c, [step](const Case&, Outcome& outcome) {
        if (outcome.steps.size() <= step || outcome.steps[step].entries.empty()) return;
        outcome.steps[step].entries[0].parameters[0] += 1.0F;
    });
    EXPECT_TRUE(story.verdict.failed());
    ASSERT_TRUE(story.element.has_value());
    EXPECT_EQ(story.element->step, step);
    EXPECT_EQ(story.element->entry, 0);
    EXPECT_EQ(story.element->index, 0);
}

TEST(CaseStory, AWrongDecisionStandsBesideTheRightOne) {
    const Case c = case_of_steps();
    const std::size_t step = last_updated(c);
    const CaseStory story = told(c, [step](const Case&, Outcome& outcome) {
        if (outcome.steps.size() > step) outcome.steps[step].clip_multiplier = 0.25F;
    });
    EXPECT_TRUE(story.verdict.failed());
    EXPECT_NE(story.steps[step].expected, story.steps[step].got);
}

TEST(CaseStory, APlaceThatDoesNotExistIsRefused) {
    const Case c = case_of_steps();
    EXPECT_THROW(told(c, {}, {99, {}, {}}), std::invalid_argument);
    EXPECT_THROW(told(c, {}, {{}, 99, {}}), std::invalid_argument);
    EXPECT_THROW(told(c, {}, {{}, {}, 1U << 30U}), std::invalid_argument);
}

TEST(CaseStory, ASubjectWithTooFewValuesIsToldWithoutReadingBeyondThem) {
    const Case c = case_of_steps();
    const CaseStory story = told(c, [](const Case&, Outcome& outcome) {
        for (auto& step : outcome.steps) {
            for (auto& entry : step.entries) entry.parameters.clear();
        }
    });
    EXPECT_TRUE(story.verdict.failed());
}

}  // namespace
}  // namespace gradguard::testing
