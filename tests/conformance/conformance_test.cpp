// SPDX-License-Identifier: Apache-2.0
// Every instruction against its exact model; GRADGUARD_CONFORMANCE_TUPLES operand tuples each.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/conformance/check.h"
#include "tests/conformance/instruction_list.h"

namespace gradguard::conformance {
namespace {

/// "add.rn.f32" -> "add_rn_f32", as GoogleTest wants it.
std::string test_name(std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, ReturnsWhatTheModelSays) {
    const auto model = find_model(GetParam());
    ASSERT_TRUE(model.has_value()) << "no model for '" << GetParam() << "'";
    const CheckResult result = check(*model, {.tuples = GRADGUARD_CONFORMANCE_TUPLES});
    EXPECT_TRUE(result.passed()) << result.text();
}

INSTANTIATE_TEST_SUITE_P(Instruction, Conformance, testing::ValuesIn(instructions_under_test()),
                         [](const testing::TestParamInfo<std::string>& instance) { return test_name(instance.param); });

}  // namespace
}  // namespace gradguard::conformance
