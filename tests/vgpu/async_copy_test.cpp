// SPDX-License-Identifier: Apache-2.0
// cp.async: when the data may arrive, what observers hear of it, and what is refused.
#include <gtest/gtest.h>

#include <set>

#include "harness/vgpu/error.h"
#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

using Words = std::vector<std::uint32_t>;

/// A warp. %r0: thread, %d1: its four bytes of the input (100 + thread), %r1: its four bytes of shared memory, which
/// hold 7; the body leaves its result in %r9.
std::string copying(const std::string& body) {
    return ptx_module(".param .u64 in, .param .u64 out",
                      ".reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %d<6>;\n.shared .align 16 .b8 box[256];\n"
                      "mov.u32 %r0, %tid.x;\nld.param.u64 %d0, [in];\nmul.wide.u32 %d2, %r0, 4;\n"
                      "add.s64 %d1, %d0, %d2;\nmov.u32 %r1, box;\nmad.lo.u32 %r1, %r0, 4, %r1;\n"
                      "st.shared.u32 [%r1], 7;\n" +
                          body + "ld.param.u64 %d3, [out];\nadd.s64 %d3, %d3, %d2;\nst.global.u32 [%d3], %r9;\nret;\n");
}

Words input() {
    Words words(32);
    for (std::uint32_t i = 0; i < 32; ++i) words[i] = 100 + i;
    return words;
}

Words run_copying(const std::string& body, std::uint64_t seed, Observer* observer = nullptr) {
    MachineOptions options;
    options.seed = seed;
    Machine machine(options);
    const Address in = upload(machine, input());
    const Address out = machine.allocate(128);
    if (observer) machine.attach(observer);
    run(machine, copying(body), {{1}, {32}}, Arguments(in, out));
    if (observer) machine.detach(observer);
    return download<std::uint32_t>(machine, out, 32);
}

std::string refusal(const std::string& body) {
    try {
        run_copying(body, 0);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

TEST(AsyncCopy, DataAreThereAfterTheWaitUnderEverySeed) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Words got = run_copying(
            "cp.async.ca.shared.global [%r1], [%d1], 4;\ncp.async.commit_group;\ncp.async.wait_group 0;\n"
            "ld.shared.u32 %r9, [%r1];\n",
            seed);
        ASSERT_EQ(got, input()) << seed;
    }
}

TEST(AsyncCopy, WithoutAWaitTheOldDataAreSeenAndUnderSomeSeedsTheNew) {
    std::set<std::uint32_t> seen;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const Words got = run_copying(
            "cp.async.ca.shared.global [%r1], [%d1], 4;\ncp.async.commit_group;\nld.shared.u32 %r9, [%r1];\n", seed);
        if (seed == 0) {
            EXPECT_EQ(got[5], 7U) << "without a seed the data come as late as they may";
        }
        seen.insert(got[5]);
    }
    EXPECT_EQ(seen, (std::set<std::uint32_t>{7, 105}));
}

TEST(AsyncCopy, AWaitForAllButNGroupsLeavesTheNewestUnderWay) {
    const Words got = run_copying(
        "cp.async.ca.shared.global [%r1], [%d1], 4;\ncp.async.commit_group;\n"
        "cp.async.ca.shared.global [%r1+128], [%d1], 4;\ncp.async.commit_group;\n"
        "st.shared.u32 [%r1+128], 1000;\ncp.async.wait_group 1;\n"
        "ld.shared.u32 %r2, [%r1];\nld.shared.u32 %r3, [%r1+128];\nadd.u32 %r9, %r2, %r3;\n",
        0);
    for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], 1000 + 100 + i);
}

TEST(AsyncCopy, AWaitIsForCommittedGroupsOnlyAndWaitAllForEverything) {
    const std::string copy = "cp.async.ca.shared.global [%r1], [%d1], 4;\n", look = "ld.shared.u32 %r9, [%r1];\n";
    EXPECT_EQ(run_copying(copy + "cp.async.wait_group 0;\n" + look, 0)[3], 7U);
    EXPECT_EQ(run_copying(copy + "cp.async.wait_all;\n" + look, 0)[3], 103U);
}

TEST(AsyncCopy, GroupsBelongToAThread) {
    // Even lanes commit, odd ones do not: the wait is for the even ones.
    const Words got = run_copying(
        "and.b32 %r2, %r0, 1;\nsetp.eq.u32 %p0, %r2, 0;\ncp.async.ca.shared.global [%r1], [%d1], 4;\n"
        "@%p0 cp.async.commit_group;\ncp.async.wait_group 0;\nld.shared.u32 %r9, [%r1];\n",
        0);
    for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], i % 2 == 0 ? 100 + i : 7U);
}

TEST(AsyncCopy, WhatNobodyWaitsForArrivesBeforeTheThreadEnds) {
    struct Stores : Observer {
        void memory(const MemoryEvent& event) override {
            stores += event.space == Space::Shared && event.kind == AccessKind::Store;
            loads += event.space == Space::Global && event.kind == AccessKind::Load;
            lines.insert(launch->place(event.instruction).instruction);
        }
        void launch_begin(Observed& observed) override { launch = &observed; }
        Observed* launch = nullptr;
        int stores = 0, loads = 0;
        std::set<std::string> lines;
    } seen;
    run_copying("cp.async.ca.shared.global [%r1], [%d1], 4;\nmov.u32 %r9, 0;\n", 0, &seen);
    EXPECT_EQ(seen.stores, 2) << "one by st.shared, one by the copy";
    EXPECT_EQ(seen.loads, 1);
    EXPECT_EQ(seen.lines.count("cp.async.ca.shared.global [%r1], [%d1], 4;") +
                  seen.lines.count("cp.async.ca.shared.global [%r1], [%d1], 4"),
              1U)
        << "both are of the instruction that issued it";
}

TEST(AsyncCopy, ObserversHearOfTheStoreWhenItHappens) {
    struct Order : Observer {
        void memory(const MemoryEvent& event) override {
            if (event.space == Space::Shared) kinds += event.kind == AccessKind::Store ? 'S' : 'L';
            if (event.space == Space::Global && event.kind == AccessKind::Load) kinds += 'G';
        }
        std::string kinds;
    } order;
    run_copying(
        "cp.async.ca.shared.global [%r1], [%d1], 4;\nld.shared.u32 %r2, [%r1];\ncp.async.wait_all;\n"
        "ld.shared.u32 %r9, [%r1];\n",
        0, &order);
    EXPECT_EQ(order.kinds, "SLGSL");
}

TEST(AsyncCopy, BytesThatAreNotReadAreZeroAndTheirAddressMayBeAny) {
    const Words got = run_copying(
        "mov.u64 %d4, 64;\ncp.async.ca.shared.global [%r1], [%d4], 4, 0;\ncp.async.wait_all;\n"
        "ld.shared.u32 %r9, [%r1];\n",
        3);
    EXPECT_EQ(got, Words(32, 0));
    const Words half = run_copying(
        "cp.async.ca.shared.global [%r1], [%d1], 4, 1;\ncp.async.wait_all;\nld.shared.u32 %r9, [%r1];\n", 3);
    EXPECT_EQ(half, input()) << "the upper bytes are zero in the input too";
}

TEST(AsyncCopy, FaultsAreThoseOfTheAccessThatIsWrong) {
    Machine machine;
    const Address in = upload(machine, input());
    const Address out = machine.allocate(128);
    const Finding source =
        fault_of(machine, copying("cp.async.ca.shared.global [%r1], [%d1+64], 4;\n"), {{1}, {32}}, Arguments(in, out));
    EXPECT_EQ(source.kind, FindingKind::OutOfBounds);
    EXPECT_EQ(source.space, Space::Global);
    EXPECT_EQ(source.access, AccessKind::Load);
    EXPECT_EQ(source.thread.x, 16U);
    Machine other;
    const Address in2 = upload(other, input());
    const Address out2 = other.allocate(128);
    const Finding destination =
        fault_of(other, copying("cp.async.ca.shared.global [%r1+132], [%d1], 4;\n"), {{1}, {32}}, Arguments(in2, out2));
    EXPECT_EQ(destination.kind, FindingKind::OutOfBounds);
    EXPECT_EQ(destination.space, Space::Shared);
    EXPECT_EQ(destination.access, AccessKind::Store);
    EXPECT_EQ(destination.thread.x, 31U);
}

TEST(AsyncCopy, WrongFormsAreRefusedWithTheirLine) {
    for (const auto& [body, why] :
         {std::pair<std::string, std::string>{"cp.async.cg.shared.global [%r1], [%d1], 8;\n", "copies 16 bytes"},
          {"cp.async.ca.shared.global [%r1], [%d1], 2;\n", "4, 8 or 16 bytes"},
          {"cp.async.ca.global.shared [%d1], [%r1], 4;\n", "is not supported"},
          {"cp.async.ca.shared.global [%r1], [%d1];\n", "two addresses, a size"},
          {"cp.async.wait_group %r0;\n", "constant number of groups"},
          {"cp.async.ca.shared.global.L2::cache_hint [%r1], [%d1], 4, %r0;\n", "wrong type"},
          {"cp.async.mbarrier.arrive.shared.b64 [%r1];\n", "is not supported"},
          {"cp.async.bulk.commit_group;\n", "is not supported"}}) {
        const std::string message = refusal(body);
        EXPECT_NE(message.find(why), std::string::npos) << body << message;
        EXPECT_NE(message.find(".ptx:"), std::string::npos) << message;
    }
}

TEST(AsyncCopy, ReadingMoreThanIsCopiedIsAnError) {
    EXPECT_NE(refusal("mov.u32 %r2, 5;\ncp.async.ca.shared.global [%r1], [%d0], 4, %r2;\n").find("more bytes"),
              std::string::npos);
}

}  // namespace
}  // namespace gradguard::vgpu::test
