// SPDX-License-Identifier: Apache-2.0
// CUDA programs (programs/programs.cu), as nvcc compiles them at -O0 to -O3, under many schedules.
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <numeric>
#include <sstream>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t kBlocks = 7;
constexpr std::uint32_t kThreads = 96;
constexpr std::uint32_t kCount = kBlocks * kThreads;

Words inputs(std::size_t count) {
    Words words(count);
    std::uint32_t x = 12345;
    for (std::uint32_t& word : words) word = x = x * 1664525U + 1013904223U;
    return words;
}

std::span<const std::byte> bytes_of(std::span<const std::uint64_t> arguments) { return std::as_bytes(arguments); }

class Programs : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        const std::string name = std::string("programs_") + GetParam() + ".ptx";
        std::ifstream file(std::string(GRADGUARD_SOURCE_DIR) + "/tests/vgpu/programs/" + name);
        std::stringstream text;
        text << file.rdbuf();
        ASSERT_TRUE(file) << name;
        module_ = Module::load(text.str(), name);
    }

    /// Runs `body` on machines of all vector levels and several seeds.
    template <class F>
    void everywhere(F&& body) {
        for (const VectorLevel level : supported_vector_levels()) {
            for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5}) {
                MachineOptions options;
                options.vector_level = level;
                options.seed = seed;
                Machine machine(options);
                SCOPED_TRACE(std::string(name_of(level)) + ", seed " + std::to_string(seed));
                body(machine);
                EXPECT_TRUE(machine.findings().empty());
            }
        }
    }
    void launch(Machine& machine, const char* entry, const std::vector<std::uint64_t>& arguments,
                LaunchConfig config = {{kBlocks}, {kThreads}}) {
        machine.launch(*module_, entry, config, bytes_of(arguments).first(module_->find(entry)->param_bytes));
    }

    std::shared_ptr<const Module> module_;
};

TEST_P(Programs, AWarpShuffleReductionSumsItsBlock) {
    const Words in = inputs(kCount);
    everywhere([&](Machine& machine) {
        const Address out = machine.allocate(4 * kBlocks);
        launch(machine, "shuffle_reduction", {upload(machine, in), out});
        const auto got = download<std::uint32_t>(machine, out, kBlocks);
        for (std::uint32_t b = 0; b < kBlocks; ++b) {
            const auto first = in.begin() + b * kThreads;
            EXPECT_EQ(got[b], std::accumulate(first, first + kThreads, 0U));
        }
    });
}

TEST_P(Programs, VectorsOfFourAreReadAndWritten) {
    const Words in = inputs(4 * kCount);
    everywhere([&](Machine& machine) {
        const Address out = machine.allocate(16 * kCount);
        launch(machine, "vector_loads", {upload(machine, in), out});
        const auto got = download<std::uint32_t>(machine, out, 4 * kCount);
        for (std::uint32_t i = 0; i < 4 * kCount; ++i) ASSERT_EQ(got[i], 3 * in[i] + i);
    });
}

TEST_P(Programs, TheLastBlockAddsUpWhatTheOthersLeft) {
    const Words in = inputs(kCount);
    everywhere([&](Machine& machine) {
        const Address partial = machine.allocate(4 * kBlocks), out = machine.allocate(4);
        const Address count = upload(machine, Words{0});
        launch(machine, "last_block_reduction", {upload(machine, in), partial, count, out});
        EXPECT_EQ(download<std::uint32_t>(machine, out, 1)[0], std::accumulate(in.begin(), in.end(), 0U));
    });
}

TEST_P(Programs, BlocksWaitForEachOtherAtAGridBarrier) {
    constexpr std::uint32_t kRounds = 5;
    everywhere([&](Machine& machine) {
        Words values((kRounds + 1) * kBlocks, 0);
        std::iota(values.begin(), values.begin() + kBlocks, 100U);
        const Address address = upload(machine, values), arrived = upload(machine, Words{0});
        launch(machine, "grid_barrier", {address, arrived, kRounds});
        const auto got = download<std::uint32_t>(machine, address, values.size());
        for (std::uint32_t b = 0; b < kBlocks; ++b)
            EXPECT_EQ(got[kRounds * kBlocks + b], 100 + (b + kRounds) % kBlocks + kRounds);
    });
}

TEST_P(Programs, AtomicsOf64BitsMeetInOnePlace) {
    std::vector<std::uint64_t> in;
    for (const std::uint32_t word : inputs(kCount)) in.push_back(word * 0x9E3779B97F4A7C15ULL);
    std::uint64_t sum = 0, greatest = 0, least = ~0ULL, any = 0, parity = 0, squares = 0;
    for (const std::uint64_t value : in) {
        sum += value;
        greatest = std::max(greatest, value);
        least = std::min(least, value);
        any |= value;
        parity ^= value;
        squares += value * value;
    }
    everywhere([&](Machine& machine) {
        const Address words = upload(machine, std::vector<std::uint64_t>{0, 0, ~0ULL, 0, 0, 0});
        launch(machine, "wide_atomics", {upload(machine, in), words});
        EXPECT_EQ(download<std::uint64_t>(machine, words, 6),
                  (std::vector<std::uint64_t>{sum, greatest, least, any, parity, squares}));
    });
}

TEST_P(Programs, BarriersCountAndCombinePredicates) {
    Words in = inputs(kCount);
    for (std::uint32_t i = 0; i < kCount; ++i) {
        in[i] &= i / kThreads % 3 == 0 ? ~4U : ~0U;  // nobody in some blocks
        in[i] |= i / kThreads % 2 == 0 ? 2U : 0U;    // everybody in others
    }
    everywhere([&](Machine& machine) {
        const Address out = machine.allocate(4 * kCount);
        launch(machine, "barrier_votes", {upload(machine, in), out});
        const auto got = download<std::uint32_t>(machine, out, kCount);
        for (std::uint32_t b = 0; b < kBlocks; ++b) {
            std::uint32_t count = 0, all = 1, any = 0;
            for (std::uint32_t i = b * kThreads; i < (b + 1) * kThreads; ++i) {
                count += in[i] & 1U;
                all &= in[i] >> 1 & 1U;
                any |= in[i] >> 2 & 1U;
            }
            for (std::uint32_t i = b * kThreads; i < (b + 1) * kThreads; ++i)
                ASSERT_EQ(got[i], count * 4 + all * 2 + any);
        }
    });
}

TEST_P(Programs, EveryThreadHasLocalMemoryOfItsOwn) {
    const Words in = inputs(kCount);
    everywhere([&](Machine& machine) {
        const Address out = machine.allocate(4 * kCount);
        launch(machine, "local_arrays", {upload(machine, in), out});
        const auto got = download<std::uint32_t>(machine, out, kCount);
        for (std::uint32_t i = 0; i < kCount; ++i) {
            std::uint32_t order[16], x = in[i], digits = 0;
            std::iota(order, order + 16, 0U);
            for (std::uint32_t k = 15; k > 0; --k) {
                std::swap(order[k], order[x % (k + 1)]);
                x = x * 1664525U + 1013904223U;
            }
            for (std::uint32_t k = 0; k < 8; ++k) digits = digits * 16 + order[k];
            ASSERT_EQ(got[i], digits);
        }
    });
}

std::uint32_t reversed(std::uint32_t x) {
    std::uint32_t r = 0;
    for (int i = 0; i < 32; ++i) r |= (x >> i & 1U) << (31 - i);
    return r;
}

TEST_P(Programs, ASwitchGoesWhereItsValueSays) {
    const Words in = inputs(kCount);
    const auto value = [](std::uint32_t x) -> std::uint32_t {
        switch (x % 8) {
            case 0:
                return x * 3 + 1;
            case 1:
                return x ^ (x >> 3);
            case 2:
                return static_cast<std::uint32_t>(std::popcount(x));
            case 3:
                return static_cast<std::uint32_t>(std::countl_zero(x));
            case 4:
                return x - 77;
            case 5:
                return reversed(x);
            case 6:
                return x | 0x10101010U;
            default:
                return ~x;
        }
    };
    everywhere([&](Machine& machine) {
        const Address out = machine.allocate(4 * kCount);
        launch(machine, "switches", {upload(machine, in), out}, {{kBlocks}, {kThreads}, 4 * kThreads});
        const auto got = download<std::uint32_t>(machine, out, kCount);
        for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(got[i], value(in[i ^ 1U]));
    });
}

INSTANTIATE_TEST_SUITE_P(Level, Programs, testing::Values("O0", "O1", "O2", "O3"),
                         [](const auto& level) { return std::string(level.param); });

}  // namespace
}  // namespace gradguard::vgpu::test
