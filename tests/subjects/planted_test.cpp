// SPDX-License-Identifier: Apache-2.0
#include "harness/subjects/planted.h"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "tests/subjects/cases.h"

namespace gradguard {
namespace {

using harness::make_subject;
using harness::planted_faults;
using testing::Case;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Two entries of odd size with states, one clipped hard, a loss scale whose reciprocal is not exact.
Case clipped_group(std::uint64_t seed, bool amsgrad) {
    vgpu::Random random(seed);
    Case c;
    c.schedule_seed = random.next();
    c.options.amsgrad = amsgrad;
    c.options.learning_rate = 0.1F;
    c.options.weight_decay = 0.3F;
    c.control.gradient_scale = 3.0F;
    c.guard.max_norm = 0.25F;
    for (const std::size_t count : {5U, 0U, 33U})
        c.entries.push_back(testing::entry_with_state(count, random, 3, amsgrad));
    return c;
}

/// Between them they have what each planted fault needs.
std::vector<Case> telling_cases() {
    std::vector<Case> all = {clipped_group(1, false), clipped_group(2, true),  clipped_group(3, true),
                             clipped_group(4, false), clipped_group(5, false), clipped_group(6, false)};
    // NaN in the old maximum and not in v.
    std::vector<float> maxima(5, kNaN);
    all[2].entries[0].state->max_second_moment = testing::tensor(maxima);
    // An old maximum of -0 beside a negative v.
    all[1].entries[0].state->max_second_moment = testing::tensor(std::vector<float>(5, -0.0F));
    all[1].entries[0].state->second_moment = testing::tensor(std::vector<float>(5, -kInfinity));
    // A bad element outside the first tensor, beside a greater good one.
    std::vector<float> gradients(33, 0.5F);
    gradients[32] = kInfinity;
    all[3].entries[2].gradients = testing::tensor(gradients);
    // The steps at which FP32 numbers stop counting.
    all[4].entries[2].state->step = std::uint64_t{1} << 24U;
    all[5].entries[0].gradients = testing::tensor_of_words(DType::kF16, std::vector<std::uint16_t>{1, 2, 3, 0x3C00, 5});
    vgpu::Random random(7);
    all.emplace_back();  // two blocks
    all.back().entries.push_back(testing::entry(1500, random));
    all.emplace_back();  // subnormal numbers
    all.back().entries.push_back(testing::entry(3, random));
    all.back().entries[0].gradients = testing::tensor({1e-39F, 3e-39F, 1e-40F});
    // Some norms of which the rounding to FP32 shows in the clip.
    for (std::uint64_t seed = 8; seed < 24; ++seed) all.push_back(clipped_group(seed, false));
    return all;
}

std::vector<std::string> texts(const std::string& name) {
    const auto subject = make_subject(name);
    std::vector<std::string> result;
    for (const Case& c : telling_cases()) result.push_back(testing::full_text(subject->step(c)));
    return result;
}

TEST(Planted, CleanTwinsEqualTheLibrary) {
    const std::vector<std::string> library = texts("vgpu/fmad");
    const std::vector<std::string> host = texts("planted/clean-host");
    EXPECT_TRUE(host == library);
    EXPECT_TRUE(texts("planted/clean-device") == library);
}

TEST(Planted, EveryFaultDiffersFromTheCleanTwins) {
    const std::vector<std::string> clean = texts("planted/clean-device");
    for (const harness::PlantedFault& fault : planted_faults()) {
        if (fault.level == "clean") continue;
        EXPECT_TRUE(texts("planted/" + std::string(fault.name)) != clean) << fault.name;
    }
}

TEST(Planted, TableAndHostFaultsNameEachOther) {
    for (const harness::PlantedFault& fault : planted_faults()) {
        const bool compiled = !fault.statistics_ptx.empty() || !fault.update_ptx.empty();
        bool of_host = false;
        for (const harness::HostFault& host : harness::host_faults()) of_host |= host.name == fault.name;
        EXPECT_NE(compiled, of_host) << fault.name;
        if (fault.level == "clean") continue;
        EXPECT_EQ(fault.level, compiled ? "device" : "host") << fault.name;
    }
    for (const harness::HostFault& host : harness::host_faults()) {
        bool in_table = false;
        for (const harness::PlantedFault& fault : planted_faults()) in_table |= host.name == fault.name;
        EXPECT_TRUE(in_table) << host.name;
    }
}

TEST(Planted, EveryFaultOfTheListIsThere) {
    constexpr std::string_view kListed[] = {"no unscale",
                                            "unscale twice",
                                            "clip per tensor",
                                            "clip folded into r",
                                            "squared norm compared with max_norm",
                                            "epsilon inside the root",
                                            "epsilon before bias correction",
                                            "decay after the update",
                                            "decay added to the gradient",
                                            "step kept as FP32 (stops at 2^24)",
                                            "AMSGrad maximum not stored",
                                            "maximum of the corrected v",
                                            "std::max that drops NaN",
                                            "bias power in FP32",
                                            "only the first tensor checked for infinity",
                                            "flag inferred from the sum",
                                            "NaN passing a comparison guard",
                                            "a missing barrier",
                                            "a tree that skips its last level",
                                            "a partial reduction that reads one triple too many",
                                            "an empty tensor that shifts the ones after it"};
    for (const std::string_view listed : kListed) {
        bool planted = false;
        for (const harness::PlantedFault& fault : planted_faults()) planted |= fault.listed == listed;
        EXPECT_TRUE(planted) << listed;
    }
}

}  // namespace
}  // namespace gradguard
