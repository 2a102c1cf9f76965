// SPDX-License-Identifier: Apache-2.0
// One-hot sweeps: 3 at one place and zero elsewhere has norm exactly 3, wherever the place is; so each element is seen
// exactly once.
#include <gtest/gtest.h>

#include "harness/campaign/case_edit.h"
#include "property_tests/subject_factory.h"

namespace gradguard::testing {
namespace {

constexpr std::uint32_t kThree = 0x40400000;

/// A scan of one tensor of `n` elements for each place.
harness::Case one_hot(std::uint64_t n, const std::vector<std::uint64_t>& places) {
    harness::Case c;
    c.operation = harness::Operation::kStatistics;
    for (const std::uint64_t place : places) {
        harness::CaseEntry& entry = c.entries.emplace_back();
        std::vector<std::byte> values(n * sizeof(float));
        harness::ArrayBits(DType::kF32, values).set(place, kThree);
        entry.gradients = harness::dense_tensor(DType::kF32, std::move(values));
        entry.parameters = harness::dense_tensor(DType::kF32, {});
    }
    return c;
}

void expect_three_each(const harness::Case& c) {
    for (const char* subject : {"vgpu/fmad", "vgpu/nofmad"}) {
        const harness::Outcome outcome = subjects()(subject)->step(c);
        ASSERT_EQ(outcome.steps.size(), 1);
        ASSERT_TRUE(outcome.steps[0].report.has_value());
        EXPECT_TRUE(outcome.steps[0].findings.empty());
        const auto& summaries = outcome.steps[0].report->summaries;
        ASSERT_EQ(summaries.size(), c.entries.size());
        for (std::size_t i = 0; i < summaries.size(); ++i) {
            EXPECT_EQ(summaries[i].scale, 3.0F) << subject << ", tensor " << i;
            EXPECT_EQ(summaries[i].sumsq, 1.0F) << subject << ", tensor " << i;
            EXPECT_EQ(summaries[i].bad, 0.0F) << subject << ", tensor " << i;
        }
    }
}

class OneHot : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(OneHot, EachElementOfASmallTensorIsSeenOnce) {
    std::vector<std::uint64_t> places(GetParam());
    for (std::uint64_t i = 0; i < places.size(); ++i) places[i] = i;
    expect_three_each(one_hot(GetParam(), places));
}

INSTANTIATE_TEST_SUITE_P(Sizes, OneHot, ::testing::Values(1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025));

class LargeOneHot : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(LargeOneHot, ElementsAroundEveryConstantAreSeenOnce) {
    const std::uint64_t n = GetParam();
    expect_three_each(one_hot(n, {0, 255, 256, n / 2, n - 257, n - 256, n - 1}));
}

INSTANTIATE_TEST_SUITE_P(Sizes, LargeOneHot, ::testing::Values(65537, (1U << 18U) - 1, 1U << 18U, (1U << 18U) + 1));

}  // namespace
}  // namespace gradguard::testing
