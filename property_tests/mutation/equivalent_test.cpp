// SPDX-License-Identifier: Apache-2.0
// What the arguments of equivalent.json rest on, computed with the model over the values that kernels can reach.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "reference/contract/constants.h"
#include "reference/model/statistics.h"
#include "reference/model/update.h"

namespace gradguard::reference {
namespace {

/// Magnitudes of good elements at which something changes (zero, subnormals, the ends), and others whose squares count.
std::vector<float> magnitudes() {
    std::vector<float> all = {0.0F, 1.0F, 1.5F, 3.0F, 0x1.fffffep0F, 0x1.000002p-60F, 0x1.999999p40F};
    for (const float edge : {std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(),
                             std::numeric_limits<float>::max(), 0x1p-75F, 0x1p64F}) {
        all.push_back(edge);
        all.push_back(std::nextafter(edge, 0.0F));
    }
    for (int i = 1; i < 24; ++i) all.push_back(std::ldexp(1.0F + 0.041F * static_cast<float>(i), i / 3));
    return all;
}

GradientSummary pair(float scale, float sumsq) { return {scale, sumsq, 0.0F}; }

std::pair<std::uint32_t, std::uint32_t> bits(const GradientSummary& p) {
    return {std::bit_cast<std::uint32_t>(p.scale), std::bit_cast<std::uint32_t>(p.sumsq)};
}

/// All pairs that lanes hold after up to three elements, and merges of those.
std::vector<GradientSummary> reachable_pairs() {
    std::vector<GradientSummary> all = {pair(0.0F, 0.0F)};
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen = {bits(all[0])};
    const auto keep = [&](const GradientSummary& merged) {
        if (seen.insert(bits(merged)).second) all.push_back(merged);
    };
    for (int elements = 0; elements < 2; ++elements) {
        const std::size_t known = all.size();
        for (std::size_t i = 0; i < known; ++i) {
            for (const float magnitude : magnitudes()) keep(merge_summaries(all[i], pair(magnitude, 1.0F)));
        }
    }
    const std::size_t known = all.size();
    for (std::size_t i = 0; i < known; ++i) {
        for (std::size_t j = 0; j < known; j += 17) keep(merge_summaries(all[i], all[j]));
    }
    return all;
}

TEST(EquivalentMutants, ThousandsOfPairsAreReached) { ASSERT_GT(reachable_pairs().size(), 5000); }

TEST(EquivalentMutants, APairOfScaleZeroIsZeroAndNoScaleIsNegative) {
    for (const GradientSummary& p : reachable_pairs()) {
        ASSERT_FALSE(std::signbit(p.scale));
        ASSERT_TRUE(std::isfinite(p.scale));
        if (p.scale == 0.0F) {
            ASSERT_EQ(bits(p), bits(pair(0.0F, 0.0F)));
        }
    }
}

TEST(EquivalentMutants, MergingReachablePairsCommutes) {
    const std::vector<GradientSummary> pairs = reachable_pairs();
    for (const GradientSummary& a : pairs) {
        for (std::size_t j = 0; j < pairs.size(); j += 101) {
            ASSERT_EQ(bits(merge_summaries(a, pairs[j])), bits(merge_summaries(pairs[j], a)));
        }
    }
}

TEST(EquivalentMutants, DividingZeroByALargerScaleAddsNothing) {
    for (const GradientSummary& larger : reachable_pairs()) {
        if (larger.scale == 0.0F) continue;
        for (const float sumsq : {0.0F, 1.0F}) {  // an idle lane's and a zero element's
            const float q = 0.0F / larger.scale;
            const float sum = larger.sumsq + sumsq * (q * q);
            ASSERT_EQ(std::bit_cast<std::uint32_t>(sum), std::bit_cast<std::uint32_t>(larger.sumsq));
        }
    }
}

TEST(EquivalentMutants, ANegativeZeroScaleIsNeverKept) {
    for (const GradientSummary& own : reachable_pairs()) {
        ASSERT_EQ(bits(merge_summaries(own, pair(-0.0F, 1.0F))), bits(own));
    }
}

TEST(EquivalentMutants, LanesOffsetsAndTheirSumsFitInAByte) {
    for (unsigned int offset = kThreadsPerBlock / 2; offset > 0; offset /= 2) {
        ASSERT_EQ(static_cast<unsigned char>(offset), offset);
        for (unsigned int lane = 0; lane < kThreadsPerBlock; ++lane) {
            ASSERT_EQ(static_cast<unsigned char>(lane), lane);
            if (lane < offset) {
                ASSERT_EQ(static_cast<unsigned char>(lane + offset), lane + offset);
            }
        }
    }
}

TEST(EquivalentMutants, AFactorOfOneOrMinusOneIsExactAndCommutes) {
    // Every 1021st bit pattern: all exponents, both signs, NaN and infinity.
    for (std::uint64_t word = 0; word <= 0xFFFFFFFF; word += 1021) {
        const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(word));
        const volatile float one = 1.0F;  // so that it is computed here and not proven by the compiler
        ASSERT_TRUE(same_float(x * one, x));
        for (const float sign : {1.0F, -1.0F}) {
            const float direction = sign * one;
            ASSERT_TRUE(same_float(x / direction, x * direction));
            if (!is_nan(x)) {
                ASSERT_EQ(static_cast<double>(direction) * x, static_cast<double>(x * direction));
            }
            for (const float clip : {0.0F, 0x1p-149F, 0.333333343F, 0.999999940F}) {
                ASSERT_TRUE(same_float((x * clip) * direction, (x * direction) * clip));
            }
        }
    }
}

TEST(EquivalentMutants, TheAmsgradMaximumCommutes) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> all = {nan, infinity, -infinity};
    for (const float magnitude : magnitudes()) {
        all.push_back(magnitude);
        all.push_back(-magnitude);
    }
    for (const float a : all) {
        for (const float b : all) ASSERT_TRUE(same_float(maximum(a, b), maximum(b, a))) << a << " and " << b;
    }
}

/// A lane without elements holds (0, whatever); beside any pair, and after any number of such lanes, it changes
/// nothing.
TEST(EquivalentMutants, TheSumOfAnIdleLaneIsNeverSeen) {
    // The kernel's branch: where the smaller scale is 0 the larger pair is kept as it is.
    const auto kernel_merge = [](const GradientSummary& a, const GradientSummary& b) {
        const GradientSummary& smaller = a.scale >= b.scale ? b : a;
        return smaller.scale == 0.0F ? (a.scale >= b.scale ? a : b) : merge_summaries(a, b);
    };
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const float sumsq : {0.0F, -0.0F, 1.0F, 0x1p-149F, -3.0F, std::numeric_limits<float>::infinity(), nan}) {
        GradientSummary idle = pair(0.0F, sumsq);
        idle = kernel_merge(idle, pair(0.0F, nan));
        for (const GradientSummary& own : reachable_pairs()) {
            ASSERT_EQ(bits(kernel_merge(own, idle)), bits(own));
            if (own.scale > 0.0F) {
                ASSERT_EQ(bits(kernel_merge(idle, own)), bits(own));
            }
        }
    }
}

std::vector<float> squares_times_factors() {
    std::vector<float> all;
    for (std::uint64_t word = 0; word <= 0x7FFFFFFF; word += 1021) {
        const auto g = std::bit_cast<float>(static_cast<std::uint32_t>(word));
        for (const float one_minus_beta2 : {1.0F, 0.75F, 0x1p-24F}) all.push_back(one_minus_beta2 * (g * g));
    }
    return all;
}

TEST(EquivalentMutants, AMomentOfMinusZeroAddsNothingToASquare) {
    for (const float term : squares_times_factors()) {
        for (const float beta2 : {0.0F, 0.25F, 0x1.fffffep-1F}) {
            const volatile float minus_zero = -0.0F;
            const float v = beta2 * minus_zero + term;
            ASSERT_TRUE(same_float(v, beta2 * 0.0F + term));
            ASSERT_TRUE(same_float(std::fma(beta2, minus_zero, term), v));
            ASSERT_FALSE(v == 0.0F && std::signbit(v));
        }
    }
}

TEST(EquivalentMutants, TheMaximumOfASquareAndEitherZeroIsTheSame) {
    for (const float v : squares_times_factors()) {
        ASSERT_TRUE(same_float(maximum(-0.0F, v), maximum(0.0F, v)));
        ASSERT_TRUE(same_float(maximum(0.0F, v), v));
        ASSERT_TRUE(same_float(v + 0.0F, v));
    }
}

}  // namespace
}  // namespace gradguard::reference
