// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "harness/observers/races.h"
#include "tests/observers/fake_launch.h"

/// What fences, atomics, releases and acquires order, event by event.
namespace gradguard::observers::test {
namespace {

using vgpu::FindingKind;
using vgpu::Order;
using vgpu::Scope;
using vgpu::Space;

constexpr vgpu::Address kData = allocation(0);
constexpr vgpu::Address kFlag = allocation(1);

struct Fences : testing::Test {
    Fences() {
        races.allocated(kData, 1 << 20);
        races.allocated(kFlag, 256);
    }
    Races races{RaceOptions{}};
};

constexpr vgpu::LaunchConfig kOneBlock{{1, 1, 1}, {64, 1, 1}};
constexpr vgpu::LaunchConfig kTwoBlocks{{2, 1, 1}, {64, 1, 1}};

// The "last block reduces" pattern: write a partial, fence, count with an atomic; the last reads all partials.
struct LastBlock {
    bool fence = true;
    bool second_fence = true;
    Scope fence_scope = Scope::Gpu;
    bool all_threads_write = false;  ///< The block writes, a barrier, then thread 0 fences and counts.
    bool fence_before_barrier = false;
};

std::vector<vgpu::Finding> last_block_reduces(Races& races, LastBlock how) {
    FakeLaunch launch(races, {{16, 1, 1}, {64, 1, 1}});
    for (std::uint64_t b = 0; b < 16; ++b) {
        if (how.all_threads_write) {
            for (std::uint32_t w = 0; w < 2; ++w) {
                launch.store({b, w}, 10, row(kData, static_cast<std::int64_t>(b * 64 + w * 32)));
                if (how.fence_before_barrier) launch.fence({b, w}, 11, how.fence_scope);
            }
            launch.barrier(b, 12);
        } else {
            launch.store({b, 0, 1}, 10, same(kData + b * 256));
        }
        if (how.fence) launch.fence({b, 0, 1}, 13, how.fence_scope);
        launch.atomic({b, 0, 1}, 14, same(kFlag));
        if (how.second_fence) launch.fence({b, 0, 1}, 15);
        launch.barrier(b, 16);
        if (b == 15) {
            for (std::int64_t k = 0; k < 16; ++k) {
                for (std::uint32_t w = 0; w < 2; ++w) launch.load({b, w}, 17, row(kData, k * 64 + w * 32));
            }
        }
    }
    return launch.end();
}

TEST_F(Fences, LastBlockReducesIsOrdered) { EXPECT_TRUE(last_block_reduces(races, {}).empty()); }
TEST_F(Fences, LastBlockWithoutItsFenceIsARace) {
    const auto findings = last_block_reduces(races, {.fence = false});
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, FindingKind::Race);
    EXPECT_EQ(findings[0].place.ptx_line, 17U);
    EXPECT_EQ(findings[0].other->ptx_line, 10U);
}
TEST_F(Fences, AFenceForOneBlockIsNotEnough) {
    EXPECT_FALSE(last_block_reduces(races, {.fence_scope = Scope::Cta}).empty());
}
TEST_F(Fences, AnAtomicBeforeABarrierAcquires) {
    EXPECT_TRUE(last_block_reduces(races, {.second_fence = false}).empty());
}
TEST_F(Fences, AFenceIsCumulativeOverABarrier) {
    EXPECT_TRUE(last_block_reduces(races, {.all_threads_write = true}).empty());
    EXPECT_FALSE(last_block_reduces(races, {.fence = false, .all_threads_write = true}).empty());
}
TEST_F(Fences, AllThreadsMayFenceBeforeTheBarrier) {
    EXPECT_TRUE(
        last_block_reduces(races, {.fence = false, .all_threads_write = true, .fence_before_barrier = true}).empty());
}

TEST_F(Fences, AFenceBeforeTheWritePublishesNothing) {
    FakeLaunch launch(races, kTwoBlocks);
    launch.fence({0, 0, 1}, 9);
    launch.store({0, 0, 1}, 10, same(kData));
    launch.atomic({0, 0, 1}, 11, same(kFlag));
    launch.atomic({1, 0, 1}, 12, same(kFlag));
    launch.fence({1, 0, 1}, 13);
    launch.load({1, 0, 1}, 14, same(kData));
    EXPECT_EQ(launch.end().size(), 1U);
}

TEST_F(Fences, FlagIsPublishedAndConsumedWithFences) {
    for (const int missing : {0, 1, 2}) {
        FakeLaunch launch(races, kTwoBlocks);
        const How flag{Space::Global, 4, Order::Volatile, Scope::System};
        launch.load({1, 0, 1}, 9, same(kFlag), flag);
        launch.store({0, 0, 1}, 10, same(kData));
        if (missing != 1) launch.fence({0, 0, 1}, 11);
        launch.store({0, 0, 1}, 12, same(kFlag), flag);
        launch.load({1, 0, 1}, 13, same(kFlag), flag);
        if (missing != 2) launch.fence({1, 0, 1}, 14);
        launch.load({1, 0, 1}, 15, same(kData));
        EXPECT_EQ(launch.end().size(), missing == 0 ? 0U : 1U) << missing;
    }
}

TEST_F(Fences, ReleaseAndAcquireNeedNoFence) {
    for (const Scope scope : {Scope::Gpu, Scope::Cta}) {
        FakeLaunch launch(races, kTwoBlocks);
        launch.store({0, 0, 1}, 10, same(kData));
        launch.store({0, 0, 1}, 11, same(kFlag), {Space::Global, 4, Order::Release, scope});
        launch.load({1, 0, 1}, 12, same(kFlag), {Space::Global, 4, Order::Acquire, scope});
        launch.load({1, 0, 1}, 13, same(kData));
        EXPECT_EQ(launch.end().empty(), scope == Scope::Gpu);
    }
}

TEST_F(Fences, ALaterStoreEndsAReleaseSequenceAndAnAtomicContinuesIt) {
    for (const bool atomic : {true, false}) {
        FakeLaunch launch(races, {{3, 1, 1}, {64, 1, 1}});
        launch.store({0, 0, 1}, 10, same(kData));
        launch.store({0, 0, 1}, 11, same(kFlag), {Space::Global, 4, Order::Release, Scope::Gpu});
        if (atomic) {
            launch.atomic({1, 0, 1}, 12, same(kFlag));
        } else {
            launch.store({1, 0, 1}, 12, same(kFlag), {Space::Global, 4, Order::Relaxed, Scope::Gpu});
        }
        launch.load({2, 0, 1}, 13, same(kFlag), {Space::Global, 4, Order::Acquire, Scope::Gpu});
        launch.load({2, 0, 1}, 14, same(kData));
        EXPECT_EQ(launch.end().empty(), atomic);
    }
}

TEST_F(Fences, WhatWasLearnedIsPassedOn) {
    FakeLaunch launch(races, {{3, 1, 1}, {64, 1, 1}});
    launch.store({0, 1, 2}, 10, same(kData));
    launch.barrier(0, 11);
    launch.store({0, 0, 1}, 12, same(kFlag), {Space::Global, 4, Order::Release, Scope::Gpu});
    launch.load({1, 0, 1}, 13, same(kFlag), {Space::Global, 4, Order::Acquire, Scope::Gpu});
    launch.barrier(1, 14);
    launch.store({1, 1, 4}, 15, same(kFlag + 4), {Space::Global, 4, Order::Release, Scope::Gpu});
    launch.load({2, 1, 8}, 16, same(kFlag + 4), {Space::Global, 4, Order::Acquire, Scope::Gpu});
    launch.load({2, 1, 8}, 17, same(kData));
    EXPECT_TRUE(launch.end().empty());
}

TEST_F(Fences, AFlagInSharedMemoryOrdersWarpsOfABlock) {
    for (const bool fence : {true, false}) {
        FakeLaunch launch(races, kOneBlock);
        const How flag{Space::Shared, 4, Order::Volatile, Scope::System};
        launch.store({0, 0, 1}, 10, same(64), kShared);
        if (fence) launch.fence({0, 0, 1}, 11, Scope::Cta);
        launch.store({0, 0, 1}, 12, same(0), flag);
        launch.load({0, 1, 1}, 13, same(0), flag);
        launch.fence({0, 1, 1}, 14, Scope::Cta);
        launch.load({0, 1, 1}, 15, same(64), kShared);
        EXPECT_EQ(launch.end().empty(), fence);
    }
}

// A ticket counter: thread 0 of each block counts, then thread `resetter` of block `block` stores 0 without an atomic.
std::vector<vgpu::Finding> reset_ticket(Races& races, std::uint64_t block, std::uint32_t resetter, bool barrier) {
    FakeLaunch launch(races, {{40, 1, 1}, {64, 1, 1}});
    for (std::uint64_t b = 0; b < 40; ++b) launch.atomic({b, 0, 1}, 10, same(kFlag));
    if (barrier) launch.barrier(block, 11);
    launch.store({block, resetter / 32, 1U << (resetter % 32)}, 12, same(kFlag));
    return launch.end();
}

TEST_F(Fences, WhoTookTheLastTicketMayResetTheCounter) {
    EXPECT_TRUE(reset_ticket(races, 39, 0, false).empty());
    EXPECT_TRUE(reset_ticket(races, 39, 40, true).empty());
}
TEST_F(Fences, WhoTookAnEarlierTicketMayNotResetTheCounter) {
    for (const std::uint64_t block : {0U, 20U, 38U}) {
        const auto findings = reset_ticket(races, block, 0, true);
        ASSERT_EQ(findings.size(), 1U) << block;
        EXPECT_EQ(findings[0].kind, FindingKind::Race);
        EXPECT_EQ(findings[0].place.ptx_line, 12U);
        EXPECT_EQ(findings[0].other->ptx_line, 10U);
    }
}
TEST_F(Fences, AThreadThatTookNoTicketMayNotResetTheCounter) {
    EXPECT_FALSE(reset_ticket(races, 39, 1, false).empty());
    EXPECT_FALSE(reset_ticket(races, 39, 40, false).empty());
}
TEST_F(Fences, AnAtomicPublishesOnlyItself) {
    FakeLaunch launch(races, kTwoBlocks);
    launch.store({0, 0, 1}, 10, same(kData));
    launch.atomic({0, 0, 1}, 11, same(kFlag));
    launch.atomic({1, 0, 1}, 12, same(kFlag));
    launch.load({1, 0, 1}, 13, same(kFlag));
    launch.load({1, 0, 1}, 14, same(kData));
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].place.ptx_line, 14U);
}
TEST_F(Fences, AStrongStoreHidesTheAtomicsBeforeIt) {
    FakeLaunch launch(races, {{3, 1, 1}, {64, 1, 1}});
    launch.atomic({0, 0, 1}, 10, same(kFlag));
    launch.store({1, 0, 1}, 11, same(kFlag), {Space::Global, 4, Order::Relaxed, Scope::Gpu});
    launch.atomic({2, 0, 1}, 12, same(kFlag));
    launch.store({2, 0, 1}, 13, same(kFlag));
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].other->ptx_line, 10U);
}
TEST_F(Fences, WhoHasSeenAFlagMayResetIt) {
    for (const bool seen : {true, false}) {
        FakeLaunch launch(races, kTwoBlocks);
        const How flag{Space::Global, 4, Order::Volatile, Scope::System};
        if (!seen) launch.load({1, 0, 1}, 10, same(kFlag), flag);
        launch.store({0, 0, 1}, 11, same(kFlag), flag);
        if (seen) launch.load({1, 0, 1}, 12, same(kFlag), flag);
        launch.barrier(1, 13);
        launch.load({1, 0}, 14, same(kFlag));
        launch.load({1, 1}, 15, same(kFlag));
        launch.barrier(1, 16);
        launch.store({1, 1, 2}, 17, same(kFlag));
        EXPECT_EQ(launch.end().empty(), seen);
    }
}
TEST_F(Fences, AtomicsForOneBlockAreNotObservedByOthers) {
    FakeLaunch launch(races, kTwoBlocks);
    const How narrow{Space::Global, 4, Order::Relaxed, Scope::Cta};
    launch.atomic({0, 0, 1}, 10, same(kFlag), narrow);
    launch.atomic({1, 0, 1}, 11, same(kFlag), narrow);
    launch.store({1, 0, 1}, 12, same(kFlag));
    EXPECT_FALSE(launch.end().empty());
}

TEST_F(Fences, AGridBarrierOrdersAllBlocks) {
    for (const bool barrier : {true, false}) {
        FakeLaunch launch(races, {{8, 1, 1}, {64, 1, 1}});
        for (int phase = 0; phase < 3; ++phase) {
            for (std::uint64_t b = 0; b < 8; ++b) {
                for (std::uint32_t w = 0; w < 2; ++w) {
                    const auto at =
                        static_cast<std::int64_t>((b + static_cast<std::uint64_t>(phase)) % 8 * 64 + w * 32);
                    launch.load({b, w}, 10, row(kData, at));
                    launch.store({b, w}, 11, row(kData, at));
                }
            }
            if (!barrier) continue;
            for (std::uint64_t b = 0; b < 8; ++b) {
                launch.barrier(b, 12);
                launch.fence({b, 0, 1}, 13);
                launch.atomic({b, 0, 1}, 14, same(kFlag));
            }
            for (std::uint64_t b = 0; b < 8; ++b) {
                launch.load({b, 0, 1}, 15, same(kFlag), {Space::Global, 4, Order::Volatile, Scope::System});
                launch.fence({b, 0, 1}, 16);
                launch.barrier(b, 17);
            }
        }
        EXPECT_EQ(launch.end().empty(), barrier);
    }
}

}  // namespace
}  // namespace gradguard::observers::test
