// SPDX-License-Identifier: Apache-2.0
// Special registers of which PTX says little, spellings, initial values that are addresses, parameters as memory, and
// instructions that only have an effect.
#include <gtest/gtest.h>

#include <set>

#include "harness/vgpu/error.h"
#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

using Doubles = std::vector<std::uint64_t>;

/// A grid of which each thread writes %result, 64 bits.
Doubles run_grid(const std::string& body, const LaunchConfig& config, std::uint64_t seed = 0,
                 const std::string& globals = "", bool allow_approximate = false) {
    MachineOptions options;
    options.seed = seed;
    options.allow_approximate = allow_approximate;
    Machine machine(options);
    const auto threads = static_cast<std::size_t>(config.grid.count() * config.block.count());
    const Address out = machine.allocate(8 * threads);
    const std::string ptx =
        ptx_module(".param .u64 out",
                   ".reg .pred %p<6>;\n.reg .b32 %r<12>;\n.reg .b64 %d<12>, %result;\n.reg .f32 %f<4>;\n" + body +
                       "mov.u32 %r10, %ctaid.x;\nmov.u32 %r11, %ntid.x;\nmad.lo.u32 %r10, %r10, %r11, 0;\n"
                       "mov.u32 %r11, %tid.x;\nadd.u32 %r10, %r10, %r11;\nld.param.u64 %d10, [out];\n"
                       "mul.wide.u32 %d11, %r10, 8;\nadd.s64 %d10, %d10, %d11;\n"
                       "st.global.u64 [%d10], %result;\nret;\n",
                   globals);
    const auto module = Module::load(ptx, "rare.ptx", allow_approximate);
    machine.launch(*module, "k", config, Arguments(out).bytes());
    return download<std::uint64_t>(machine, out, threads);
}

std::string refusal(const std::string& body, const std::string& globals = "") {
    try {
        run_grid(body, {{1}, {32}}, 0, globals);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(SpecialRegisters, ClocksOnlyGoForward) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const Doubles got = run_grid(
            "mov.u64 %d0, %clock64;\nmov.u64 %d1, %clock64;\nmov.u64 %d2, %globaltimer;\nmov.u64 %d3, %globaltimer;\n"
            "setp.lt.u64 %p0, %d0, %d1;\nsetp.le.and.u64 %p1, %d2, %d3, %p0;\nselp.b64 %result, 1, 0, %p1;\n",
            {{4}, {64}}, seed);
        EXPECT_EQ(got, Doubles(256, 1)) << seed;
    }
}

TEST(SpecialRegisters, A32BitClockWrapsUnderSomeSeed) {
    bool wrapped = false;
    for (std::uint64_t seed = 1; seed < 2000 && !wrapped; ++seed) {
        const Doubles got = run_grid(
            "mov.u32 %r0, %clock;\nmov.u32 %r2, 0;\n"
            "LOOP: mov.u32 %r1, %clock;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p0, %r2, 1500;\n@%p0 bra LOOP;\n"
            "setp.lt.u32 %p1, %r1, %r0;\nselp.b64 %result, 1, 0, %p1;\n",
            {{1}, {1}}, seed);
        wrapped = got[0] == 1;
    }
    EXPECT_TRUE(wrapped);
}

TEST(SpecialRegisters, AKernelThatWaitsForTheClockComesToAnEnd) {
    const Doubles got = run_grid(
        "mov.u64 %d0, %clock64;\nLOOP: mov.u64 %d1, %clock64;\nsub.s64 %result, %d1, %d0;\n"
        "setp.lt.u64 %p0, %result, 1000000000;\n@%p0 bra LOOP;\n",
        {{1}, {1}});
    EXPECT_GE(got[0], 1'000'000'000U);
}

TEST(SpecialRegisters, WarpIdentifiersAreUniqueAndNotAlwaysTheOrderOfThreads) {
    bool differs = false;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const Doubles got = run_grid(
            "mov.u32 %r0, %warpid;\nmov.u32 %r1, %nwarpid;\nsetp.lt.u32 %p0, %r0, %r1;\n"
            "selp.b32 %r2, %r0, 999, %p0;\ncvt.u64.u32 %result, %r2;\n",
            {{1}, {128}}, seed);
        const std::set<std::uint64_t> distinct(got.begin(), got.end());
        EXPECT_EQ(distinct.size(), 4U);
        EXPECT_EQ(distinct.count(999), 0U) << "%warpid must be below %nwarpid";
        differs |= got[0] != 0;
        if (seed == 0) {
            EXPECT_EQ(got[0], 0U);
        }
    }
    EXPECT_TRUE(differs);
}

TEST(SpecialRegisters, MultiprocessorsAreBelowTheirNumber) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const Doubles got = run_grid(
            "mov.u32 %r0, %smid;\nmov.u32 %r1, %nsmid;\nsetp.lt.u32 %p0, %r0, %r1;\nselp.b64 %result, 1, 0, %p0;\n",
            {{16}, {32}}, seed);
        EXPECT_EQ(got, Doubles(512, 1)) << seed;
    }
}

TEST(SpecialRegisters, SharedMemorySizesAreThoseOfTheLaunch) {
    const Doubles got = run_grid(
        ".shared .align 4 .b8 own[100];\nst.shared.u32 [own], 0;\nmov.u32 %r0, %dynamic_smem_size;\n"
        "mov.u32 %r1, %total_smem_size;\nmul.wide.u32 %result, %r0, 100000;\ncvt.u64.u32 %d0, %r1;\n"
        "add.s64 %result, %result, %d0;\n",
        {{1}, {1}, 300});
    EXPECT_EQ(got[0], 300U * 100000 + 512) << "the total is in units of 128 bytes";
}

TEST(SpecialRegisters, EachBlockIsAClusterOfItsOwn) {
    const Doubles got = run_grid(
        "mov.u32 %r0, %cluster_ctarank;\nmov.u32 %r1, %cluster_nctarank;\nmov.u32 %r2, %clusterid.x;\n"
        "mov.u32 %r3, %nclusterid.x;\nmad.lo.u32 %r0, %r0, 10, %r1;\nmad.lo.u32 %r2, %r2, 10, %r3;\n"
        "mad.lo.u32 %r0, %r0, 100, %r2;\ncvt.u64.u32 %result, %r0;\n",
        {{3}, {1}});
    EXPECT_EQ(got, (Doubles{103, 113, 123}));
}

TEST(SpecialRegisters, WhatTheDriverSetsIsRefused) {
    EXPECT_TRUE(contains(refusal("mov.u32 %r0, %envreg2;\n"), "'%envreg2' is set by the driver"));
    EXPECT_TRUE(contains(refusal("mov.u32 %r0, %clock64;\n"), "64 bits"));
    EXPECT_TRUE(contains(refusal("mov.u64 %d0, %clock;\n"), "32 bits"));
}

TEST(Spelling, ModifiersMayStandInAnyOrder) {
    const LaunchConfig config{{1}, {32}};
    const std::string vote = "mov.u32 %r0, %tid.x;\nsetp.lt.u32 %p0, %r0, 5;\n";
    EXPECT_EQ(run_grid(vote + "vote.ballot.sync.b32 %r1, %p0, -1;\ncvt.u64.u32 %result, %r1;\n", config)[9], 31U);
    EXPECT_EQ(run_grid(vote + "vote.any.sync.pred %p1, %p0, -1;\nselp.b64 %result, 1, 0, %p1;\n", config)[9], 1U);
    EXPECT_EQ(run_grid(vote + "vote.all.sync.pred %p1, %p0, -1;\nselp.b64 %result, 1, 0, %p1;\n", config)[9], 0U);
    EXPECT_EQ(run_grid("mov.f32 %f0, 0f00000001;\nadd.ftz.rn.f32 %f1, %f0, %f0;\nmov.b32 %r0, %f1;\n"
                       "cvt.u64.u32 %result, %r0;\n",
                       config)[0],
              0U);
    EXPECT_TRUE(contains(refusal("mul.u32.lo %r0, %r1, %r2;\n"), "is not supported")) << "the type stays last";
    EXPECT_TRUE(contains(refusal("vote.ballot.sync.b64 %d0, %p0, -1;\n"), "is not supported"));
}

TEST(InitialValues, AddressesOfVariablesAreFilledIn) {
    const std::string globals =
        ".global .align 4 .u32 table[4] = {11, 22, 33, 44};\n"
        ".const .align 4 .u32 fixed = 5;\n"
        ".global .align 8 .u64 plain = table;\n"
        ".global .align 8 .u64 behind = generic(table)+8;\n"
        ".const .align 8 .u64 list[3] = {generic(fixed), table+4, 7};\n"
        ".global .align 8 .u64 self = self;\n";
    const Doubles got = run_grid(
        "ld.global.u64 %d0, [plain];\nld.u32 %r0, [%d0];\nld.global.u64 %d1, [behind];\nld.u32 %r1, [%d1];\n"
        "ld.const.u64 %d2, [list];\nld.u32 %r2, [%d2];\nld.const.u64 %d3, [list+8];\nld.u32 %r3, [%d3];\n"
        "ld.const.u64 %d4, [list+16];\nld.global.u64 %d5, [self];\nld.u64 %d6, [%d5];\nsetp.eq.u64 %p0, %d5, %d6;\n"
        "mad.lo.u32 %r0, %r0, 100, %r1;\nmad.lo.u32 %r0, %r0, 100, %r2;\nmad.lo.u32 %r0, %r0, 100, %r3;\n"
        "cvt.u64.u32 %result, %r0;\nmad.lo.u64 %result, %result, 10, %d4;\n@!%p0 mov.u64 %result, 0;\n",
        {{1}, {1}}, 0, globals);
    EXPECT_EQ(got[0], 113305227U);
}

TEST(InitialValues, AddressesOfWhatIsNotThereAreRefused) {
    EXPECT_TRUE(
        contains(refusal("mov.u64 %result, 0;\n", ".global .u64 x = generic(nobody);\n"), "'nobody' is not defined"));
    EXPECT_TRUE(contains(refusal("mov.u64 %result, 0;\n", ".global .u64 x = k;\n"), "'k' is code"));
    EXPECT_TRUE(
        contains(refusal("mov.u64 %result, 0;\n", ".shared .u32 s;\n.global .u64 x = s;\n"), "no .global or .const"));
    EXPECT_TRUE(contains(refusal("mov.u64 %result, 0;\n", ".global .u32 y;\n.global .u32 x = y;\n"), "64 bits"));
}

TEST(Parameters, CanBeReadThroughTheirAddress) {
    const Doubles got = run_grid(
        "mov.b64 %d0, out;\nld.param.u64 %d1, [%d0];\nld.param.u32 %r0, [%d0+4];\ncvta.param.u64 %d2, %d0;\n"
        "ld.u64 %d3, [%d2];\nld.param.u64 %d4, [out];\nshr.u64 %d5, %d4, 32;\ncvt.u32.u64 %r1, %d5;\n"
        "setp.eq.u64 %p0, %d1, %d4;\nsetp.eq.and.u64 %p1, %d3, %d4, %p0;\nsetp.eq.and.u32 %p2, %r0, %r1, %p1;\n"
        "selp.b64 %result, 1, 0, %p2;\n",
        {{2}, {32}}, 5);
    EXPECT_EQ(got, Doubles(64, 1));
}

TEST(Parameters, AreNotWrittenAndEndWhereTheyEnd) {
    const auto kind_of = [](const std::string& body) {
        Machine machine;
        return fault_of(machine,
                        ptx_module(".param .u64 out", ".reg .b64 %d<4>;\nmov.b64 %d0, out;\n" + body + "ret;\n"),
                        {{1}, {1}}, Arguments(std::uint64_t{5}))
            .kind;
    };
    EXPECT_EQ(kind_of("cvta.param.u64 %d1, %d0;\nst.u64 [%d1], %d0;\n"), FindingKind::WriteToConstant);
    EXPECT_EQ(kind_of("ld.param.u64 %d1, [%d0+8];\n"), FindingKind::OutOfBounds);
}

TEST(Discard, LosesTheLineAndNothingElse) {
    bool kept = false, lost = false;
    for (std::uint64_t seed = 0; seed < 16; ++seed) {
        const Doubles got = run_grid(
            "st.global.u64 [line], 77;\nst.global.u64 [line+128], 78;\ndiscard.global.L2 [line], 128;\n"
            "ld.global.u64 %d0, [line];\nld.global.u64 %d1, [line+128];\nsetp.eq.u64 %p0, %d0, 77;\n"
            "selp.b64 %result, 1000, 0, %p0;\nadd.s64 %result, %result, %d1;\n",
            {{1}, {1}}, seed, ".global .align 128 .b8 line[256];\n");
        EXPECT_EQ(got[0] % 1000, 78U);
        (got[0] >= 1000 ? kept : lost) = true;
        if (seed == 0) {
            EXPECT_EQ(got[0], 78U);
        }
    }
    EXPECT_TRUE(kept && lost);
}

TEST(Approximate, TheSeedMovesAResultInsideItsBound) {
    std::set<std::uint64_t> sines;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        const Doubles got = run_grid(
            "mov.f32 %f0, 0f3F800000;\nsin.approx.f32 %f1, %f0;\nmov.b32 %r0, %f1;\n"
            "cvt.u64.u32 %result, %r0;\n",
            {{1}, {32}}, seed, "", true);
        EXPECT_EQ(got[0], got[31]) << "the same operand gives the same result";
        sines.insert(got[0]);
    }
    EXPECT_GT(sines.size(), 5U) << "2^-20.5 are several units in the last place of sin 1";
}

TEST(Traps, AFailedAssertionEndsTheLaunchAndNamesItself) {
    const std::string body =
        ".param .b64 text;\nst.param.b64 [text], 0;\nmov.u32 %r0, %tid.x;\nsetp.ne.u32 %p0, %r0, 9;\n@%p0 bra GOOD;\n"
        "call.uni __assertfail, (text);\nGOOD: mov.u64 %result, 1;\n";
    const std::string message = refusal(body, ".extern .func __assertfail (.param .b64 text);\n");
    EXPECT_TRUE(contains(message, "__assertfail")) << message;
    EXPECT_TRUE(contains(message, "thread (9,0,0)")) << message;
    EXPECT_TRUE(contains(refusal("brkpt;\nmov.u64 %result, 1;\n"), "brkpt"));
}

}  // namespace
}  // namespace gradguard::vgpu::test
