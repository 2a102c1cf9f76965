// SPDX-License-Identifier: Apache-2.0
// Contract section 5: the clip multiplier, and what a bad group gets.
#include "reference/fp64/decision.h"

#include "tests/reference_alone/facts.h"

namespace gradguard::reference_alone {
namespace {

using reference::clip_multiplier;
using reference::decide;

std::uint32_t clip_bits(double norm, std::optional<float> max_norm) {
    return bits(clip_multiplier(norm, {.max_norm = max_norm}));
}

GradientStats bad_group() {
    return {.total_norm = std::numeric_limits<double>::infinity(), .all_finite = false, .elements = 1, .tensors = 1};
}

/// The kind of the Error that decide() throws; nothing when it returns.
std::optional<ErrorKind> thrown(const GradientStats& stats, const GradientGuardOptions& guard) {
    try {
        (void)decide(stats, guard);
    } catch (const Error& error) {
        return error.kind();
    }
    return std::nullopt;
}

void clips() {
    GRADGUARD_CHECK(clip_bits(300.0, 1.0F) == 0x3B5A740EU);
    GRADGUARD_CHECK(clip_bits(1000.0, 1.0F) == 0x3A83126FU);
    GRADGUARD_CHECK(clip_bits(131008.0, 1.0F) == 0x37001002U);
    GRADGUARD_CHECK(clip_bits(1.0000000200408773e21, 1.0F) == 0x1C971DA0U);
    GRADGUARD_CHECK(clip_bits(1.0000000200408773e20, 1.0F) == 0x1E3CE508U);
    GRADGUARD_CHECK(clip_bits(1.1313708476930323e20, 2.0F) == 0x1EA6F5FBU);
    GRADGUARD_CHECK(clip_bits(10.0, 1.0F) == 0x3DCCCCCBU);
    GRADGUARD_CHECK(clip_bits(5.0, 1.0F) == 0x3E4CCCCAU);
    GRADGUARD_CHECK(clip_bits(1.0, 1.0F) == 0x3F7FFFEFU);
}

void never_above_one() {
    GRADGUARD_CHECK(clip_bits(1.0, 2.0F) == 0x3F800000U);
    GRADGUARD_CHECK(clip_bits(9.999999682655225e-21, 1.0F) == 0x3F800000U);
    GRADGUARD_CHECK(clip_bits(0.0, kMax) == 0x3F800000U);
    GRADGUARD_CHECK(bits(clip_multiplier(0x1p-149, {.max_norm = kLeast, .epsilon = kLeast})) == 0x3F000000U);
    // The FP64 quotient just below 1 rounds to 1, and not above.
    GRADGUARD_CHECK(bits(clip_multiplier(1.0, {.max_norm = 1.0F, .epsilon = 1e-30F})) == 0x3F800000U);
}

void zeros() {
    GRADGUARD_CHECK(clip_bits(0.0, 0.0F) == 0U);
    GRADGUARD_CHECK(clip_bits(7.0, 0.0F) == 0U);
    GRADGUARD_CHECK(clip_bits(0.0, -0.0F) == 0U);
    GRADGUARD_CHECK(clip_bits(7.0, -0.0F) == 0U);
    GRADGUARD_CHECK(clip_bits(0.0, 1.0F) == 0x3F800000U);
    GRADGUARD_CHECK(clip_bits(1e60, 1.0F) == 0U);  // Below FP32's range.
}

void without_a_limit() {
    GRADGUARD_CHECK(clip_bits(1e300, std::nullopt) == 0x3F800000U);
    const auto decision = decide({.total_norm = 1e300, .elements = 1, .tensors = 1}, {.max_norm = std::nullopt});
    GRADGUARD_CHECK(decision.clip_multiplier == 1.0F && !decision.skip_update);
    GRADGUARD_CHECK(decide(bad_group(), {.max_norm = std::nullopt}).skip_update);
}

void good_group() {
    const auto decision = decide({.total_norm = 5.0, .elements = 2, .tensors = 2}, {});
    GRADGUARD_CHECK(bits(decision.clip_multiplier) == 0x3E4CCCCAU && !decision.skip_update);
}

void skipped() {
    for (const std::optional<float> max_norm : {std::optional<float>(1.0F), std::optional<float>(), {0.0F}}) {
        const auto decision = decide(bad_group(), {.max_norm = max_norm});
        GRADGUARD_CHECK(decision.skip_update && bits(decision.clip_multiplier) == 0x3F800000U);
    }
    const auto nan = decide({.total_norm = std::numeric_limits<double>::quiet_NaN()}, {});
    GRADGUARD_CHECK(nan.skip_update && nan.clip_multiplier == 1.0F);
}

void policy_error() {
    const GradientGuardOptions strict{.nonfinite = NonFinitePolicy::kError};
    GRADGUARD_CHECK(thrown(bad_group(), strict) == ErrorKind::kNonFiniteGradients);
    GRADGUARD_CHECK(!thrown({.total_norm = 1.0, .elements = 1, .tensors = 1}, strict));
}

void invalid_input() {
    GRADGUARD_CHECK(thrown(bad_group(), {.max_norm = -1.0F}) == ErrorKind::kInvalidOption);
    GRADGUARD_CHECK(thrown({}, {.epsilon = 0.0F}) == ErrorKind::kInvalidOption);
    GRADGUARD_CHECK(thrown({.total_norm = -1.0}, {}) == ErrorKind::kInvalidSummary);
}

constexpr Fact kFacts[] = {
    {"clips of reported cases have the contract's bits", clips},
    {"a clip never exceeds 1", never_above_one},
    {"a limit of 0 or -0 gives +0, and a norm of 0 no NaN", zeros},
    {"without a limit nothing is clipped, and finiteness still counts", without_a_limit},
    {"a good group is clipped by one multiplier", good_group},
    {"a bad group is skipped with clip 1, whatever the limit", skipped},
    {"policy Error throws NonFiniteGradients for a bad group only", policy_error},
    {"invalid guard options and a negative norm are refused", invalid_input},
};

}  // namespace

std::span<const Fact> decision_facts() { return kFacts; }

}  // namespace gradguard::reference_alone
