// SPDX-License-Identifier: Apache-2.0
// Kernels compiled by Triton, against what the CPU computes. Sources, versions and the script that compiles them are in
// tests/programs/triton.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "tests/programs/program.h"

namespace gradguard::programs {
namespace {

std::string path_of(const std::string& kernel) {
    return std::string(GRADGUARD_SOURCE_DIR) + "/tests/programs/triton/" + kernel + ".ptx";
}

/// `num_warps` of make.py, and the shared memory that provenance.json names.
vgpu::LaunchConfig grid_of(std::uint32_t programs) { return {{programs}, {128}, 16}; }

/// Whole numbers from -range to range.
std::vector<float> whole_numbers(std::size_t count, int range) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] =
            static_cast<float>(static_cast<int>(i * 2654435761U % static_cast<unsigned>(2 * range + 1)) - range);
    }
    return values;
}

Words bits_of(const std::vector<float>& values) {
    Words words(values.size());
    std::transform(values.begin(), values.end(), words.begin(),
                   [](float v) { return std::bit_cast<std::uint32_t>(v); });
    return words;
}

void expect_result(const std::string& kernel, std::uint32_t programs, const std::vector<Argument>& arguments,
                   const std::vector<float>& wanted) {
    const auto module = load(path_of(kernel));
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const Outcome got = launch(*module, kernel, grid_of(programs), arguments, seed);
        ASSERT_EQ(got.findings, "") << "seed " << seed;
        ASSERT_EQ(got.outputs.at(0), bits_of(wanted)) << "seed " << seed;
    }
}

TEST(Triton, RowMaximaOverShuffles) {
    constexpr std::uint32_t kRows = 7, kColumns = 200;
    const std::vector<float> values = whole_numbers(kRows * kColumns, 100000);
    std::vector<float> maxima(kRows, -INFINITY);
    for (std::size_t i = 0; i < values.size(); ++i) maxima[i / kColumns] = std::max(maxima[i / kColumns], values[i]);
    expect_result("row_max", kRows, {input(bits_of(values)), output(kRows), scalar(kColumns)}, maxima);
}

/// Small enough for every partial sum to be exact.
std::vector<float> block_sums(const std::vector<float>& values) {
    std::vector<float> sums((values.size() + 255) / 256);
    for (std::size_t i = 0; i < values.size(); ++i) sums[i / 256] += values[i] * values[i];
    return sums;
}

TEST(Triton, SumOfSquares) {
    const std::vector<float> values = whole_numbers(1000, 100);
    expect_result("sum_of_squares", 4, {input(bits_of(values)), output(4), scalar(1000U)}, block_sums(values));
}

TEST(Triton, SumOfSquaresOfBf16) {
    const std::vector<float> values = whole_numbers(1000, 100);  // exact in BF16
    Words pairs(values.size() / 2);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        pairs[i] = std::bit_cast<std::uint32_t>(values[2 * i]) >> 16U |
                   (std::bit_cast<std::uint32_t>(values[2 * i + 1]) & 0xFFFF0000U);
    }
    expect_result("sum_of_squares_bf16", 4, {input(pairs), output(4), scalar(1000U)}, block_sums(values));
}

TEST(Triton, ApproximateDivisionIsRefusedAndTheLineNamed) {
    std::ifstream file(path_of("adamw"));
    std::uint32_t wanted = 1;
    for (std::string line; std::getline(file, line) && line.find("div.full.f32") == std::string::npos; ++wanted) {
    }
    try {
        load(path_of("adamw"));
        FAIL() << "loaded";
    } catch (const vgpu::PtxError& error) {
        EXPECT_NE(std::string(error.what()).find("div.full.f32"), std::string::npos) << error.what();
        EXPECT_EQ(error.line(), wanted);
    }
}

}  // namespace
}  // namespace gradguard::programs
