// SPDX-License-Identifier: Apache-2.0
// Divergence, barriers, spinning and what happens when nothing can go on.
#include <gtest/gtest.h>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

constexpr const char* kOut = ".param .u64 out";
/// Declares registers, %i = global thread index, %o = address of out[%i].
constexpr const char* kBegin = R"(
    .reg .pred %p<9>;
    .reg .b32 %i, %n, %r<20>;
    .reg .b64 %o, %w<9>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %i, %r1, %r2, %r3;
    ld.param.u64 %o, [out];
    mul.wide.u32 %w1, %i, 4;
    add.u64 %o, %o, %w1;
)";

std::vector<std::uint32_t> run_threads(const std::string& body, std::uint32_t blocks, std::uint32_t threads,
                                       const MachineOptions& options = {}, LaunchStats* stats = nullptr,
                                       const std::string& globals = "") {
    Machine machine(options);
    const Address out = machine.allocate(std::uint64_t{4} * blocks * threads);
    const LaunchStats result =
        run(machine, ptx_module(kOut, kBegin + body, globals), {{blocks}, {threads}}, Arguments(out));
    if (stats) *stats = result;
    EXPECT_TRUE(machine.findings().empty());
    return download<std::uint32_t>(machine, out, std::size_t{blocks} * threads);
}

TEST(ControlFlow, NestedBranchesGiveEachLaneItsOwnWay) {
    const std::string body = R"(
    and.b32 %r4, %i, 1;
    setp.eq.u32 %p1, %r4, 0;
    and.b32 %r5, %i, 2;
    setp.eq.u32 %p2, %r5, 0;
    mov.u32 %n, 0;
    @%p1 bra $even;
    @%p2 bra $odd_low;
    add.u32 %n, %n, 3;
    bra $odd_join;
$odd_low:
    add.u32 %n, %n, 1;
$odd_join:
    add.u32 %n, %n, 100;
    bra $join;
$even:
    @!%p2 bra $join;
    add.u32 %n, %n, 50;
$join:
    add.u32 %n, %n, 1000;
    st.global.u32 [%o], %n;
    ret;
)";
    for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
        MachineOptions options;
        options.seed = seed;
        LaunchStats stats;
        const auto values = run_threads(body, 2, 48, options, &stats);
        for (std::uint32_t i = 0; i < 96; ++i) {
            const std::uint32_t wanted = 1000 + (i % 2 ? (i & 2 ? 103 : 101) : (i & 2 ? 0 : 50));
            EXPECT_EQ(values[i], wanted) << i;
        }
        EXPECT_GT(stats.counters.divergent_branches, 0U);
    }
}

TEST(ControlFlow, LanesLeaveALoopAfterTheirOwnNumberOfRounds) {
    const std::string body = R"(
    mov.u32 %n, 0;
    mov.u32 %r4, 0;
$again:
    add.u32 %n, %n, %i;
    add.u32 %r4, %r4, 1;
    setp.le.u32 %p1, %r4, %i;
    @%p1 bra $again;
    st.global.u32 [%o], %n;
    ret;
)";
    LaunchStats stats;
    const auto values = run_threads(body, 1, 70, {}, &stats);
    for (std::uint32_t i = 0; i < 70; ++i) EXPECT_EQ(values[i], i * (i + 1));
    // Prologue 7, one mov twice, the loop i + 1 times 4, the end 2.
    std::uint64_t lanes = 0;
    for (std::uint64_t i = 0; i < 70; ++i) lanes += 7 + 2 + 4 * (i + 1) + 2;
    EXPECT_EQ(stats.counters.lane_instructions, lanes);
}

TEST(ControlFlow, LanesThatExitEarlyHoldNobodyUp) {
    const std::string body = R"(
    st.global.u32 [%o], %i;
    and.b32 %r4, %i, 3;
    setp.eq.u32 %p1, %r4, 1;
    @%p1 exit;
    setp.eq.u32 %p2, %r4, 2;
    @%p2 bra $two;
    add.u32 %r5, %i, 100;
    st.global.u32 [%o], %r5;
    bra $end;
$two:
    ret;
$end:
    add.u32 %r5, %r5, 100;
    st.global.u32 [%o], %r5;
    ret;
)";
    const auto values = run_threads(body, 1, 64);
    for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], i % 4 == 1 || i % 4 == 2 ? i : i + 200);
}

TEST(ControlFlow, ABarrierMakesEveryWarpsSharedWritesVisible) {
    // Thread i reads what thread (i + 32) % 96 wrote.
    const std::string body = R"(
    .shared .align 4 .b8 box[384];
    mov.u32 %r4, box;
    shl.b32 %r5, %r3, 2;
    add.u32 %r6, %r4, %r5;
    st.shared.u32 [%r6], %i;
    bar.sync 0;
    add.u32 %r7, %r3, 32;
    rem.u32 %r7, %r7, 96;
    shl.b32 %r7, %r7, 2;
    add.u32 %r7, %r7, %r4;
    ld.shared.u32 %n, [%r7];
    st.global.u32 [%o], %n;
    ret;
)";
    for (const std::uint64_t seed : {0, 5, 6, 7}) {
        MachineOptions options;
        options.seed = seed;
        LaunchStats stats;
        const auto values = run_threads(body, 3, 96, options, &stats);
        for (std::uint32_t i = 0; i < 288; ++i) EXPECT_EQ(values[i], i / 96 * 96 + (i % 96 + 32) % 96);
        EXPECT_EQ(stats.counters.barriers, 3U);
    }
}

TEST(ControlFlow, NamedBarriersWaitForTheirThreadCount) {
    // Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2; all at barrier 0 in the end.
    const std::string body = R"(
    shr.u32 %r4, %r3, 6;
    add.u32 %r4, %r4, 1;
    barrier.sync %r4, 64;
    bar.sync 0, 128;
    st.global.u32 [%o], %r4;
    ret;
)";
    LaunchStats stats;
    const auto values = run_threads(body, 1, 128, {}, &stats);
    EXPECT_EQ(values[0], 1U);
    EXPECT_EQ(values[127], 2U);
    EXPECT_EQ(stats.counters.barriers, 3U);
}

TEST(ControlFlow, ThreadsThatExitedAreNotWaitedFor) {
    const std::string body = R"(
    st.global.u32 [%o], %i;
    setp.ge.u32 %p1, %r3, 32;
    @%p1 exit;
    bar.sync 0;
    add.u32 %n, %i, 1;
    st.global.u32 [%o], %n;
    ret;
)";
    const auto values = run_threads(body, 1, 96);
    EXPECT_EQ(values[31], 32U);
    EXPECT_EQ(values[32], 32U);
    EXPECT_EQ(values[95], 95U);
}

TEST(ControlFlow, ABarrierThatOnlySomeLanesReachIsAFinding) {
    const std::string body = std::string(kBegin) + R"(
    setp.lt.u32 %p1, %r3, 16;
    @!%p1 bra $join;
    bar.sync 0;
$join:
    st.global.u32 [%o], %i;
    ret;
)";
    Machine machine;
    const Address out = machine.allocate(4 * 32);
    run(machine, ptx_module(kOut, body), {{1}, {32}}, Arguments(out));
    ASSERT_EQ(machine.findings().size(), 1U);
    EXPECT_EQ(machine.findings()[0].kind, FindingKind::DivergentBarrier);
    EXPECT_EQ(machine.findings()[0].place.instruction, "bar.sync 0;");
}

TEST(ControlFlow, OneBarrierFilledFromTwoPlacesByOneWarpIsAFinding) {
    const std::string body = std::string(kBegin) + R"(
    setp.lt.u32 %p1, %r3, 16;
    @!%p1 bra $else;
    bar.sync 0;
    bra $join;
$else:
    bar.sync 0;
$join:
    st.global.u32 [%o], %i;
    ret;
)";
    Machine machine;
    const Address out = machine.allocate(4 * 64);
    run(machine, ptx_module(kOut, body), {{1}, {64}}, Arguments(out));
    ASSERT_EQ(machine.findings().size(), 1U);
    EXPECT_EQ(machine.findings()[0].kind, FindingKind::DivergentBarrier);
}

TEST(ControlFlow, ABarrierThatCannotBeFilledIsADeadlockThatNamesThePlaces) {
    const std::string body = std::string(kBegin) + R"(
    setp.lt.u32 %p1, %r3, 32;
    @%p1 bra $first;
    bar.sync 1;
    ret;
$first:
    bar.sync 2;
    ret;
)";
    Machine machine;
    const Finding finding = fault_of(machine, ptx_module(kOut, body), {{1}, {64}}, Arguments(machine.allocate(256)));
    EXPECT_EQ(finding.kind, FindingKind::Deadlock);
    EXPECT_NE(finding.detail.find("wait at barrier 2"), std::string::npos) << finding.detail;
    EXPECT_NE(finding.detail.find("'bar.sync 1;'"), std::string::npos) << finding.detail;
    EXPECT_NE(finding.detail.find("warp 1"), std::string::npos) << finding.detail;
}

TEST(ControlFlow, AnEndlessLoopEndsWithTheInstructionBudget) {
    const std::string body = std::string(kBegin) + "$here:\n    bra $here;\n";
    MachineOptions options;
    options.instruction_budget = 100'000;
    options.preemption_interval = 1000;
    Machine machine(options);
    const Finding finding = fault_of(machine, ptx_module(kOut, body), {{4}, {64}}, Arguments(machine.allocate(1024)));
    EXPECT_EQ(finding.kind, FindingKind::NoProgress);
    EXPECT_EQ(finding.place.instruction, "bra $here;");
    EXPECT_NE(finding.detail.find("100000 warp instructions"), std::string::npos) << finding.detail;
}

TEST(ControlFlow, ASpinningWarpDoesNotStarveTheWarpItWaitsFor) {
    // Every warp but the last waits for a flag that the last one sets.
    const std::string body = R"(
    .shared .align 4 .b32 flag;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra $ready;
    mov.u32 %r4, 0;
    st.shared.u32 [flag], %r4;
$ready:
    bar.sync 0;
    setp.lt.u32 %p1, %r3, 96;
    @%p1 bra $wait;
    mov.u32 %r4, 7;
    st.volatile.shared.u32 [flag], %r4;
$wait:
    ld.volatile.shared.u32 %n, [flag];
    setp.ne.u32 %p2, %n, 7;
    @%p2 bra $wait;
    st.global.u32 [%o], %n;
    ret;
)";
    for (const std::uint64_t seed : {0, 1, 2}) {
        MachineOptions options;
        options.seed = seed;
        options.preemption_interval = 500;
        for (const std::uint32_t value : run_threads(body, 1, 128, options)) EXPECT_EQ(value, 7U);
    }
}

TEST(ControlFlow, ALaneThatSpinsDoesNotStarveTheLaneItWaitsFor) {
    // Lane 0 leaves the loop at once and waits at the join; the others spin until lane 0, beyond the join, sets the
    // flag.
    const std::string body = R"(
    .shared .align 4 .b32 flag;
    mov.u32 %r4, 0;
    st.shared.u32 [flag], %r4;
    bar.sync 0;
    setp.eq.u32 %p1, %r3, 0;
$spin:
    ld.volatile.shared.u32 %n, [flag];
    setp.eq.or.u32 %p2, %n, 7, %p1;
    @!%p2 bra $spin;
    mov.u32 %r4, 7;
    st.volatile.shared.u32 [flag], %r4;
    st.global.u32 [%o], %r4;
    ret;
)";
    for (const std::uint64_t seed : {0, 1, 2}) {
        MachineOptions options;
        options.seed = seed;
        options.preemption_interval = 500;
        for (const std::uint32_t value : run_threads(body, 1, 32, options)) EXPECT_EQ(value, 7U);
    }
}

TEST(ControlFlow, BlocksThatWaitForEachOtherBecomeResidentTogether) {
    // Each block waits for the next one's flag; the last sets its own at once.
    const std::string globals = ".visible .global .align 4 .b32 flags[9];\n";
    const std::string body = R"(
    mov.u64 %w2, flags;
    mul.wide.u32 %w3, %r1, 4;
    add.u64 %w2, %w2, %w3;
    setp.eq.u32 %p1, %r1, 7;
    @%p1 bra $set;
$wait:
    ld.volatile.global.u32 %n, [%w2+4];
    setp.eq.u32 %p2, %n, 0;
    @%p2 bra $wait;
$set:
    mov.u32 %r4, 1;
    st.volatile.global.u32 [%w2], %r4;
    st.global.u32 [%o], %r1;
    ret;
)";
    for (const std::uint64_t seed : {0, 3}) {
        MachineOptions options;
        options.seed = seed;
        options.preemption_interval = 300;
        const auto values = run_threads(body, 8, 32, options, nullptr, globals);
        EXPECT_EQ(values[0], 0U);
        EXPECT_EQ(values[255], 7U);
    }
}

TEST(ControlFlow, AGuardedBarrierTakesOnlyTheLanesThatPass) {
    const std::string body = R"(
    setp.lt.u32 %p1, %r3, 64;
    @%p1 bar.sync 1, 64;
    st.global.u32 [%o], %i;
    ret;
)";
    const auto values = run_threads(body, 1, 96);
    for (std::uint32_t i = 0; i < 96; ++i) EXPECT_EQ(values[i], i);
}

}  // namespace
}  // namespace gradguard::vgpu::test
