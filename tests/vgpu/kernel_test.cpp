// SPDX-License-Identifier: Apache-2.0
// The project's own kernels on the machine: known bits, every vector level, many schedules.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/ptx/embedded.h"
#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

std::shared_ptr<const Module> load(const char* module, const char* build) {
    return Module::load(kernels::embedded_ptx(module, build), std::string(module) + "." + build + ".ptx");
}

/// The arguments of an update, laid out as its entry takes them.
struct UpdateBlock {
    std::uint64_t parameters = 0, gradients = 0, first = 0, second = 0, max = 0;
    std::uint64_t new_parameters = 0, new_first = 0, new_second = 0, new_max = 0;
    std::uint32_t elements = 0;
    float scale = 1, clip = 1, direction = 1, beta1 = 0.9F, rest1 = 1 - 0.9F, beta2 = 0.999F, rest2 = 1 - 0.999F;
    float inverse1 = static_cast<float>(1 / (1 - static_cast<double>(0.9F))),
          inverse2 = static_cast<float>(1 / (1 - static_cast<double>(0.999F)));
    float epsilon = 1e-5F, rate = 1e-3F, decay = 1 - 1e-3F * 1e-4F;  // the product is rounded first
    std::uint32_t reserved = 0;
};
static_assert(sizeof(UpdateBlock) == 128);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

TEST(Kernels, TheGoldenFirstStepHoldsBitForBitWithoutContraction) {
    for (const VectorLevel level : supported_vector_levels()) {
        MachineOptions options;
        options.vector_level = level;
        Machine machine(options);
        const Address p = upload(machine, std::vector<float>{1}), g = upload(machine, std::vector<float>{0.5F});
        const Address np = machine.allocate(4), nm = machine.allocate(4), nv = machine.allocate(4);
        const UpdateBlock block{
            .parameters = p, .gradients = g, .new_parameters = np, .new_first = nm, .new_second = nv, .elements = 1};
        machine.launch(*load("update", "nofmad"), "adamw_f32_first", {{1}, {256}}, bytes_of(block));
        EXPECT_EQ(download<std::uint32_t>(machine, np, 1)[0], 0x3F7FBE75U);
        EXPECT_EQ(download<std::uint32_t>(machine, nm, 1)[0], 0x3D4CCCD0U);
        EXPECT_EQ(download<std::uint32_t>(machine, nv, 1)[0], 0x39831200U);
    }
}

struct StatisticsBlock {
    std::uint64_t gradients, triples;
    std::uint32_t elements;
    float scale;
};

/// The block's triples of the first stage, as bits.
std::vector<std::uint32_t> first_stage(const std::vector<float>& gradients, const MachineOptions& options,
                                       std::uint32_t blocks) {
    Machine machine(options);
    const Address in = upload(machine, gradients), out = machine.allocate(12 * blocks);
    const StatisticsBlock block{in, out, static_cast<std::uint32_t>(gradients.size()), 1};
    machine.launch(*load("statistics", "fmad"), "gradient_statistics_f32", {{blocks}, {256}}, bytes_of(block));
    EXPECT_TRUE(machine.findings().empty());
    return download<std::uint32_t>(machine, out, 3 * std::size_t{blocks});
}

TEST(Kernels, TheScanFindsNormsThatASquareWouldLose) {
    const auto norm = [](const std::vector<float>& values) {
        const auto words = first_stage(values, {}, 1);
        return static_cast<double>(std::bit_cast<float>(words[0])) *
               std::sqrt(static_cast<double>(std::bit_cast<float>(words[1])));
    };
    EXPECT_EQ(norm({3, 4}), 4 * std::sqrt(static_cast<double>(1.5625F)));
    EXPECT_EQ(norm({1e30F, -1e30F}), static_cast<double>(1e30F) * std::sqrt(2.0));
    EXPECT_EQ(norm({0x1p-149F}), 0x1p-149);
    std::vector<float> one_hot(1000);
    one_hot[777] = -3;
    EXPECT_EQ(norm(one_hot), 3.0);
    EXPECT_EQ(first_stage({1, INFINITY}, {}, 1), (std::vector<std::uint32_t>{0x3F800000, 0x3F800000, 0x3F800000}));
}

TEST(Kernels, TheScanHasTheSameBitsOnEveryLevelAndUnderEverySchedule) {
    std::vector<float> gradients(5000);
    for (std::size_t i = 0; i < gradients.size(); ++i)
        gradients[i] = std::ldexp(static_cast<float>(i * 2654435761U % 1000) - 500, static_cast<int>(i % 60) - 30);
    const auto wanted = first_stage(gradients, {}, 5);
    for (const VectorLevel level : supported_vector_levels()) {
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
            MachineOptions options;
            options.vector_level = level;
            options.seed = seed;
            EXPECT_EQ(first_stage(gradients, options, 5), wanted) << name_of(level) << " seed " << seed;
        }
    }
}

TEST(Kernels, AnElementCountThatIsTooLargeIsCaughtAndNamed) {
    Machine machine;
    const Address in = machine.allocate(4 * 1000), out = machine.allocate(12);
    const StatisticsBlock block{in, out, 1001, 1};
    try {
        machine.launch(*load("statistics", "nofmad"), "gradient_statistics_f32", {{1}, {256}}, bytes_of(block));
        FAIL();
    } catch (const LaunchError& error) {
        ASSERT_TRUE(error.finding());
        EXPECT_EQ(error.finding()->kind, FindingKind::OutOfBounds);
        EXPECT_EQ(error.finding()->place.source_file, "kernels/device/statistics.cu");
        EXPECT_EQ(error.finding()->thread, (Dim3{1000 % 256, 0, 0}));
        EXPECT_EQ(error.finding()->address, in + 4000);
    }
}

}  // namespace
}  // namespace gradguard::vgpu::test
