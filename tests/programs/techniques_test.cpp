// SPDX-License-Identifier: Apache-2.0
// The techniques of good kernels (own/techniques.cu), by nvcc at every level and by NVRTC: right under every schedule,
// and nothing for an observer to complain about.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/cuda/nvrtc_search.h"
#include "tests/programs/program.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::programs {
namespace {

constexpr std::uint32_t kBlocks = 6, kThreads = 256, kElements = kBlocks * kThreads;
const vgpu::LaunchConfig kConfig{{kBlocks}, {kThreads}, 0};

Words values() {
    Words words(kElements);
    for (std::uint32_t i = 0; i < kElements; ++i) words[i] = (i + 1) * 2654435761U;
    return words;
}

std::shared_ptr<const vgpu::Module> by_nvcc(const std::string& level) {
    return load(std::string(GRADGUARD_SOURCE_DIR) + "/tests/programs/own/techniques." + level + ".ptx");
}

/// Runs an entry under several schedules; its first output must be `wanted`.
void expect_result(const vgpu::Module& module, const std::string& entry, const vgpu::LaunchConfig& config,
                   const std::vector<Argument>& arguments, const Words& wanted) {
    for (std::uint64_t seed = 0; seed < seeds(20); ++seed) {
        const Outcome got = launch(module, entry, config, arguments, seed);
        ASSERT_EQ(got.findings, "") << entry << " seed " << seed;
        ASSERT_EQ(got.outputs.at(0), wanted) << entry << " seed " << seed;
    }
}

void expect_reductions(const vgpu::Module& module) {
    const Words in = values();
    Words sums(kBlocks);
    for (std::uint32_t i = 0; i < kElements; ++i) sums[i / kThreads] += in[i];
    expect_result(module, "shuffle_reduction", kConfig, {input(in), output(kBlocks)}, sums);
    const std::uint32_t total = std::accumulate(sums.begin(), sums.end(), 0U);
    expect_result(module, "last_block_reduction", kConfig, {input(in), output(1), output(kBlocks), in_out({0})},
                  {total});
}

void expect_vector_accesses(const vgpu::Module& module) {
    Words wanted = values();
    for (std::uint32_t& word : wanted) ++word;
    expect_result(module, "vector_accesses", {{kBlocks}, {kThreads / 4}, 0}, {input(values()), output(kElements)},
                  wanted);
}

void expect_grid_barrier(const vgpu::Module& module) {
    const Words in = values();
    Words wanted(kElements);
    for (std::uint32_t i = 0; i < kElements; ++i) wanted[i] = in[i] * in[(i + kThreads) % kElements];
    expect_result(module, "grid_barrier", kConfig, {input(in), output(kElements), output(kElements), in_out({0})},
                  wanted);
}

void expect_wide_atomics(const vgpu::Module& module) {
    const Words in = values();
    std::uint64_t results[4] = {};
    for (std::uint32_t i = 0; i < kElements; ++i) {
        const std::uint64_t value = (std::uint64_t{in[i]} << 20U) + i;
        results[0] += value;
        results[1] = std::max(results[1], value);
        results[2] ^= value;
        results[3] += in[i] % 2;
    }
    Words wanted;
    for (const std::uint64_t result : results) {
        wanted.push_back(static_cast<std::uint32_t>(result));
        wanted.push_back(static_cast<std::uint32_t>(result >> 32U));
    }
    expect_result(module, "wide_atomics", kConfig, {input(in), in_out(Words(8))}, wanted);
}

class Techniques : public ::testing::TestWithParam<const char*> {};

TEST_P(Techniques, ShuffleAndLastBlockReductions) { expect_reductions(*by_nvcc(GetParam())); }
TEST_P(Techniques, VectorAccesses) { expect_vector_accesses(*by_nvcc(GetParam())); }
TEST_P(Techniques, GridBarrier) { expect_grid_barrier(*by_nvcc(GetParam())); }
TEST_P(Techniques, WideAtomics) { expect_wide_atomics(*by_nvcc(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Levels, Techniques, ::testing::Values("O0", "O1", "O2", "O3"),
                         [](const auto& level) { return std::string(level.param); });

TEST(Nvrtc, TechniquesRunRightAtBothLevels) {
    std::shared_ptr<const cuda::Nvrtc> nvrtc;
    try {
        nvrtc = cuda::find_nvrtc(std::string());
    } catch (const cuda::NvrtcUnavailable& error) {
        GTEST_SKIP() << "blocked: " << error.what();
    }
    const std::string name = "tests/programs/own/techniques.cu";
    const cuda::ProgramSource source{name, gradguard::testing::read_bytes(GRADGUARD_SOURCE_DIR "/" + name)};
    for (const char* level : {"-dopt=on", "-G"}) {
        const std::string ptx = nvrtc->compile(source, {"-arch=compute_80", "-std=c++20", level});
        const auto module = vgpu::Module::load(ptx, "nvrtc.ptx");
        expect_reductions(*module);
        expect_vector_accesses(*module);
        expect_grid_barrier(*module);
        expect_wide_atomics(*module);
    }
}

}  // namespace
}  // namespace gradguard::programs
