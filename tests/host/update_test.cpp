// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "harness/compare/update_bound.h"
#include "kernels/host/guarded_adamw.h"
#include "kernels/host/update.h"
#include "reference/fp64/coefficients.h"
#include "tests/host/values.h"

namespace gradguard {
namespace {

using testing::bits;
using testing::from_bits;
using testing::host_entry;
using testing::RecordedDevice;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const GradientGuardOptions kNoClipping = {.max_norm = std::nullopt};

/// One step of one element from a fresh state (or the given one); p, m, v.
struct Step {
    float p, m, v;
};
Step step_of_one(float p, float g, const AdamWOptions& options = {}, const GradientGuardOptions& guard = {}) {
    const RecordedDevice gpu;
    const std::vector<AdamWEntry> entries = {gpu.entry({p}, {g})};
    const GuardedAdamWUpdate result = guarded_adamw_step(entries, options, {}, guard);
    result.wait();
    EXPECT_EQ(result.entries[0].state->step, 1U);
    return {gpu.read(result.entries[0].parameters)[0], gpu.read(result.entries[0].state->first_moment)[0],
            gpu.read(result.entries[0].state->second_moment)[0]};
}

TEST(Update, GoldenFirstStep) {
    const Step step = step_of_one(1.0F, 0.5F);
    EXPECT_EQ(bits(step.p), 0x3F7FBE75U);
    EXPECT_EQ(bits(step.m), 0x3D4CCCD0U);
    EXPECT_EQ(bits(step.v), 0x39831200U);
}

TEST(Update, GoldenFirstStepMaximizing) {
    const Step step = step_of_one(1.0F, 0.5F, {.maximize = true});
    EXPECT_EQ(bits(step.p), 0x3F8020C3U);
    EXPECT_EQ(bits(step.m), 0xBD4CCCD0U);
    EXPECT_EQ(bits(step.v), 0x39831200U);
}

TEST(Update, ZeroLearningRateLeavesTheParameterAndAdvancesTheMoments) {
    const Step step = step_of_one(0.75F, 3.0F, {.learning_rate = 0.0F}, kNoClipping);
    EXPECT_EQ(bits(step.p), 0x3F400000U);
    EXPECT_EQ(bits(step.m), 0x3E99999CU);
    EXPECT_EQ(bits(step.v), 0x3C137440U);
}

TEST(Update, ZeroGradientGivesNoNan) {
    for (const float epsilon : {1e-8F, 1e-30F}) {
        const Step step = step_of_one(0.75F, 0.0F, {.epsilon = epsilon, .weight_decay = 0.0F});
        EXPECT_EQ(bits(step.p), 0x3F400000U);
        EXPECT_EQ(step.m, 0.0F);
        EXPECT_EQ(step.v, 0.0F);
    }
}

TEST(Update, DecayIsDecoupledCarriesTheRateAndComesFirst) {
    EXPECT_EQ(bits(step_of_one(1.0F, 0.0F, {.learning_rate = 0.1F, .weight_decay = 0.1F}).p), 0x3F7D70A4U);
    const AdamWOptions options = {.learning_rate = 0.1F, .epsilon = 1e-8F, .weight_decay = 0.1F};
    EXPECT_EQ(bits(step_of_one(1.0F, 1.0F, options, kNoClipping).p), 0x3F63D70AU);
}

TEST(Update, AHugeFiniteGradientOverflowsTheSecondMomentUnlessClipped) {
    const Step loose = step_of_one(1.0F, 1e20F, {}, kNoClipping);
    EXPECT_EQ(bits(loose.m), 0x5F0AC725U);
    EXPECT_EQ(loose.v, kInfinity);
    EXPECT_EQ(bits(loose.p), 0x3F7FFFFEU);
    const Step clipped = step_of_one(1.0F, 1e20F);
    EXPECT_EQ(bits(clipped.p), 0x3F7FBE75U);
    EXPECT_EQ(bits(clipped.v), 0x3A831200U);
}

TEST(Update, BetaZeroKeepsNothing) {
    const Step step = step_of_one(1.0F, 0.5F, {.beta1 = 0.0F, .beta2 = 0.0F});
    EXPECT_EQ(step.m, 0.5F);
    EXPECT_EQ(step.v, 0.25F);
}

TEST(Update, AmsgradKeepsTheMaximumOfTheUncorrectedMoment) {
    // A08/A09: with g 1, then 0.1, the second parameter under the contract's rule.
    const RecordedDevice gpu;
    std::vector<AdamWEntry> entries = {gpu.entry({1.0F}, {0.5F})};
    const AdamWOptions options = {.amsgrad = true};
    auto first = guarded_adamw_step(entries, options);
    EXPECT_EQ(gpu.read(*first.entries[0].state->max_second_moment), gpu.read(first.entries[0].state->second_moment));
    entries[0].parameters = first.entries[0].parameters;
    entries[0].state = first.entries[0].state;
    entries[0].gradients = gpu.tensor(std::vector<float>{0.0F});
    auto second = guarded_adamw_step(entries, options);
    // v shrinks, the maximum stays.
    EXPECT_EQ(gpu.read(*second.entries[0].state->max_second_moment),
              gpu.read(*first.entries[0].state->max_second_moment));
    EXPECT_LT(gpu.read(second.entries[0].state->second_moment)[0], gpu.read(first.entries[0].state->second_moment)[0]);
}

TEST(Update, AmsgradMaximumIsNanIfEitherIsAndPositiveZeroOfTwoZeros) {
    const RecordedDevice gpu;
    AdamWEntry entry = gpu.entry({1, 1, 1, 1}, {0.5F, 0.0F, kNan, 0.0F});
    entry.state = gpu.state(1, {0, 0, 0, 0}, {0, 0, 0, -0.0F});
    entry.state->max_second_moment = gpu.tensor(std::vector<float>{kNan, -0.0F, 1.0F, -0.0F});
    const AdamWUpdate update = adamw_step(entry.parameters, entry.gradients, entry.state, {.amsgrad = true});
    const std::vector<float> maximum = gpu.read(*update.state->max_second_moment);
    EXPECT_TRUE(std::isnan(maximum[0]));
    EXPECT_EQ(bits(maximum[1]), 0U);
    EXPECT_TRUE(std::isnan(maximum[2]));
    EXPECT_EQ(bits(maximum[3]), 0U);
}

TEST(Update, AmsgradMaximumOfTwoNegativeZerosIsPositive) {
    // A contracted build may round the negative remains of a caller's second moment to -0.
    const RecordedDevice gpu(true);
    AdamWEntry entry = gpu.entry({1.0F}, {0.0F});
    entry.state = gpu.state(1, {0.0F}, {from_bits(0x80000001)});
    entry.state->max_second_moment = gpu.tensor(std::vector<float>{-0.0F});
    const AdamWOptions options = {.beta2 = 0.25F, .amsgrad = true};
    const AdamWUpdate update = adamw_step(entry.parameters, entry.gradients, entry.state, options);
    EXPECT_EQ(bits(gpu.read(*update.state->max_second_moment)[0]), 0U);
}

TEST(Update, AmsgradMaximumOfANegativeNumberAndNegativeZeroIsNegativeZero) {
    // As above, with an old maximum below zero: only of two zeros is the maximum +0.
    const RecordedDevice gpu(true);
    AdamWEntry entry = gpu.entry({1.0F}, {0.0F});
    entry.state = gpu.state(1, {0.0F}, {from_bits(0x80000001)});
    entry.state->max_second_moment = gpu.tensor(std::vector<float>{-1.0F});
    const AdamWOptions options = {.beta2 = 0.25F, .amsgrad = true};
    const AdamWUpdate update = adamw_step(entry.parameters, entry.gradients, entry.state, options);
    EXPECT_EQ(bits(gpu.read(*update.state->max_second_moment)[0]), 0x80000000U);
}

TEST(Update, UnguardedNonFiniteGradientsFlowThrough) {
    const RecordedDevice gpu;
    const AdamWEntry entry = gpu.entry({1, 1, 1}, {kNan, kInfinity, 0.5F});
    gpu.forget_calls();
    const AdamWUpdate update = adamw_step(entry.parameters, entry.gradients, std::nullopt);
    EXPECT_EQ(gpu.log->count(harness::DeviceCall::kLaunch), 1U);
    EXPECT_EQ(gpu.log->count(harness::DeviceCall::kReadback), 0U);
    const std::vector<float> p = gpu.read(update.parameters);
    EXPECT_TRUE(std::isnan(p[0]));
    EXPECT_TRUE(std::isnan(p[1]));
    EXPECT_EQ(bits(p[2]), 0x3F7FBE75U);
}

TEST(Update, UnguardedSkipAndEmptyReturnTheInputsWithoutACall) {
    const RecordedDevice gpu;
    const AdamWEntry entry = gpu.entry({1.0F}, {0.5F});
    const AdamWEntry empty = gpu.entry({}, {});
    gpu.forget_calls();
    const AdamWUpdate skipped = adamw_step(entry.parameters, entry.gradients, std::nullopt, {}, {.skip_update = true});
    EXPECT_FALSE(skipped.updated);
    EXPECT_FALSE(skipped.state);
    EXPECT_EQ(skipped.parameters.storage.address, entry.parameters.storage.address);
    EXPECT_FALSE(adamw_step(empty.parameters, empty.gradients, std::nullopt).updated);
    EXPECT_TRUE(gpu.log->calls.empty());
}

TEST(Update, UnguardedEqualsGuardedWithClipOne) {
    for (const bool contracted : {false, true}) {
        const RecordedDevice gpu(contracted);
        const std::vector<AdamWEntry> entries = {testing::upload(gpu, host_entry(700, DType::kF16, 3, 4, false))};
        const AdamWUpdate bare = adamw_step(entries[0].parameters, entries[0].gradients, entries[0].state);
        const GuardedAdamWUpdate guarded = guarded_adamw_step(entries, {}, {}, kNoClipping);
        EXPECT_TRUE(testing::same_bits(gpu.read(guarded.entries[0].parameters), gpu.read(bare.parameters)));
        EXPECT_TRUE(
            testing::same_bits(gpu.read(guarded.entries[0].state->second_moment), gpu.read(bare.state->second_moment)));
    }
}

TEST(Update, CoefficientsAreTheOraclesBitForBit) {
    const float betas[] = {0.0F, 0.5F, 0.9F, 0.999F, 0.9999F, from_bits(0x3F7FFFFF), from_bits(1)};
    const std::uint64_t steps[] = {
        1, 2, 3, 7, 256, 257, 1U << 24U, std::uint64_t{3} << 23U, 1U << 26U, ~std::uint64_t{0}};
    for (const float beta : betas) {
        for (const std::uint64_t t : steps) {
            for (const float scale : {1.0F, 3.0F, 65536.0F, 0x1p-127F}) {
                const AdamWOptions options = {
                    .learning_rate = 0.1F, .beta1 = beta, .beta2 = beta, .weight_decay = 0.3F};
                const kernels::UpdateArguments got = kernels::update_coefficients(options, scale, 0.25F, t);
                const reference::UpdateCoefficients want =
                    reference::update_coefficients(options, {.gradient_scale = scale}, 0.25F, t);
                EXPECT_EQ(bits(got.reciprocal_scale), bits(want.r));
                EXPECT_EQ(bits(got.clip), bits(want.clip));
                EXPECT_EQ(bits(got.one_minus_beta1), bits(want.one_minus_beta1));
                EXPECT_EQ(bits(got.one_minus_beta2), bits(want.one_minus_beta2));
                EXPECT_EQ(bits(got.inverse_bias1), bits(want.inverse_bias1));
                EXPECT_EQ(bits(got.inverse_bias2), bits(want.inverse_bias2));
                EXPECT_EQ(bits(got.decay), 0x3F7851ECU);
                EXPECT_EQ(bits(want.decay), 0x3F7851ECU);
            }
        }
    }
}

TEST(Update, BiasCorrectionsOfLongRuns) {
    const float beta = from_bits(0x3F7FFFFF);
    EXPECT_EQ(bits(kernels::inverse_bias_correction(beta, 1U << 24U)), 0x3FCA7E36U);
    EXPECT_EQ(bits(kernels::inverse_bias_correction(beta, std::uint64_t{3} << 23U)), 0x3FA4C386U);
    EXPECT_EQ(bits(kernels::inverse_bias_correction(beta, 1U << 25U)), 0x3F9408C5U);
    EXPECT_EQ(bits(kernels::inverse_bias_correction(beta, 1U << 26U)), 0x3F82635DU);
    EXPECT_EQ(bits(kernels::inverse_bias_correction(0.999F, 256)), 0x408D9F11U);
    EXPECT_EQ(bits(kernels::inverse_bias_correction(0.999F, 257)), 0x408D234BU);
}

/// dtype, first step, AMSGrad, maximize, clip.
class UpdateVariant : public ::testing::TestWithParam<std::tuple<DType, bool, bool, bool, bool>> {
  protected:
    reference::HostEntry host(std::size_t count) const {
        return host_entry(count, dtype(), 42, std::get<1>(GetParam()) ? 0 : 5, amsgrad());
    }
    DType dtype() const { return std::get<0>(GetParam()); }
    bool amsgrad() const { return std::get<2>(GetParam()); }
    AdamWOptions options() const {
        return {
            .learning_rate = 0.01F, .weight_decay = 0.1F, .amsgrad = amsgrad(), .maximize = std::get<3>(GetParam())};
    }
    GradientGuardOptions guard() const {
        return {.max_norm = std::get<4>(GetParam()) ? std::optional<float>(0.1F) : std::nullopt};
    }
    StepControl control() const { return {.gradient_scale = 3.0F}; }
};

TEST_P(UpdateVariant, WithoutContractionHasTheLinesBits) {
    const RecordedDevice gpu(false);
    const std::vector<reference::HostEntry> hosts = {host(1500)};
    const GuardedAdamWUpdate got = guarded_adamw_step(testing::upload(gpu, hosts), options(), control(), guard());
    const reference::HostGuardedUpdate want = reference::guarded_step(hosts, options(), control(), guard());
    EXPECT_EQ(bits(got.clip_multiplier), bits(want.clip_multiplier));
    EXPECT_EQ(got.clip_multiplier < 1.0F, guard().max_norm.has_value());
    testing::expect_same(gpu, got.entries[0], want.entries[0]);
}

TEST_P(UpdateVariant, WithContractionStaysInTheLegalSet) {
    for (const std::uint64_t seed : {0, 1, 2}) {
        const RecordedDevice gpu(true, seed);
        const reference::HostEntry host = this->host(1500);
        const std::vector<AdamWEntry> entries = {testing::upload(gpu, host)};
        const GuardedAdamWUpdate got = guarded_adamw_step(entries, options(), control(), guard());
        const AdamWUpdate& update = got.entries[0];
        const std::vector<float> p = gpu.read(update.parameters);
        const std::vector<float> m = gpu.read(update.state->first_moment);
        const std::vector<float> v = gpu.read(update.state->second_moment);
        const std::vector<float> x = amsgrad() ? gpu.read(*update.state->max_second_moment) : std::vector<float>{};
        harness::UpdateOperands operands;
        operands.gradients = host.gradient_view();
        operands.old_parameters = host.parameters;
        if (host.state) {
            operands.old_first_moment = host.state->first_moment;
            operands.old_second_moment = host.state->second_moment;
            if (amsgrad()) operands.old_max_second_moment = *host.state->max_second_moment;
        }
        operands.parameters = p;
        operands.first_moment = m;
        operands.second_moment = v;
        operands.max_second_moment = x;
        const auto coefficients =
            reference::update_coefficients(options(), control(), got.clip_multiplier, update.state->step);
        const harness::UpdateVerdict verdict =
            harness::judge_update(operands, coefficients, harness::Contraction::kAllowed, false);
        EXPECT_TRUE(verdict.ok) << verdict.outside << " elements outside, the first at "
                                << (verdict.first ? verdict.first->index : 0);
    }
}

std::string variant_name(const ::testing::TestParamInfo<UpdateVariant::ParamType>& info) {
    const auto& [dtype, first, amsgrad, maximize, clip] = info.param;
    return std::string(to_string(dtype)) + (first ? "_first" : "_later") + (amsgrad ? "_amsgrad" : "") +
           (maximize ? "_maximize" : "") + (clip ? "_clipped" : "");
}
INSTANTIATE_TEST_SUITE_P(All, UpdateVariant,
                         ::testing::Combine(::testing::ValuesIn(kAllDTypes), ::testing::Bool(), ::testing::Bool(),
                                            ::testing::Bool(), ::testing::Bool()),
                         variant_name);

TEST(Update, EverySizeAroundTheGeometryIsUpdatedWholly) {
    for (const std::size_t size : {1U, 31U, 32U, 33U, 255U, 256U, 257U, 1023U, 1024U, 1025U, 4097U, 65537U}) {
        const RecordedDevice gpu;
        const std::vector<reference::HostEntry> hosts = {host_entry(size, DType::kF32, size, 2, false)};
        const GuardedAdamWUpdate got = guarded_adamw_step(testing::upload(gpu, hosts));
        testing::expect_same(gpu, got.entries[0], reference::guarded_step(hosts, {}, {}, {}).entries[0]);
    }
}

}  // namespace
}  // namespace gradguard
