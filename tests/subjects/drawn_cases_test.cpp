// SPDX-License-Identifier: Apache-2.0
// Subjects on drawn cases: every operation, several steps, invalid ones.
#include <gtest/gtest.h>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/compare/case_judge.h"
#include "harness/generators/generators.h"
#include "harness/subjects/subject.h"
#include "tests/subjects/cases.h"

namespace gradguard {
namespace {

using namespace harness;

struct Shape {
    const char* name;
    CaseShape shape;
};

std::vector<Shape> shapes() {
    CaseShape guarded;
    guarded.max_later_steps = 3;
    CaseShape large;
    large.max_elements = 4096;
    CaseShape unguarded;
    unguarded.operation = Operation::kUnguardedStep;
    CaseShape statistics;
    statistics.operation = Operation::kStatistics;
    CaseShape invalid;
    invalid.invalid = true;
    return {{"guarded", guarded},
            {"large", large},
            {"unguarded", unguarded},
            {"statistics", statistics},
            {"invalid", invalid}};
}

Case draw(const Shape& shape, std::uint64_t i) { return realise(draw_case(shape.shape, 3, shape.name, i)); }

TEST(DrawnCases, UncontractedLibraryEqualsTheOracle) {
    const auto library = make_subject("vgpu/nofmad");
    const auto oracle = make_subject("oracle");
    for (const Shape& shape : shapes()) {
        for (std::uint64_t i = 0; i < 400; ++i) {
            const Case c = draw(shape, i);
            ASSERT_EQ(testing::results_text(library->step(c)), testing::results_text(oracle->step(c)))
                << shape.name << " case " << i;
        }
    }
}

TEST(DrawnCases, JudgePassesTheLibrary) {
    for (const char* name : {"vgpu/fmad", "vgpu/nofmad", "planted/clean-host", "oracle"}) {
        const auto subject = make_subject(name);
        for (const Shape& shape : shapes()) {
            for (std::uint64_t i = 0; i < 400; ++i) {
                const Case c = draw(shape, i);
                const CaseVerdict verdict = judge_case(c, subject->step(c), subject->abilities());
                ASSERT_TRUE(verdict.ok()) << name << ", " << shape.name << " case " << i << "\n"
                                          << describe(verdict.failures.front());
            }
        }
    }
}

TEST(DrawnCases, InvalidOnesMakeNoDeviceCall) {
    const auto library = make_subject("vgpu/fmad");
    const Shape invalid = shapes().back();
    for (std::uint64_t i = 0; i < 1000; ++i) {
        const Outcome outcome = library->step(draw(invalid, i));
        ASSERT_TRUE(outcome.steps.at(0).error) << "case " << i;
        ASSERT_EQ(outcome.steps[0].device_calls, 0U) << "case " << i;
    }
}

/// What ran before makes no difference: the same cases forwards and backwards on one subject.
TEST(DrawnCases, OutcomeDoesNotDependOnTheOrder) {
    for (const char* name : {"vgpu/fmad", "planted/missing-barrier-before-64", "planted/one-triple-too-many"}) {
        const auto subject = make_subject(name);
        for (const Shape& shape : shapes()) {
            constexpr std::uint64_t kCases = 60;
            std::vector<std::string> forwards;
            for (std::uint64_t i = 0; i < kCases; ++i) {
                forwards.push_back(testing::full_text(subject->step(draw(shape, i))));
            }
            for (std::uint64_t i = kCases; i-- > 0;) {
                ASSERT_TRUE(testing::full_text(subject->step(draw(shape, i))) == forwards[i])
                    << name << ", " << shape.name << " case " << i;
            }
        }
    }
}

}  // namespace
}  // namespace gradguard
