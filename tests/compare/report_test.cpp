// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/report.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "reference/exact/float_bits.h"
#include "tests/support/values.h"

namespace gradguard::harness {
namespace {

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(Report, NumbersAreShownExactlyWithTheirBits) {
    EXPECT_EQ(float_text(0.5F), "0x1p-1 = 0.5 (0x3F000000)");
    EXPECT_EQ(float_text(-0.0F), "-0x0p+0 = -0 (0x80000000)");
    EXPECT_TRUE(holds(float_text(reference::float_of(0x7FC00001U)), "(0x7FC00001)"));
    EXPECT_EQ(double_text(1.0), "0x1p+0 = 1 (0x3FF0000000000000)");
}

TEST(Report, AFailureFitsOnOneScreenAndSaysEverything) {
    const reference::UpdateCoefficients c = reference::update_coefficients({}, {}, 1.0F, 1);
    const auto gradient = gradguard::testing::f32({0.5F});
    const std::vector<float> old_p = {1.0F};
    const auto right = reference::update_element(0.5F, {1.0F}, c);
    const std::vector<float> p = {reference::step_ulps(right.p, 3)};
    const std::vector<float> m = {right.m};
    const std::vector<float> v = {right.v};
    const UpdateOperands operands{gradient.view(), old_p, {}, {}, {}, p, m, v, {}};
    const UpdateVerdict verdict = judge_update(operands, c, Contraction::kAllowed);
    ASSERT_TRUE(verdict.first);
    Failure failure = failure_of(*verdict.first, operands, c);
    failure.entry = 2;
    failure.entry_name.assign("head.weight");
    failure.notes.emplace_back("replay   gradguard step head.safetensors");
    const std::string text = describe(failure);
    for (const char* part : {"FAILED", "legal set", "2 \"head.weight\"", "parameters", "index", "0x3F7FBE78",
                             "0x3F7FBE75", "ulp", "replay"}) {
        EXPECT_TRUE(holds(text, part)) << part << " is not in\n" << text;
    }
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 24);
}

TEST(Report, AMismatchIsAFailureToo) {
    Mismatch mismatch;
    mismatch.what = "total_norm";
    mismatch.got = double_text(1.0);
    mismatch.want = double_text(2.0);
    const std::string text = describe(failure_of(mismatch));
    EXPECT_TRUE(holds(text, "total_norm"));
    EXPECT_TRUE(holds(text, "want"));
}

}  // namespace
}  // namespace gradguard::harness
