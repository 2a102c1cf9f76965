// SPDX-License-Identifier: Apache-2.0
// Rows T* of cases.csv: what a compiler or a library loaded beside us may do to the arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "harness/compare/case_judge.h"
#include "harness/subjects/subject.h"
#include "property_tests/reported/reported_case.h"
#include "reference/fp64/fp64_norm.h"
#include "reference/fp64/self_check.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace gradguard::testing {
namespace {

using harness::Outcome;

TEST(Reported, T01_ThisProcessKeepsSubnormals) {
    // Volatile, so that this is what the processor does and not what the compiler knows.
    volatile float half = std::numeric_limits<float>::min();
    half = half / 2.0F;
    EXPECT_NE(half, 0.0F);
    volatile float zero = 0.0F;
    volatile float next = std::nextafter(zero, 1.0F);
    EXPECT_GT(next, 0.0F);
    EXPECT_EQ(reference::self_check().value_or("sound"), "sound");
}

#if defined(__SSE2__)
/// The whole of a process that had flushing switched on before the oracle started: 3 when the oracle refuses to run.
[[noreturn]] void start_the_oracle_flushing(unsigned flags) {
    _mm_setcsr(_mm_getcsr() | flags);
    try {
        const auto oracle = harness::make_subject("oracle");
        std::exit(oracle->step(statistics({f32({1.0F})})).steps.empty() ? 1 : 0);
    } catch (const std::runtime_error&) {
        std::exit(3);
    }
}

TEST(Reported, T01_TheOracleRefusesToRunWhereFlushingIsOn) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process: the check runs once in each
    EXPECT_EXIT(start_the_oracle_flushing(0), ::testing::ExitedWithCode(0), "");
    EXPECT_EXIT(start_the_oracle_flushing(0x8000), ::testing::ExitedWithCode(3), "");  // flush to zero
    EXPECT_EXIT(start_the_oracle_flushing(0x0040), ::testing::ExitedWithCode(3), "");  // denormals are zero
}
#endif

TEST(Reported, T02_NaNAndInfinitiesAreSeenInKernelAndHost) {
    struct Row {
        std::uint32_t bits;
        bool bad;
    };
    const Row rows[] = {{0x7F800000, true},  {0xFF800000, true},  {0x7FC00000, true},  {0xFFC00000, true},
                        {0x7F800001, true},  {0xFFFFFFFF, true},  {0x7F7FFFFF, false}, {0xFF7FFFFF, false},
                        {0x00000001, false}, {0x80000000, false}, {0x3F800000, false}};
    for (const Row& row : rows) {
        SCOPED_TRACE(::testing::Message() << "0x" << std::hex << row.bits);
        const Gradient gradient = gradient_of_words(DType::kF32, std::vector{row.bits});
        EXPECT_EQ(reference::is_bad(reference::float_of(row.bits), reference::float_of(row.bits)), row.bad);
        on_every_subject(statistics({gradient}), [&](const Outcome& outcome) {
            const GradientStatsReport& report = outcome.steps[0].report.value();
            EXPECT_EQ(reference::bits_of(report.summaries.at(0).bad), row.bad ? 0x3F800000U : 0U);
            EXPECT_EQ(report.stats.all_finite, !row.bad);
        });
    }
}

TEST(Reported, T02_AFlagThatIsMissingOrTooManyIsNoticed) {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1.0F}) {
        const harness::Case c = statistics({f32({value})});
        const auto oracle = harness::make_subject("oracle");
        Outcome outcome = oracle->step(c);
        ASSERT_TRUE(judge_case(c, outcome, oracle->abilities()).ok());
        GradientStatsReport& report = outcome.steps[0].report.value();
        report.summaries.at(0).bad = 1.0F - report.summaries[0].bad;
        report.stats.all_finite = !report.stats.all_finite;
        EXPECT_FALSE(judge_case(c, outcome, oracle->abilities()).ok()) << value;
    }
}

}  // namespace
}  // namespace gradguard::testing
