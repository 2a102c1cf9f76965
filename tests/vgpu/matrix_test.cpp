// SPDX-License-Identifier: Apache-2.0
// mma: what the manual leaves open differs by seed and stays legal; what it wants is refused when it is not there.
// Where elements lie is held by the conformance programs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "harness/vgpu/error.h"
#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

using Floats = std::vector<float>;

/// m16n8k4, tf32: of each thread two elements of A, one of B, four of C; the four of D come back, thread by thread.
constexpr std::size_t kElements = 7;
std::string kernel(const std::string& mma, const std::string& declarations = "") {
    return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
           ".reg .b32 %t, %a<2>, %b, %x<4>;\n.reg .f32 %c<4>, %d<4>;\n.reg .b64 %i, %o, %w;\n.reg .pred %p<2>;\n" +
           declarations +
           "mov.u32 %t, %tid.x;\nld.param.u64 %i, [in];\nld.param.u64 %o, [out];\n"
           "mul.wide.u32 %w, %t, 28;\nadd.s64 %i, %i, %w;\nmul.wide.u32 %w, %t, 16;\nadd.s64 %o, %o, %w;\n"
           "ld.global.b32 %a0, [%i];\nld.global.b32 %a1, [%i+4];\nld.global.b32 %b, [%i+8];\n"
           "ld.global.f32 %c0, [%i+12];\nld.global.f32 %c1, [%i+16];\nld.global.f32 %c2, [%i+20];\n"
           "ld.global.f32 %c3, [%i+24];\n" +
           mma + "\nst.global.v4.f32 [%o], {%d0, %d1, %d2, %d3};\nret;\n}\n";
}
constexpr const char* kMma =
    "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b}, {%c0, %c1, %c2, %c3};";

Floats multiply(const Floats& in, const MachineOptions& options = {}, const std::string& ptx = kernel(kMma),
                std::uint32_t threads = 32) {
    Machine machine(options);
    const Address input = upload(machine, in);
    const Address out = machine.allocate(threads * 16);
    run(machine, ptx, {{1}, {threads}}, Arguments(input, out));
    return download<float>(machine, out, threads * 4);
}

Floats inputs(float a, float b, float c) {
    Floats in;
    for (int thread = 0; thread < 32; ++thread) in.insert(in.end(), {a, a, b, c, c, c, c});
    return in;
}
/// Row 0 of A and column 0 of B: their elements k are those of thread k.
Floats first_element(const std::vector<float>& a, const std::vector<float>& b, float c) {
    Floats in = inputs(0, 0, 0);
    for (std::size_t k = 0; k < 4; ++k) {
        in[k * kElements] = a[k];
        in[k * kElements + 2] = b[k];
    }
    in[3] = c;
    return in;
}

MachineOptions seeded(std::uint64_t seed) {
    MachineOptions options;
    options.seed = seed;
    return options;
}

TEST(Matrix, WithoutASeedASumIsRoundedOnce) {
    const float small = 0x1p-30F;
    const Floats got = multiply(first_element({1, small, small, -1}, {1, 1, 1, 1}, 0));
    EXPECT_EQ(got[0], 2 * small);
}

TEST(Matrix, TheSeedPicksOrderAndRoundingOfTheSum) {
    // 1 + 2^-24 + 2^-24 + 3 x 2^-25: each order and rounding of partial sums in FP32 loses another part.
    const Floats in = first_element({1, 0x1p-12F, 0x1p-12F, 0x1.8p-12F}, {1, 0x1p-12F, 0x1p-12F, 0x1p-12F}, 0);
    std::set<float> seen;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const float got = multiply(in, seeded(seed))[0];
        seen.insert(got);
        // Three partial sums near 1, each at most one ulp of FP32 too low: all that the manual allows.
        EXPECT_GE(got, 1.0F);
        EXPECT_LE(got, 1.0F + 2 * std::numeric_limits<float>::epsilon());
    }
    EXPECT_GT(seen.size(), 1U);
}

TEST(Matrix, TheSameSeedGivesTheSameBits) {
    const Floats in = first_element({1, 0x1p-12F, 0x1p-12F, 0x1.8p-12F}, {1, 0x1p-12F, 0x1p-12F, 0x1p-12F}, 0);
    for (const std::uint64_t seed : {1, 2, 3}) EXPECT_EQ(multiply(in, seeded(seed)), multiply(in, seeded(seed)));
}

TEST(Matrix, TheSeedMayTakeSubnormalInputsForZero) {
    const Floats in = inputs(0x1p-127F, 0x1p100F, 0);
    std::set<float> seen;
    for (std::uint64_t seed = 0; seed < 20; ++seed) seen.insert(multiply(in, seeded(seed))[0]);
    EXPECT_EQ(seen, (std::set<float>{0, 4 * 0x1p-27F}));
}

TEST(Matrix, TheLow13BitsOfTf32DoNotCount) {
    const float one_and_more = std::bit_cast<float>(0x3F800000U | 0x1FFFU);
    EXPECT_EQ(multiply(inputs(one_and_more, 1, 0))[0], 4.0F);
}

TEST(Matrix, InfinityMinusInfinityIsTheCanonicalNan) {
    const float infinity = std::numeric_limits<float>::infinity();
    for (const std::uint64_t seed : {0, 1, 2, 3}) {
        const Floats got = multiply(inputs(infinity, 1, -infinity), seeded(seed));
        EXPECT_EQ(bits(got[0]), 0x7FFFFFFFU);
        EXPECT_EQ(multiply(inputs(infinity, 1, 5), seeded(seed))[0], infinity);
    }
}

TEST(Matrix, FiniteSumsThatCancelBeforeTheEndNeverOverflowWithoutASeed) {
    const float huge = 0x1p127F;
    EXPECT_EQ(multiply(first_element({huge, huge, -huge, -huge}, {1, 1, 1, 1}, 3))[0], 3.0F);
}

TEST(Matrix, TheResultMayLieInTheRegistersOfC) {
    const std::string in_place =
        "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%c0, %c1, %c2, %c3}, {%a0, %a1}, {%b}, "
        "{%c0, %c1, %c2, %c3};\nmov.f32 %d0, %c0;\nmov.f32 %d1, %c1;\nmov.f32 %d2, %c2;\nmov.f32 %d3, %c3;";
    Floats in = inputs(1, 2, 3);
    EXPECT_EQ(multiply(in, {}, kernel(in_place)), Floats(128, 11.0F));
}

TEST(Matrix, AWarpThatIsNotWholeEndsTheLaunch) {
    const Floats in = inputs(1, 1, 1);
    Machine machine;
    const Address input = upload(machine, in), out = machine.allocate(512);
    for (const char* guard : {"", "setp.lt.u32 %p0, %t, 7;\n@%p0 "}) {
        const bool guarded = *guard != 0;
        try {
            run(machine, kernel(std::string(guard) + kMma), {{1}, {guarded ? 32U : 16U}}, Arguments(input, out));
            ADD_FAILURE() << "ran";
        } catch (const LaunchError& error) {
            EXPECT_NE(std::string(error.what()).find("needs all 32 lanes of the warp"), std::string::npos)
                << error.what();
        }
    }
}

std::string refusal(const std::string& mma, const std::string& declarations = "") {
    try {
        multiply(inputs(1, 1, 1), {}, kernel(mma, declarations));
    } catch (const PtxError& error) {
        return error.what();
    }
    return "";
}

TEST(Matrix, AWrongNumberOfRegistersIsRefused) {
    const std::string name = "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 ";
    EXPECT_NE(refusal(name + "{%d0, %d1, %d2}, {%a0, %a1}, {%b}, {%c0, %c1, %c2, %c3};")
                  .find("4 registers in braces expected"),
              std::string::npos);
    EXPECT_NE(refusal(name + "{%d0, %d1, %d2, %d3}, {%a0}, {%b}, {%c0, %c1, %c2, %c3};")
                  .find("2 registers in braces expected"),
              std::string::npos);
    EXPECT_NE(refusal(name + "{%d0, %d1, %d2, %d3}, {%a0, %a1}, %b, {%c0, %c1, %c2, %c3};")
                  .find("1 register in braces expected"),
              std::string::npos);
}

TEST(Matrix, FormsThatPtxDoesNotHaveAreRefused) {
    for (const char* form : {"m16n8k4.row.col.f32.bf16.bf16.f32", "m16n8k4.col.row.f32.tf32.tf32.f32",
                             "m16n8k4.row.col.f16.tf32.tf32.f32"}) {
        EXPECT_NE(refusal("mma.sync.aligned." + std::string(form) +
                          " {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b}, {%c0, %c1, %c2, %c3};")
                      .find("is not supported"),
                  std::string::npos)
            << form;
    }
}

}  // namespace
}  // namespace gradguard::vgpu::test
