// SPDX-License-Identifier: Apache-2.0
// CUB's collectives, compiled by nvcc unoptimised and optimised, against what the CPU computes: the same result under
// every schedule, and nothing for an observer to complain about. The kernels are tests/programs/cub/*.cu.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <numeric>
#include <sstream>

#include "tests/programs/program.h"

namespace gradguard::programs {
namespace {

/// Words that look random but are the same everywhere.
Words random_words(std::size_t count, std::uint32_t modulus) {
    Words words(count);
    std::uint32_t state = 0x9E3779B9U;
    for (std::uint32_t& word : words) {
        state ^= state << 13U;
        state ^= state >> 17U;
        state ^= state << 5U;
        word = state % modulus;
    }
    return words;
}

std::shared_ptr<const vgpu::Module> load_cub(const std::string& name) {
    return load(std::string(GRADGUARD_SOURCE_DIR) + "/tests/programs/cub/" + name);
}

class Cub : public testing::TestWithParam<const char*> {
  protected:
    /// Runs an entry of `program` with one input and one output under several schedules, and compares.
    void expect_result(const std::string& program, const std::string& entry, const vgpu::LaunchConfig& config,
                       const Words& in, const Words& wanted) {
        const auto module = load_cub(program + "." + GetParam() + ".ptx");
        for (std::uint64_t seed = 0; seed < seeds(6); ++seed) {
            const Outcome got = launch(*module, entry, config, {input(in), output(wanted.size())}, seed);
            ASSERT_EQ(got.findings, "") << entry << " seed " << seed;
            ASSERT_EQ(got.outputs.at(0), wanted) << entry << " seed " << seed;
            barriers_ += got.counters.barriers;
            observers::add_checked(checked_, got.checked);
        }
    }

    std::uint64_t barriers_ = 0;
    std::vector<observers::Checked> checked_;
};

const vgpu::LaunchConfig kOneBlock{{1}, {256}, 0};

Words sums_of(const Words& in, std::size_t group) {
    Words sums(in.size() / group);
    for (std::size_t i = 0; i < in.size(); ++i) sums[i / group] += in[i];
    return sums;
}

TEST_P(Cub, WarpSumsAndMaxima) {
    const Words in = random_words(256, 0xFFFFFFFFU);
    expect_result("warp", "warp_sum_i32", kOneBlock, in, sums_of(in, 32));
    Words largest(8);
    for (std::size_t warp = 0; warp < largest.size(); ++warp) {
        int value = INT_MIN;
        for (std::size_t i = 0; i < 32; ++i) value = std::max(value, static_cast<int>(in[warp * 32 + i]));
        largest[warp] = static_cast<std::uint32_t>(value);
    }
    expect_result("warp", "warp_max_i32", kOneBlock, in, largest);
}

TEST_P(Cub, WarpSumOfFloatsHasTheBitsOfTheShuffleOrder) {
    Words in = random_words(256, 0x7FFFFFFFU);
    for (std::uint32_t& word : in) {
        const auto value = static_cast<float>(static_cast<int>(word % 20001U) - 10000);
        word = std::bit_cast<std::uint32_t>(value * 0x1.99999Ap-4F);
    }
    Words wanted(8);
    for (std::size_t warp = 0; warp < wanted.size(); ++warp) {
        float lanes[32];
        for (std::size_t i = 0; i < 32; ++i) lanes[i] = std::bit_cast<float>(in[warp * 32 + i]);
        for (std::size_t offset = 1; offset < 32; offset *= 2) {
            for (std::size_t i = 0; i + offset < 32; ++i) lanes[i] += lanes[i + offset];
        }
        wanted[warp] = std::bit_cast<std::uint32_t>(lanes[0]);
    }
    expect_result("warp", "warp_sum_f32", kOneBlock, in, wanted);
}

TEST_P(Cub, WarpScans) {
    const Words in = random_words(256, 0xFFFFFFFFU);
    Words sums(256), maxima(256);
    for (std::size_t i = 0; i < in.size(); ++i) {
        sums[i] = in[i] + (i % 32 == 0 ? 0 : sums[i - 1]);
        const int before =
            i % 16 == 0 ? INT_MIN : std::max(static_cast<int>(maxima[i - 1]), static_cast<int>(in[i - 1]));
        maxima[i] = static_cast<std::uint32_t>(before);
    }
    expect_result("warp", "warp_inclusive_sum_i32", kOneBlock, in, sums);
    expect_result("warp", "half_warp_exclusive_max_i32", kOneBlock, in, maxima);
}

TEST_P(Cub, BlockReductionsByEveryAlgorithm) {
    const Words in = random_words(5 * 256, 0xFFFFFFFFU);
    const vgpu::LaunchConfig config{{5}, {256}, 0};
    for (const char* entry : {"warp_reductions_i32", "raking_i32", "raking_commutative_only_i32"}) {
        expect_result("block_reduce", entry, config, in, sums_of(in, 256));
    }
    Words floats = random_words(5 * 256, 1000);
    Words sums = sums_of(floats, 256);  // below 2^24: exact in FP32 whatever the order
    for (Words* words : {&floats, &sums}) {
        for (std::uint32_t& word : *words) word = std::bit_cast<std::uint32_t>(static_cast<float>(word));
    }
    expect_result("block_reduce", "warp_reductions_f32", config, floats, sums);
    EXPECT_GT(barriers_, 0U);
    EXPECT_EQ(observers::checked_nothing(checked_), std::vector<std::string>{});
}

TEST_P(Cub, BlockScansByEveryAlgorithm) {
    const Words in = random_words(256, 0xFFFFFFFFU);
    Words wanted(257);
    std::partial_sum(in.begin(), in.end(), wanted.begin() + 1);
    for (const char* entry : {"raking_i32", "raking_memoize_i32", "warp_scans_i32"}) {
        expect_result("block_scan", entry, kOneBlock, in, wanted);
    }
    EXPECT_GT(barriers_, 0U);
    EXPECT_EQ(observers::checked_nothing(checked_), std::vector<std::string>{});
}

TEST_P(Cub, RadixRanksSortStably) {
    const Words in = random_words(256, 0xFFFFFFFFU);
    Words order(256), ranks(256);
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return in[a] % 16 < in[b] % 16; });
    for (std::uint32_t i = 0; i < order.size(); ++i) ranks[order[i]] = i;
    const vgpu::LaunchConfig config{{1}, {128}, 0};
    expect_result("radix_rank", "rank_u32", config, in, ranks);
    expect_result("radix_rank", "match_rank_u32", config, in, ranks);
    EXPECT_GT(barriers_, 0U);
}

const vgpu::LaunchConfig kFourItems{{1}, {128}, 0};

Words sorted(Words words) {
    std::sort(words.begin(), words.end());
    return words;
}

TEST_P(Cub, LoadsAndStoresOfSeveralItemsByEveryAlgorithm) {
    const Words in = random_words(512, 0xFFFFFFFFU);
    Words blocked(512), strided(512);
    for (std::uint32_t i = 0; i < 512; ++i) {
        blocked[i] = in[i] * 3 + i / 4;
        strided[i] = in[i] * 3 + i % 128;
    }
    for (const char* entry : {"direct", "vectorized", "transposed", "warp_transposed"})
        expect_result("sorts", entry, kFourItems, in, blocked);
    expect_result("sorts", "striped", kFourItems, in, strided);
    expect_result("sorts", "exchange", kFourItems, in, in);
}

TEST_P(Cub, BlocksSortByRadixAndMarkHeads) {
    const Words in = random_words(512, 0xFFFFFFFFU);
    expect_result("sorts", "radix_sort", kFourItems, in, sorted(in));
    const Words few = sorted(random_words(512, 1000));
    Words heads(512);
    for (std::size_t i = 0; i < few.size(); ++i) heads[i] = i == 0 || few[i] / 64 != few[i - 1] / 64 ? 1 : 0;
    expect_result("sorts", "heads", kFourItems, few, heads);
}

TEST_P(Cub, HistogramsByEveryAlgorithm) {
    const Words in = random_words(512, 0xFFFFFFFFU);
    Words bins(64);
    for (const std::uint32_t word : in) ++bins[word % 64];
    for (const char* entry : {"histogram_atomic", "histogram_sort"})
        expect_result("sorts", entry, kFourItems, in, bins);
}

/// The merge reads the key behind the last one and does not use it: right, and a finding that is true.
TEST_P(Cub, MergeSortsReadOneKeyTooMany) {
    const Words in = random_words(512, 0xFFFFFFFFU);
    Words by_warp = in;
    for (auto begin = by_warp.begin(); begin != by_warp.end(); begin += 128) std::sort(begin, begin + 128);
    const auto module = load_cub(std::string("sorts.") + GetParam() + ".ptx");
    for (const auto& [entry, wanted] : {std::pair{"warp_merge_sort", by_warp}, {"block_merge_sort", sorted(in)}}) {
        for (std::uint64_t seed = 0; seed < seeds(4); ++seed) {
            const Outcome got = launch(*module, entry, kFourItems, {input(in), output(512)}, seed);
            EXPECT_EQ(got.outputs.at(0), wanted) << entry << " seed " << seed;
            std::istringstream findings(got.findings);
            for (std::string line; std::getline(findings, line);)
                EXPECT_EQ(line.find("uninitialized read: read of 4 bytes at shared"), 0U) << line;
            EXPECT_FALSE(got.findings.empty());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Levels, Cub, testing::Values("O0", "O3"),
                         [](const auto& level) { return std::string(level.param); });

}  // namespace
}  // namespace gradguard::programs
