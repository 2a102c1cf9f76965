// SPDX-License-Identifier: Apache-2.0
// The update (contract section 6) and the guarded step around it, in the build without contraction: the lines' own
// bits.
#include <cmath>
#include <limits>

#include "property_tests/hardware/hardware_test.h"
#include "reference/contract/dtype.h"
#include "tests/support/group_values.h"
#include "tests/support/values.h"

namespace gradguard::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const GradientGuardOptions kNoClipping = {.max_norm = std::nullopt};

class HardwareUpdate : public Hardware {
  protected:
    /// A step of one element from a fresh state.
    reference::HostUpdate step_of_one(float p, float g, const AdamWOptions& options = {},
                                      const GradientGuardOptions& guard = {}) const {
        const std::vector<AdamWEntry> entries = {
            {upload(queue, std::vector{p}), upload(queue, std::vector{g}), std::nullopt}};
        return download(guarded_adamw_step(entries, options, {}, guard).entries.at(0));
    }
    void expect_golden(const reference::HostUpdate& got, std::uint32_t p, std::uint32_t m, std::uint32_t v) const {
        ASSERT_TRUE(got.state);
        EXPECT_EQ(got.state->step, 1U);
        EXPECT_EQ(bits(got.parameters[0]), p);
        EXPECT_EQ(bits(got.state->first_moment[0]), m);
        EXPECT_EQ(bits(got.state->second_moment[0]), v);
    }
};
GRADGUARD_ON_HARDWARE(HardwareUpdate);

TEST_P(HardwareUpdate, GivesTheGoldenBits) {
    expect_golden(step_of_one(1.0F, 0.5F), 0x3F7FBE75U, 0x3D4CCCD0U, 0x39831200U);
    expect_golden(step_of_one(1.0F, 0.5F, {.maximize = true}), 0x3F8020C3U, 0xBD4CCCD0U, 0x39831200U);
    expect_golden(step_of_one(0.75F, 3.0F, {.learning_rate = 0.0F}, kNoClipping), 0x3F400000U, 0x3E99999CU,
                  0x3C137440U);
    EXPECT_EQ(bits(step_of_one(1.0F, 0.0F, {.learning_rate = 0.1F, .weight_decay = 0.1F}).parameters[0]), 0x3F7D70A4U);
    const AdamWOptions tight = {.learning_rate = 0.1F, .epsilon = 1e-8F, .weight_decay = 0.1F};
    EXPECT_EQ(bits(step_of_one(1.0F, 1.0F, tight, kNoClipping).parameters[0]), 0x3F63D70AU);
    expect_golden(step_of_one(1.0F, 1e20F, {}, kNoClipping), 0x3F7FFFFEU, 0x5F0AC725U, bits(kInfinity));
}

// Every kernel of the update: 3 types, first or later step, with and without AMSGrad, with and without clipping.
TEST_P(HardwareUpdate, OfEveryVariantGivesTheLinesBits) {
    for (const DType dtype : kAllDTypes) {
        for (const std::uint64_t step : {0, 7}) {
            for (const bool amsgrad : {false, true}) {
                for (const bool maximize : {false, true}) {
                    const AdamWOptions options = {.amsgrad = amsgrad, .maximize = maximize};
                    const std::vector<reference::HostEntry> hosts = {host_entry(1500, dtype, 11, step, amsgrad)};
                    SCOPED_TRACE(std::string(to_string(dtype)) + " after " + std::to_string(step) + " steps");
                    expect_oracles_step(hosts, options, {.gradient_scale = 128.0F}, {.max_norm = 0.01F});
                    expect_oracles_step(hosts, options, {.gradient_scale = 128.0F}, kNoClipping);
                }
            }
        }
    }
}

TEST_P(HardwareUpdate, OfEverySizeGivesTheLinesBits) {
    for (const std::size_t size : {1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 65537, 262145}) {
        SCOPED_TRACE(size);
        expect_oracles_step({host_entry(size, DType::kBF16, size, 2, false)});
    }
}

TEST_P(HardwareUpdate, OfAMixedGroupOverSeveralStepsGivesTheLinesBits) {
    std::vector<reference::HostEntry> hosts = {
        host_entry(1500, DType::kF32, 1, 0, true), host_entry(0, DType::kF16, 2, 0, true),
        host_entry(40, DType::kF16, 3, 0, true), host_entry(300, DType::kBF16, 4, 0, true)};
    const AdamWOptions options = {.amsgrad = true};
    for (int step = 0; step < 6; ++step) {
        SCOPED_TRACE(step);
        const StepControl control = {.gradient_scale = std::ldexp(1.0F, step), .skip_update = step == 3};
        if (step == 4) {  // a bad value somewhere: the whole group is skipped
            auto& gradients = hosts[3].gradients;
            gradients[gradients.size() - 2] = std::byte{0x80};
            gradients[gradients.size() - 1] = std::byte{0x7F};
        }
        expect_oracles_step(hosts, options, control);
        const auto want = reference::guarded_step(hosts, options, control, {});
        for (std::size_t i = 0; i < hosts.size(); ++i) {
            const std::vector<float> next = ordinary(hosts[i].parameters.size(), 100 * step + i, 0.5F);
            hosts[i] = {want.entries[i].parameters, hosts[i].gradient_dtype, stored(next, hosts[i].gradient_dtype),
                        want.entries[i].state};
        }
    }
}

TEST_P(HardwareUpdate, OfValuesOfEveryClassGivesTheLinesBits) {
    reference::HostEntry host = host_entry(6000, DType::kF32, 3, 5, true);
    std::vector<float> gradients(6000);
    for (std::uint32_t i = 0; i < 6000; ++i) {
        host.parameters[i] = any_float(i * 2654435761U);
        gradients[i] = any_float(i * 2246822519U + 7U);
        host.state->first_moment[i] = any_float(i * 3266489917U + 1U);
        host.state->second_moment[i] = any_float(i * 668265263U + 5U);
        (*host.state->max_second_moment)[i] = any_float(i * 374761393U + 3U);
    }
    host.gradients = stored(gradients, DType::kF32);
    for (const bool maximize : {false, true}) {
        const AdamWOptions options = {.amsgrad = true, .maximize = maximize};
        const StepControl control = {.gradient_scale = 2.0F};
        const auto entry = place(host);
        const auto got = adamw_step(entry.parameters, entry.gradients, entry.state, options, control);
        EXPECT_EQ(difference(download(got), reference::adamw_step(host, options, control)), "");
    }
}

TEST_P(HardwareUpdate, KeepsSubnormals) {
    reference::HostEntry host = host_entry(4, DType::kF32, 3, 5, false);
    host.parameters = {0x1p-149F, -0x1p-140F, 0x1.8p-127F, 0x1p-126F};
    host.gradients = stored({0x1p-149F, 0x1p-130F, 0x1p-127F, 0x1p-126F}, DType::kF32);
    host.state->first_moment = {0x1p-149F, 0x1p-149F, 0x1p-128F, -0x1p-149F};
    host.state->second_moment = {0x1p-149F, 0x1p-140F, 0x1p-130F, 0x1p-127F};
    const AdamWOptions options = {.learning_rate = 0x1p-30F, .beta1 = 0.5F, .beta2 = 0.5F, .weight_decay = 0.0F};
    expect_oracles_step({host}, options, {}, kNoClipping);
    const auto entry = place(host);
    const auto got = download(adamw_step(entry.parameters, entry.gradients, entry.state, options));
    EXPECT_EQ(bits(got.state->first_moment[2]), bits(0x1.8p-128F));
}

TEST_P(HardwareUpdate, AmsgradMaximumIsNanIfEitherIsAndPositiveZeroOfTwoZeros) {
    reference::HostEntry host = host_entry(4, DType::kF32, 1, 1, true);
    host.parameters = {1, 1, 1, 1};
    host.gradients = stored({0.5F, 0.0F, kNan, 0.0F}, DType::kF32);
    host.state->first_moment = {0, 0, 0, 0};
    host.state->second_moment = {0, 0, 0, -0.0F};
    host.state->max_second_moment = std::vector<float>{kNan, -0.0F, 1.0F, -0.0F};
    const auto entry = place(host);
    const auto got = download(adamw_step(entry.parameters, entry.gradients, entry.state, {.amsgrad = true}));
    const std::vector<float>& maximum = *got.state->max_second_moment;
    EXPECT_TRUE(std::isnan(maximum[0]));
    EXPECT_EQ(bits(maximum[1]), 0U);
    EXPECT_TRUE(std::isnan(maximum[2]));
    EXPECT_EQ(bits(maximum[3]), 0U);
}

TEST_P(HardwareUpdate, TheUnguardedOperatorLetsNonFiniteGradientsThroughAndTheGuardedOneSkips) {
    reference::HostEntry host = host_entry(1030, DType::kF32, 9, 4, false);
    std::vector<float> gradients = ordinary(1030, 8);
    gradients[0] = kNan;
    gradients[1029] = -kInfinity;
    host.gradients = stored(gradients, DType::kF32);
    const auto entry = place(host);
    const auto unguarded = download(adamw_step(entry.parameters, entry.gradients, entry.state));
    EXPECT_EQ(difference(unguarded, reference::adamw_step(host, {}, {})), "");
    EXPECT_TRUE(std::isnan(unguarded.parameters[0]));
    const auto guarded = guarded_adamw_step(std::vector<AdamWEntry>{entry});
    EXPECT_EQ(guarded.skip_reason, SkipReason::kNonFinite);
    EXPECT_EQ(guarded.entries[0].parameters.data(), entry.parameters.data());
    expect_oracles_step({host, host_entry(20, DType::kF16, 1, 3, false)});
    try {
        guarded_adamw_step(std::vector<AdamWEntry>{entry}, {}, {}, {.nonfinite = NonFinitePolicy::kError});
        ADD_FAILURE() << "no error was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kNonFiniteGradients) << error.what();
    }
}

TEST_P(HardwareUpdate, ASkipLeavesEverythingAndAZeroLimitClipsToZero) {
    const std::vector<reference::HostEntry> hosts = {host_entry(300, DType::kF32, 5, 2, false),
                                                     host_entry(30, DType::kBF16, 6, 2, false)};
    expect_oracles_step(hosts, {}, {.gradient_scale = 1.0F, .skip_update = true});
    expect_oracles_step(hosts, {}, {}, {.max_norm = 0.0F});
    expect_oracles_step({host_entry(0, DType::kF32, 5, 0, false)});
}

TEST_P(HardwareUpdate, OperandsMayAliasEachOther) {
    const std::vector<float> values = ordinary(1500, 3);
    reference::HostEntry host{values, DType::kF32, stored(values, DType::kF32), {}};
    host.state = {3, values, values, std::nullopt};
    for (float& value : host.state->second_moment) value = std::fabs(value);
    const std::vector<float> squares = host.state->second_moment;
    host.parameters = host.state->first_moment = squares;
    host.gradients = stored(squares, DType::kF32);
    const Tensor one = upload(queue, squares);
    const auto got = guarded_adamw_step(std::vector<AdamWEntry>{{one, one, AdamWState{3, one, one, std::nullopt}}});
    const auto want = reference::guarded_step(std::vector{host}, {}, {}, {});
    EXPECT_EQ(difference(download(got.entries[0]), want.entries[0]), "");
    EXPECT_EQ(difference(download(one), squares, "the operand"), "");
}

TEST_P(HardwareUpdate, HasTheSameBitsTwentyTimesInBothBuilds) {
    const reference::HostEntry host = host_entry(50000, DType::kF16, 3, 5, true);
    for (const bool contracted : {false, true}) {
        device->set_kernel_source(kernels(contracted));
        const std::vector<AdamWEntry> entries = {place(host)};
        const auto first = download(guarded_adamw_step(entries, {.amsgrad = true}).entries[0]);
        for (int again = 1; again < 20; ++again) {
            const auto got = download(guarded_adamw_step(entries, {.amsgrad = true}).entries[0]);
            ASSERT_EQ(difference(got, first), "") << again;
        }
    }
}

}  // namespace
}  // namespace gradguard::testing
