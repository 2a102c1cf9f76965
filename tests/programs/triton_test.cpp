// SPDX-License-Identifier: Apache-2.0
// Kernels compiled by Triton, against what the CPU computes. Sources, versions and the script that compiles them are in
// tests/programs/triton.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
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
    for (std::uint64_t seed = 0; seed < seeds(10); ++seed) {
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

/// Inputs and options of an AdamW step.
struct Step {
    std::vector<float> p, m, v, g;
    float rate = 0.01F, beta1 = 0.9F, beta2 = 0.99F, epsilon = 1e-6F, decay = 0.1F, bias1 = 0.5F, bias2 = 0.25F;
};

Step make_step() {
    Step step;
    step.p = step.m = step.v = step.g = whole_numbers(500, 1000);
    for (std::size_t i = 0; i < step.p.size(); ++i) {
        step.p[i] *= 0x1p-10F;
        step.m[i] *= -0x1p-12F;
        step.v[i] = std::fabs(step.v[i]) * 0x1p-9F + 0x1p-6F;
        step.g[i] = step.g[(i * 7 + 3) % step.g.size()] * 0x1.8p-8F;
    }
    return step;
}

/// New moments have the bits of the source's order; a new parameter lies within what the manual allows its four
/// approximate instructions: 2 ulp for each div.full, 2^-23 for the root.
void expect_step(const Step& step, const Outcome& got) {
    for (std::size_t i = 0; i < step.p.size(); ++i) {
        const float m = std::fma(1 - step.beta1, step.g[i], step.beta1 * step.m[i]);
        const float v = std::fma((1 - step.beta2) * step.g[i], step.g[i], step.beta2 * step.v[i]);
        ASSERT_EQ(std::bit_cast<float>(got.outputs.at(1)[i]), m) << i;
        ASSERT_EQ(std::bit_cast<float>(got.outputs.at(2)[i]), v) << i;
        const double first = static_cast<double>(m) / static_cast<double>(step.bias1);
        const double root = std::sqrt(static_cast<double>(v) / static_cast<double>(step.bias2));
        const double update = static_cast<double>(step.rate) * first / (root + static_cast<double>(step.epsilon));
        const auto kept = static_cast<double>(std::fma(-step.rate, step.decay, 1.0F));
        const double exact = kept * static_cast<double>(step.p[i]) - update;
        // Of the update, in units of 2^-24: 4 for each of three divisions, the one under the root counting half; 2 for
        // the root; 1 for each product and sum; 1 for second-order terms. Then one rounding of the result.
        const double bound = 15 * 0x1p-24 * std::fabs(update) + 0x1.01p-24 * std::fabs(exact);
        ASSERT_LE(std::fabs(static_cast<double>(std::bit_cast<float>(got.outputs.at(0)[i])) - exact), bound) << i;
    }
}

TEST(Triton, AdamwLiesInsideTheBoundOfItsApproximateInstructions) {
    const Step step = make_step();
    const auto module = load(path_of("adamw"), Approximate::Allowed);
    std::vector<Argument> arguments = {in_out(bits_of(step.p)), in_out(bits_of(step.m)), in_out(bits_of(step.v)),
                                       input(bits_of(step.g)), scalar(static_cast<std::uint32_t>(step.p.size()))};
    for (const float option : {step.rate, step.beta1, step.beta2, step.epsilon, step.decay, step.bias1, step.bias2}) {
        arguments.push_back(scalar(option));
    }
    EXPECT_THROW(launch(*module, "adamw", {{2}, {128}, 0}, arguments, 0), vgpu::PtxError);
    std::set<Words> different;
    for (std::uint64_t seed = 0; seed < seeds(10); ++seed) {
        const Outcome got = launch(*module, "adamw", {{2}, {128}, 0}, arguments, seed, Approximate::Allowed);
        ASSERT_EQ(got.findings, "") << "seed " << seed;
        ASSERT_NO_FATAL_FAILURE(expect_step(step, got)) << "seed " << seed;
        ASSERT_EQ(got.approximate, (std::vector<std::string>{"div.full.f32", "sqrt.approx.ftz.f32"}));
        different.insert(got.outputs.at(0));
    }
    EXPECT_GT(different.size(), 5U) << "the seed picks";
}

}  // namespace
}  // namespace gradguard::programs
