// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies, cooperative groups and a look-back (own/copies.cu, own/groups.cu) by nvcc at every level: right
// under every schedule, nothing for an observer to complain about; and a forgotten wait is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tests/programs/program.h"

namespace gradguard::programs {
namespace {

std::shared_ptr<const vgpu::Module> own(const std::string& name, const std::string& level) {
    return load(std::string(GRADGUARD_SOURCE_DIR) + "/tests/programs/own/" + name + "." + level + ".ptx");
}

Words values(std::uint32_t count) {
    Words words(count);
    for (std::uint32_t i = 0; i < count; ++i) words[i] = (i + 1) * 2654435761U;
    return words;
}

void expect_result(const vgpu::Module& module, const std::string& entry, const vgpu::LaunchConfig& config,
                   const std::vector<Argument>& arguments, const Words& wanted) {
    for (std::uint64_t seed = 0; seed < seeds(12); ++seed) {
        const Outcome got = launch(module, entry, config, arguments, seed);
        ASSERT_EQ(got.findings, "") << entry << " seed " << seed;
        ASSERT_EQ(got.outputs.at(0), wanted) << entry << " seed " << seed;
    }
}

/// What staged_sum gives: each thread adds what its mirror image copied.
Words staged_sums(const Words& in) {
    Words sums(128);
    for (std::size_t i = 0; i < in.size(); ++i) sums[127 - i % 128] += in[i];
    return sums;
}

class Copies : public testing::TestWithParam<const char*> {};

TEST_P(Copies, ATransposeThroughAsynchronousTiles) {
    const std::uint32_t width = 64, height = 32;
    const Words in = values(width * height);
    Words wanted(in.size());
    for (std::uint32_t y = 0; y < height; ++y) {
        for (std::uint32_t x = 0; x < width; ++x) wanted[x * height + y] = in[y * width + x];
    }
    expect_result(*own("copies", GetParam()), "transpose", {{2, 1}, {32, 4}, 0},
                  {input(in), output(wanted.size()), scalar(width), scalar(height)}, wanted);
}

TEST_P(Copies, TwoStagesOverlapAndTheLastOneIsFilledWithZeros) {
    for (const std::uint32_t elements : {1U, 128U, 500U}) {
        const Words in = values(elements);
        expect_result(*own("copies", GetParam()), "staged_sum", {{1}, {128}, 0},
                      {input(in), output(128), scalar(elements)}, staged_sums(in));
    }
}

TEST_P(Copies, AForgottenWaitIsFound) {
    const Words in = values(500);
    const Outcome got = launch(*own("copies", GetParam()), "staged_sum_without_wait", {{1}, {128}, 0},
                               {input(in), output(128), scalar(500U)}, 0);
    EXPECT_NE(got.findings.find("uninitialized read"), std::string::npos) << got.findings;
    EXPECT_NE(got.outputs.at(0), staged_sums(in));
}

/// Unoptimised, cooperative groups copy objects of which a part was never set.
TEST_P(Copies, TilesReduce) {
    const Words in = values(256);
    Words wanted;
    for (std::size_t begin = 0; begin < in.size(); begin += 16) {
        std::uint32_t sum = 0;
        auto largest = static_cast<std::int32_t>(in[begin]);
        for (std::size_t i = begin; i < begin + 16; ++i) {
            sum += in[i];
            largest = std::max(largest, static_cast<std::int32_t>(in[i]));
        }
        wanted.push_back(sum);
        wanted.push_back(static_cast<std::uint32_t>(largest));
    }
    expect_result(*own("groups", GetParam()), "tile_reduce", {{4}, {64}, 0}, {input(in), output(wanted.size())},
                  wanted);
}

TEST_P(Copies, AtomicsOfAWarpAreOne) {
    const Words in = values(300);
    Words wanted;
    std::copy_if(in.begin(), in.end(), std::back_inserter(wanted), [](std::uint32_t word) { return word % 2 != 0; });
    for (std::uint64_t seed = 0; seed < seeds(12); ++seed) {
        Outcome got = launch(*own("groups", GetParam()), "keep_odd", {{5}, {64}, 0},
                             {input(in), scalar(300U), in_out({0}), output(wanted.size())}, seed);
        ASSERT_EQ(got.findings, "") << seed;
        EXPECT_EQ(got.outputs.at(0), Words{static_cast<std::uint32_t>(wanted.size())});
        std::sort(got.outputs[1].begin(), got.outputs[1].end());
        Words sorted = wanted;
        std::sort(sorted.begin(), sorted.end());
        EXPECT_EQ(got.outputs[1], sorted);
    }
}

TEST_P(Copies, BlocksLookBackForTheSumsBeforeThem) {
    const Words in = values(6 * 256);
    Words wanted(in.size());
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < in.size(); ++i) wanted[i] = sum += in[i];
    expect_result(*own("groups", GetParam()), "look_back_scan", {{6}, {256}, 0},
                  {input(in), output(in.size()), in_out(Words(12)), in_out({0})}, wanted);
}

INSTANTIATE_TEST_SUITE_P(Levels, Copies, testing::Values("O0", "O1", "O2", "O3"),
                         [](const auto& level) { return std::string(level.param); });

}  // namespace
}  // namespace gradguard::programs
