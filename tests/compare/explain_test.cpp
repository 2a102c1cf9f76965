// SPDX-License-Identifier: Apache-2.0
// Explanations say each line, what was stored, whether it is admitted, and the bound.
#include "harness/compare/explain.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "reference/exact/float_bits.h"
#include "reference/model/statistics.h"
#include "tests/support/values.h"

namespace gradguard::harness {
namespace {

using reference::ElementState;
using reference::step_ulps;

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    return text;
}
std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

struct Element {
    AdamWOptions options{.beta1 = 0.5F, .beta2 = 0.5F, .amsgrad = true};
    reference::UpdateCoefficients c = reference::update_coefficients(options, {.gradient_scale = 3.0F}, 0.7F, 4);
    ElementState<float> old{1.25F, 0.5F, 0.25F, 0.125F};
    ElementState<float> stored = reference::update_element(2.0F, old, c);

    std::string text(const Abilities& abilities = {}) const {
        return joined(explain_element(2.0F, old, stored, c, abilities));
    }
};

TEST(Explain, EveryLineIsToldExactlyAndAsComputed) {
    const std::string text = Element().text();
    for (const char* line : {"gradient * r", "g = * clip", "beta1 * m_old", "m = sum", "g * g", "beta2 * v_old",
                             "v = sum", "x = max(max_old, v)", "m * inverse_bias1", "sqrt(x * inverse_bias2)", "ratio",
                             "p_old * decay", "learning_rate * ratio", "p = difference", "decay"}) {
        EXPECT_NE(text.find(line), std::string::npos) << line << " is not in\n" << text;
    }
    EXPECT_NE(text.find("0x3EAAAAAB"), std::string::npos);  // r, its bits
}

TEST(Explain, WhatIsAdmittedIsToldForEachResult) {
    Element element;
    EXPECT_EQ(count_of(element.text(), ", admitted"), 4U);
    EXPECT_EQ(count_of(element.text(), "NOT ADMITTED"), 0U);
    element.stored.p = step_ulps(element.stored.p, 5);
    EXPECT_EQ(count_of(element.text(), "NOT ADMITTED"), 1U);
    element.stored.m = std::nanf("");
    EXPECT_GE(count_of(element.text(), "NOT ADMITTED"), 2U);
}

TEST(Explain, TheBoundComesFromWhatJudges) {
    const Element element;
    EXPECT_NE(element.text().find("legal set, contracted or not"), std::string::npos);
    EXPECT_NE(element.text().find("hull"), std::string::npos);
    Abilities abilities;
    abilities.contraction = Contraction::kForbidden;
    EXPECT_NE(element.text(abilities).find("legal, uncontracted"), std::string::npos);
    abilities.reassociates = true;
    EXPECT_EQ(element.text(abilities).find("legal"), std::string::npos);
    EXPECT_NE(element.text(abilities).find("interval"), std::string::npos);
}

TEST(Explain, NoLineEndsWithinALine) {
    for (const auto& line : explain_element(2.0F, Element().old, Element().stored, Element().c, {})) {
        EXPECT_EQ(line.find('\n'), std::string::npos);
        EXPECT_FALSE(line.empty());
    }
}

TEST(Explain, ANormIsToldTensorByTensorWithItsBound) {
    const auto a = gradguard::testing::f32({3.0F, 4.0F, 0.1F});
    const auto b = gradguard::testing::f32({});
    const std::vector<reference::GradientView> views{a.view(), b.view()};
    const std::string text = joined(explain_norm(reference::group_statistics(views, 3.0F), views, 3.0F, {}));
    for (const char* part : {"tensor 0: 3 elements, 0 bad", "tensor 1: 0 elements", "reported scale", "tree",
                             "closed form", "norm reported", "exact", "ulp", "along the contract's tree"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
    }
}

TEST(Explain, ABadGroupHasNoNormToMeasure) {
    const auto a = gradguard::testing::f32({3.0F, std::nanf("")});
    const std::vector<reference::GradientView> views{a.view()};
    const std::string text = joined(explain_norm(reference::group_statistics(views, 1.0F), views, 1.0F, {}));
    EXPECT_NE(text.find("1 bad elements"), std::string::npos);
    EXPECT_NE(text.find("+inf"), std::string::npos);
}

}  // namespace
}  // namespace gradguard::harness
