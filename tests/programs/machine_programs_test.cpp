// SPDX-License-Identifier: Apache-2.0
// The programs of tests/vgpu/programs, which are held against the CPU there: here under all observers, which must have
// nothing to complain about, and with the same results at every level and under every schedule.
#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

#include "tests/programs/program.h"

namespace gradguard::programs {
namespace {

constexpr std::uint32_t kBlocks = 7, kThreads = 96, kCount = kBlocks * kThreads;
const vgpu::LaunchConfig kConfig{{kBlocks}, {kThreads}, 0};

Words values(std::size_t count) {
    Words words(count);
    std::uint32_t x = 12345;
    for (std::uint32_t& word : words) word = x = x * 1664525U + 1013904223U;
    return words;
}

std::shared_ptr<const vgpu::Module> machine_program(const std::string& level) {
    return load(std::string(GRADGUARD_SOURCE_DIR) + "/tests/vgpu/programs/programs_" + level + ".ptx");
}

void expect_clean(const std::string& entry, const vgpu::LaunchConfig& config, const std::vector<Argument>& arguments) {
    std::vector<Words> wanted;
    for (const char* level : {"O0", "O1", "O2", "O3"}) {
        const auto module = machine_program(level);
        for (std::uint64_t seed = 0; seed < seeds(6); ++seed) {
            const Outcome got = launch(*module, entry, config, arguments, seed);
            ASSERT_EQ(got.findings, "") << entry << " at " << level << ", seed " << seed;
            if (wanted.empty()) wanted = got.outputs;
            ASSERT_EQ(got.outputs, wanted) << entry << " at " << level << ", seed " << seed;
        }
    }
}

TEST(MachinePrograms, ReductionsAreClean) {
    const Words in = values(kCount);
    expect_clean("shuffle_reduction", kConfig, {input(in), output(kBlocks)});
    expect_clean("last_block_reduction", kConfig, {input(in), output(kBlocks), in_out({0}), output(1)});
}

TEST(MachinePrograms, VectorsAndVotesAreClean) {
    expect_clean("vector_loads", kConfig, {input(values(4 * kCount)), output(4 * kCount)});
    expect_clean("barrier_votes", kConfig, {input(values(kCount)), output(kCount)});
}

TEST(MachinePrograms, TheGridBarrierIsClean) {
    constexpr std::uint32_t kRounds = 5;
    Words start((kRounds + 1) * kBlocks, 0);
    std::iota(start.begin(), start.begin() + kBlocks, 100U);
    expect_clean("grid_barrier", kConfig, {in_out(start), in_out({0}), scalar(kRounds)});
}

/// It multiplies by compare-and-swap, and reads the word at first without an atomic: right, and a race all the same.
TEST(MachinePrograms, WideAtomicsReadAWordThatOthersChange) {
    Words start(12, 0);
    start[4] = start[5] = 0xFFFFFFFFU;
    for (const char* level : {"O0", "O1", "O2", "O3"}) {
        for (std::uint64_t seed = 0; seed < seeds(6); ++seed) {
            const Outcome got = launch(*machine_program(level), "wide_atomics", kConfig,
                                       {input(values(2 * kCount)), in_out(start)}, seed);
            std::istringstream findings(got.findings);
            for (std::string line; std::getline(findings, line);) {
                EXPECT_EQ(line.find("race"), 0U) << line;
                EXPECT_NE(line.find("40 bytes into an allocation of 48 bytes"), std::string::npos) << line;
            }
            EXPECT_FALSE(got.findings.empty());
        }
    }
}

TEST(MachinePrograms, LocalArraysAndSwitchesAreClean) {
    const Words in = values(kCount);
    expect_clean("local_arrays", kConfig, {input(in), output(kCount)});
    expect_clean("switches", {{kBlocks}, {kThreads}, 4 * kThreads}, {input(in), output(kCount)});
}

}  // namespace
}  // namespace gradguard::programs
