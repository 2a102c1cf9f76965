// SPDX-License-Identifier: Apache-2.0
// Code that nvcc itself gets wrong: the machine does what the PTX says, not what the source means. Found by
// tools/fuzz_compilers.py; the sources in tests/programs/miscompiled say what is wrong.
#include <gtest/gtest.h>

#include "tests/programs/program.h"

namespace gradguard::programs {
namespace {

Outcome run_program(const std::string& name, const char* level, const std::vector<Argument>& arguments) {
    const std::string path = std::string(GRADGUARD_SOURCE_DIR) + "/tests/programs/miscompiled/" + name + "." + level;
    return launch(*load(path + ".ptx"), name, {{1}, {32}, 0}, arguments, 0);
}

/// What trip_count.cu means.
std::uint32_t trip_sum(std::uint32_t a, std::uint32_t rounds) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < rounds; a += i++) {
        for (std::uint32_t j = 0; j < (a & 3U); ++j) sum += j * j + 1;
    }
    return sum;
}

/// Values 0 to 31 and `rounds` for each of them, and what the kernel should make of it.
std::pair<Argument, Words> trip_counts(std::uint32_t rounds) {
    Words in(64, rounds), wanted(32);
    for (std::uint32_t i = 0; i < 32; ++i) {
        in[i] = i;
        wanted[i] = trip_sum(i, rounds);
    }
    return {input(in), wanted};
}

TEST(Miscompiled, TripCountIsRightUnoptimised) {
    const auto [in, wanted] = trip_counts(7);
    const Outcome got = run_program("trip_count", "O0", {in, output(32)});
    EXPECT_EQ(got.findings, "");
    EXPECT_EQ(got.outputs.at(0), wanted);
}

TEST(Miscompiled, TripCountIsRightOptimisedForFourRounds) {
    const auto [in, wanted] = trip_counts(4);
    const Outcome got = run_program("trip_count", "O3", {in, output(32)});
    EXPECT_EQ(got.findings, "");
    EXPECT_EQ(got.outputs.at(0), wanted);
}

TEST(Miscompiled, TripCountOfTheFifthRoundNeverEndsOptimised) {
    const Outcome got = run_program("trip_count", "O3", {trip_counts(5).first, output(32)});
    EXPECT_NE(got.findings.find("no progress: kernel trip_count"), std::string::npos) << got.findings;
}

TEST(Miscompiled, CeilingOfALargeConstantIsMinusTwoToThe63) {
    for (const char* level : {"O0", "O3"}) {
        const Outcome got = run_program("ceiling", level, {output(2)});
        EXPECT_EQ(got.outputs.at(0), (Words{0, 0xC3E00000U})) << level;
    }
}

TEST(Miscompiled, TheClampOfAQuotientByMinusZeroIsLostOptimised) {
    const Argument in = input(Words(32, 7));
    EXPECT_EQ(run_program("clamp", "O0", {in, output(32)}).outputs.at(0), Words(32, 0xF149F2CAU));  // -1e30
    EXPECT_EQ(run_program("clamp", "O3", {in, output(32)}).outputs.at(0), Words(32, 0xFF800000U));  // -inf
}

}  // namespace
}  // namespace gradguard::programs
