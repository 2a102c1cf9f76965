// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp together when they come by different ways; calls, branch tables and traps.
#include <gtest/gtest.h>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

using Words = std::vector<std::uint32_t>;

/// Entry `k` writes %out_r of each of 32 threads. `before` stands in front of the entry.
Words run_warp(const std::string& body, const MachineOptions& options = {}, const std::string& before = "",
               Observer* observer = nullptr) {
    const std::string ptx =
        ".version 8.0\n.target sm_80\n.address_size 64\n" + before +
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %t, %r<9>, %result;\n.reg .b64 %d<3>;\n.reg .pred %p<5>;\n"
        "mov.u32 %t, %tid.x;\n" +
        body +
        "\nld.param.u64 %d0, [out];\nmul.wide.u32 %d1, %t, 4;\nadd.s64 %d0, %d0, %d1;\n"
        "st.global.u32 [%d0], %result;\nret;\n}\n";
    Machine machine(options);
    if (observer) machine.attach(observer);
    const Address out = machine.allocate(128);
    run(machine, ptx, {{1}, {32}}, Arguments(out));
    if (observer) machine.detach(observer);
    return download<std::uint32_t>(machine, out, 32);
}

std::string refusal(const std::string& body, const std::string& before = "") {
    try {
        run_warp(body, {}, before);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

TEST(Warp, AShuffleWaitsForLanesThatComeByAnotherWay) {
    for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
        MachineOptions options;
        options.seed = seed;
        // A lane loops as many times as its number says, and leaves the loop for the shuffle at its own time.
        const Words got = run_warp(
            "mov.u32 %r0, %t;\nmov.u32 %r1, 0;\n"
            "LOOP: setp.eq.u32 %p0, %r0, 0;\n@%p0 bra DONE;\nadd.u32 %r1, %r1, %r0;\nsub.u32 %r0, %r0, 1;\nbra LOOP;\n"
            "DONE: shfl.sync.bfly.b32 %result, %r1, 31, 31, 0xffffffff;\n",
            options);
        for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], (31 - i) * (32 - i) / 2);
    }
}

TEST(Warp, TilesOfOneWarpShuffleApart) {
    const Words got = run_warp(
        "and.b32 %r0, %t, 24;\nmov.u32 %r1, 255;\nshl.b32 %r1, %r1, %r0;\n"  // own group of 8
        "shfl.sync.idx.b32 %r2, %t, 3, 6175, %r1;\nredux.sync.add.u32 %r3, %t, %r1;\n"
        "mad.lo.u32 %result, %r2, 1000, %r3;\n");
    for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], (i / 8 * 8 + 3) * 1000 + 8 * (i / 8 * 8) + 28);
}

TEST(Warp, ALaneThatSpinsDoesNotStarveTheOneItWaitsFor) {
    MachineOptions options;
    options.preemption_interval = 100;
    // Lane 0 spins until the others have met and lane 1 has written.
    const Words got = run_warp(
        ".shared .align 4 .b8 flag[4];\nsetp.eq.u32 %p0, %t, 0;\nsetp.eq.u32 %p1, %t, 1;\n"
        "@%p0 st.shared.u32 [flag], 0;\nbar.warp.sync 0xffffffff;\nmov.u32 %result, 5;\n"
        "@!%p0 bra OTHERS;\n"
        "SPIN: ld.volatile.shared.u32 %r0, [flag];\nsetp.eq.u32 %p2, %r0, 0;\n@%p2 bra SPIN;\nbra JOIN;\n"
        "OTHERS: vote.sync.ballot.b32 %result, %p1, 0xfffffffe;\n@%p1 st.volatile.shared.u32 [flag], 1;\n"
        "JOIN: bar.warp.sync 0xffffffff;\n",
        options);
    EXPECT_EQ(got[0], 5U);
    for (std::uint32_t i = 1; i < 32; ++i) EXPECT_EQ(got[i], 2U);
}

TEST(Warp, ExitedLanesAreNotWaitedFor) {
    const Words got = run_warp(
        "setp.ge.u32 %p0, %t, 8;\n@%p0 exit;\nnot.pred %p0, %p0;\nvote.sync.ballot.b32 %result, %p0, 0xffffffff;\n");
    for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(got[i], 0xFFU);
}

TEST(Warp, ALaneOutsideItsOwnMaskIsAnError) {
    const std::string message = refusal("redux.sync.add.u32 %result, %t, 0x7fffffff;\n");
    EXPECT_NE(message.find("not in its own member mask"), std::string::npos) << message;
    EXPECT_NE(message.find("thread (31,0,0)"), std::string::npos) << message;
}

struct SyncCounter : Observer {
    std::uint32_t count = 0;
    void warp_sync(const WarpSyncEvent&) override { ++count; }
};

TEST(Warp, OnlyBarriersOfWarpsOrderMemory) {
    SyncCounter counter;
    run_warp("shfl.sync.idx.b32 %result, %t, 0, 31, 0xffffffff;\n", {}, "", &counter);
    EXPECT_EQ(counter.count, 0U);
    run_warp("bar.warp.sync 0xffffffff;\nmov.u32 %result, 0;\n", {}, "", &counter);
    EXPECT_EQ(counter.count, 1U);
}

TEST(Warp, ABranchTableGoesWhereItsIndexSays) {
    const std::string body =
        "and.b32 %r0, %t, MASK;\nTABLE: .branchtargets A, B, C;\nbrx.idx %r0, TABLE;\n"
        "A: mov.u32 %result, 10;\nbra JOIN;\nB: mov.u32 %result, 11;\nbra JOIN;\nC: mov.u32 %result, 12;\nJOIN:\n";
    const auto with_mask = [&](const char* mask) {
        std::string text = body;
        return text.replace(text.find("MASK"), 4, mask);
    };
    const Words got = run_warp(with_mask("1"));
    for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], 10 + i % 2);
    EXPECT_NE(refusal(with_mask("3")).find("trap"), std::string::npos);
}

TEST(Warp, FunctionsAreCalledByTheLanesThatTheGuardLetsPass) {
    const std::string twice =
        ".func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 %a;\n.reg .pred %q;\nld.param.b32 %a, [x];\n"
        "setp.gt.u32 %q, %a, 20;\nadd.u32 %a, %a, %a;\nst.param.b32 [r], %a;\n@%q ret;\nadd.u32 %a, %a, 1;\n"
        "st.param.b32 [r], %a;\nret;\n}\n";
    const Words got = run_warp(
        "setp.ne.u32 %p0, %t, 7;\nmov.u32 %result, 99;\n{\n.param .b32 p;\n.param .b32 q;\nst.param.b32 [p], %t;\n"
        "st.param.b32 [q], 55;\n@%p0 call.uni (q), twice, (p);\nld.param.b32 %result, [q];\n}\n",
        {}, twice);
    for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], i == 7 ? 55 : i > 20 ? 2 * i : 2 * i + 1);
    const std::string recursive = ".func f()\n{\ncall f;\nret;\n}\n";
    EXPECT_NE(refusal("call f;\nmov.u32 %result, 0;\n", recursive).find("recursion"), std::string::npos);
    EXPECT_NE(refusal("call g;\nmov.u32 %result, 0;\n", ".extern .func g;\n").find("has no body"), std::string::npos);
}

TEST(Warp, ATrapNamesWhoFellIntoIt) {
    const std::string message = refusal("setp.eq.u32 %p0, %t, 9;\n@%p0 trap;\nmov.u32 %result, 0;\n");
    EXPECT_NE(message.find("trap"), std::string::npos);
    EXPECT_NE(message.find("thread (9,0,0)"), std::string::npos) << message;
}

TEST(Warp, LocalMemoryEndsWhereItEnds) {
    const std::string message = refusal(
        ".local .align 4 .b8 own[8];\nmov.u64 %d0, own;\ncvta.local.u64 %d0, %d0;\nmul.wide.u32 %d1, %t, 4;\n"
        "add.s64 %d0, %d0, %d1;\nst.u32 [%d0], %t;\nmov.u32 %result, 0;\n");
    EXPECT_NE(message.find("local"), std::string::npos) << message;
}

}  // namespace
}  // namespace gradguard::vgpu::test
