// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "harness/observers/races.h"
#include "tests/observers/fake_launch.h"

/// Races, event by event. Whole programs are in programs_test.cpp.
namespace gradguard::observers::test {
namespace {

using vgpu::FindingKind;
using vgpu::Order;
using vgpu::Scope;
using vgpu::Space;

constexpr vgpu::Address kData = allocation(0);

struct RacesTest : testing::Test {
    RacesTest() { races.allocated(kData, 1 << 20); }
    Races races{RaceOptions{}};
};

using SharedRaces = RacesTest;
using GlobalRaces = RacesTest;
using WarpRaces = RacesTest;

constexpr vgpu::LaunchConfig kOneBlock{{1, 1, 1}, {64, 1, 1}};
constexpr vgpu::LaunchConfig kTwoBlocks{{2, 1, 1}, {64, 1, 1}};

TEST_F(SharedRaces, AnotherWarpReadsWithoutABarrier) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0}, 10, row(0), kShared);
    launch.load({0, 1}, 20, row(0), kShared);
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, FindingKind::Race);
    EXPECT_EQ(findings[0].space, Space::Shared);
    EXPECT_EQ(findings[0].place.ptx_line, 20U);
    EXPECT_EQ(findings[0].thread, (vgpu::Dim3{32, 0, 0}));
    EXPECT_EQ(findings[0].count, 32U);
    ASSERT_TRUE(findings[0].other);
    EXPECT_EQ(findings[0].other->ptx_line, 10U);
    EXPECT_EQ(findings[0].other_thread, (vgpu::Dim3{0, 0, 0}));
    EXPECT_EQ(findings[0].other_access, vgpu::AccessKind::Store);
    EXPECT_EQ(findings[0].address, 0U);
}

TEST_F(SharedRaces, ABarrierBetweenOrders) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0}, 10, row(0), kShared);
    launch.barrier(0, 11);
    launch.load({0, 1}, 20, row(0), kShared);
    EXPECT_TRUE(launch.end().empty());
}

TEST_F(SharedRaces, WritingOverWhatAnotherWarpStillReads) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0}, 10, row(0), kShared);
    launch.barrier(0, 11);
    launch.load({0, 1}, 20, row(0), kShared);
    launch.store({0, 0}, 21, row(0), kShared);
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].place.ptx_line, 21U);
    EXPECT_EQ(findings[0].other->ptx_line, 20U);
    EXPECT_EQ(findings[0].other_access, vgpu::AccessKind::Load);
}

TEST_F(SharedRaces, TheBarrierOfAnotherBlockOrdersNothing) {
    FakeLaunch launch(races, kTwoBlocks);
    launch.store({0, 0}, 10, row(0), kShared);
    launch.barrier(1, 11);
    launch.load({0, 1}, 20, row(0), kShared);
    EXPECT_EQ(launch.end().size(), 1U);
}

TEST_F(SharedRaces, BlocksHaveSharedMemoryOfTheirOwn) {
    FakeLaunch launch(races, kTwoBlocks);
    launch.store({0, 0}, 10, row(0), kShared);
    launch.load({1, 1}, 20, row(0), kShared);
    EXPECT_TRUE(launch.end().empty());
}

TEST_F(SharedRaces, NeighbouringBytesAreNoRace) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0, 1}, 10, same(0), {Space::Shared, 1});
    launch.store({0, 1, 1}, 11, same(1), {Space::Shared, 1});
    launch.store({0, 0, 2}, 12, same(2), {Space::Shared, 2});
    EXPECT_TRUE(launch.end().empty());
}

TEST_F(SharedRaces, AByteOfAnotherThreadsWordIsARace) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0, 1}, 10, same(0), kShared);
    launch.store({0, 1, 1}, 11, same(3), {Space::Shared, 1});
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].address, 3U);
}

TEST_F(SharedRaces, AVectorStoreCoversAllItsWords) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0}, 10, row(0, 0, 16), {Space::Shared, 16});
    launch.load({0, 1, 1}, 11, same(31 * 16 + 12), kShared);
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].other_thread, (vgpu::Dim3{31, 0, 0}));
}

TEST_F(SharedRaces, AThreadMayReadWhatItWroteAsAVector) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0}, 10, row(0, 0, 16), {Space::Shared, 16});
    for (int word = 0; word < 4; ++word) {
        launch.load(
            {0, 0}, 11, [=](std::uint32_t lane) { return lane * 16 + word * 4; }, kShared);
    }
    EXPECT_TRUE(launch.end().empty());
}

TEST_F(SharedRaces, ManyReadersAreAllRemembered) {
    for (std::uint32_t writer = 0; writer < 3; ++writer) {
        FakeLaunch launch(races, {{1, 1, 1}, {96, 1, 1}});
        for (std::uint32_t w = 0; w < 3; ++w) launch.load({0, w}, 10 + w, same(64), kShared);
        launch.store({0, writer, 1}, 20, same(64), kShared);
        EXPECT_FALSE(launch.end().empty()) << writer;
    }
}

TEST_F(SharedRaces, AtomicsDoNotRaceWithAtomics) {
    FakeLaunch launch(races, kOneBlock);
    launch.atomic({0, 0}, 10, same(0), kShared);
    launch.atomic({0, 1}, 10, same(0), kShared);
    launch.barrier(0, 11);
    launch.load({0, 1}, 12, same(0), kShared);
    EXPECT_TRUE(launch.end().empty());
}

TEST_F(SharedRaces, APlainReadRacesWithAnEarlierAtomic) {
    FakeLaunch launch(races, kOneBlock);
    launch.atomic({0, 0, 1}, 10, same(0), kShared);
    launch.load({0, 1, 1}, 12, same(0), kShared);
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].other_access, vgpu::AccessKind::Atomic);
    EXPECT_EQ(findings[0].other_thread, (vgpu::Dim3{0, 0, 0}));
}

TEST_F(SharedRaces, APlainReadAfterAnOwnAtomicHasSeenTheAtomicsBefore) {
    FakeLaunch launch(races, kOneBlock);
    launch.atomic({0, 0, 1}, 10, same(0), kShared);
    launch.atomic({0, 1, 1}, 10, same(0), kShared);
    launch.load({0, 1, 1}, 12, same(0), kShared);
    EXPECT_TRUE(launch.end().empty());
}

TEST_F(SharedRaces, AtomicsOfOneBlockScopeRaceBetweenBlocks) {
    FakeLaunch launch(races, kTwoBlocks);
    launch.atomic({0, 0, 1}, 10, same(kData), {Space::Global, 4, Order::Relaxed, Scope::Cta});
    launch.atomic({1, 0, 1}, 10, same(kData), {Space::Global, 4, Order::Relaxed, Scope::Cta});
    EXPECT_EQ(launch.end().size(), 1U);
}

TEST_F(SharedRaces, ABarrierForOneWarpOrdersOnlyThatWarp) {
    for (const bool whole : {false, true}) {
        FakeLaunch launch(races, {{1, 1, 1}, {96, 1, 1}});
        for (std::uint32_t w = 0; w < 3; ++w) {
            launch.store({0, w}, 10, row(w * 128), kShared);
        }
        for (std::uint32_t w = 0; w < (whole ? 3U : 2U); ++w) {
            vgpu::BarrierEvent event{{0, w}, 11, 1, ~0U, ~0U};
            event.expected = whole ? 96 : 64;
            launch.arrive(event);
        }
        launch.complete(0, 1);
        launch.load({0, 0}, 12, row(128), kShared);
        launch.load({0, 0}, 13, row(256), kShared);
        const auto findings = launch.end();
        ASSERT_EQ(findings.size(), whole ? 0U : 1U);
        if (!whole) {
            EXPECT_EQ(findings[0].place.ptx_line, 13U);
        }
    }
}

TEST_F(SharedRaces, WhoOnlyArrivesLearnsNothing) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0}, 10, row(0), kShared);
    launch.store({0, 1}, 10, row(128), kShared);
    vgpu::BarrierEvent event{{0, 0}, 11, 1, ~0U, ~0U};
    event.expected = 64;
    event.waits = false;
    launch.arrive(event);
    event.warp.warp = 1;
    event.waits = true;
    launch.arrive(event);
    launch.complete(0, 1);
    launch.load({0, 1}, 12, row(0), kShared);
    EXPECT_TRUE(launch.end().empty());
    FakeLaunch again(races, kOneBlock);
    again.store({0, 1}, 10, row(128), kShared);
    event.warp.warp = 0;
    event.waits = false;
    again.arrive(event);
    event.warp.warp = 1;
    event.waits = true;
    again.arrive(event);
    again.complete(0, 1);
    again.load({0, 0}, 12, row(128), kShared);
    EXPECT_EQ(again.end().size(), 1U);
}

TEST_F(WarpRaces, LanesReadEachOtherWithoutSyncwarp) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0}, 10, row(0), kShared);
    launch.load({0, 0, 0xFFFF}, 11, row(0, 16), kShared);
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, FindingKind::WarpRace);
    EXPECT_EQ(findings[0].other_thread, (vgpu::Dim3{16, 0, 0}));
}

TEST_F(WarpRaces, SyncwarpOrdersItsLanes) {
    FakeLaunch launch(races, kOneBlock);
    launch.store({0, 0}, 10, row(0), kShared);
    launch.warp_sync({0, 0}, 11);
    launch.load({0, 0, 0xFFFF}, 12, row(0, 16), kShared);
    EXPECT_TRUE(launch.end().empty());
}

TEST_F(WarpRaces, SyncwarpOfSomeLanesOrdersThose) {
    for (const std::uint32_t mask : {0xFFU, 0xFU}) {
        FakeLaunch launch(races, kOneBlock);
        launch.store({0, 0, 0xFF}, 10, row(0), kShared);
        launch.warp_sync({0, 0, mask}, 11);
        launch.load({0, 0, 0xF}, 12, row(0, 4), kShared);
        EXPECT_EQ(launch.end().size(), mask == 0xF ? 1U : 0U);
    }
}

TEST_F(WarpRaces, VolatileDoesNotReplaceSyncwarp) {
    FakeLaunch launch(races, kOneBlock);
    const How access{Space::Shared, 4, Order::Volatile, Scope::System};
    launch.store({0, 0}, 10, row(0), access);
    launch.load({0, 0, 0xFFFF}, 11, row(0, 16), access);
    EXPECT_EQ(launch.end().size(), 1U);
}

TEST_F(WarpRaces, OneInstructionThatWritesOnePlaceTwiceIsAClassOfItsOwn) {
    FakeLaunch launch(races, kOneBlock);
    launch.store(
        {0, 0}, 10, [](std::uint32_t lane) { return lane / 2 * 4; }, kShared);
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, FindingKind::WriteConflict);
    EXPECT_EQ(findings[0].count, 16U);
}

TEST_F(WarpRaces, WritingOneValueTogetherIsHarmless) {
    for (const bool differ : {false, true}) {
        FakeLaunch launch(races, kTwoBlocks);
        const auto values = [=](std::uint32_t lane) { return differ ? lane : 7U; };
        launch.store_values({0, 0}, 10, same(kData), values);
        launch.store_values({1, 1}, 10, same(kData), values);
        EXPECT_EQ(launch.end().size(), differ ? 2U : 0U);
    }
}

TEST(SameValueWrites, AreReportedOnRequest) {
    Races races{RaceOptions{.same_value_writes = true}};
    races.allocated(kData, 256);
    FakeLaunch launch(races, kTwoBlocks);
    launch.store_values({0, 0}, 10, same(kData), same(7));
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, FindingKind::SameValueWrite);
}

TEST_F(GlobalRaces, BlocksOfOneLaunchAreNotOrdered) {
    FakeLaunch launch(races, kTwoBlocks);
    launch.store({0, 0}, 10, row(kData));
    launch.barrier(0, 11);
    launch.barrier(1, 11);
    launch.load({1, 0}, 12, row(kData));
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].block, (vgpu::Dim3{1, 0, 0}));
    EXPECT_EQ(findings[0].other_block, (vgpu::Dim3{0, 0, 0}));
    EXPECT_EQ(findings[0].allocation, kData);
}

TEST_F(GlobalRaces, LaunchesAreOrdered) {
    FakeLaunch first(races, kTwoBlocks);
    first.load({1, 0}, 9, row(kData));
    EXPECT_TRUE(first.end().empty());
    FakeLaunch second(races, kTwoBlocks);
    second.store({0, 0}, 10, row(kData));
    EXPECT_TRUE(second.end().empty());
    FakeLaunch third(races, kTwoBlocks);
    third.load({1, 1}, 11, row(kData));
    EXPECT_TRUE(third.end().empty());
}

TEST_F(GlobalRaces, UpdatingInPlaceIsNoRace) {
    FakeLaunch launch(races, {{8, 1, 1}, {256, 1, 1}});
    for (std::uint64_t b = 0; b < 8; ++b) {
        for (std::uint32_t w = 0; w < 8; ++w) {
            launch.load({b, w}, 10, row(kData, static_cast<std::int64_t>(b * 256 + w * 32 + 1)));
            launch.store({b, w}, 11, row(kData, static_cast<std::int64_t>(b * 256 + w * 32 + 1)));
        }
    }
    EXPECT_TRUE(launch.end().empty());
}

TEST_F(GlobalRaces, ReadingOneElementOfTheNeighboursPartIsFound) {
    FakeLaunch launch(races, {{8, 1, 1}, {256, 1, 1}});
    for (std::uint64_t b = 0; b < 8; ++b) {
        for (std::uint32_t w = 0; w < 8; ++w) {
            launch.load({b, w}, 10, row(kData, static_cast<std::int64_t>(b * 256 + w * 32 + 1)));
            launch.store({b, w}, 11, row(kData, static_cast<std::int64_t>(b * 256 + w * 32)));
        }
    }
    EXPECT_FALSE(launch.end().empty());
}

TEST_F(GlobalRaces, RowsOfTwoBlocksMayTouchEachOther) {
    for (const std::int64_t bytes : {1, 2, 4, 8, 12, 16}) {
        FakeLaunch launch(races, {{8, 1, 1}, {64, 1, 1}});
        const auto size = static_cast<std::uint32_t>(bytes == 12 ? 4 : bytes);
        for (std::uint64_t b = 0; b < 8; ++b) {
            for (std::uint32_t w = 0; w < 2; ++w) {
                launch.store({b, w, 0x1FFFFFF}, 10, row(kData, static_cast<std::int64_t>((b * 2 + w) * 25), bytes),
                             {Space::Global, size});
            }
        }
        EXPECT_TRUE(launch.end().empty()) << bytes;
    }
}

TEST_F(SharedRaces, EveryBarrierOfATreeIsNeeded) {
    // Level k stands between offsets 256 >> k and 128 >> k; dropping none is clean.
    for (int dropped = -1; dropped < 8; ++dropped) {
        FakeLaunch launch(races, {{1, 1, 1}, {256, 1, 1}});
        for (std::uint32_t w = 0; w < 8; ++w) launch.store({0, w}, 10, row(w * 128), kShared);
        int level = 0;
        for (std::uint32_t offset = 128; offset > 0; offset /= 2, ++level) {
            if (level != dropped) launch.barrier(0, 20);
            const std::uint32_t mask = offset >= 32 ? ~0U : (1U << offset) - 1;
            for (std::uint32_t w = 0; w * 32 < offset; ++w) {
                launch.load({0, w, mask}, 11, row(w * 128), kShared);
                launch.load({0, w, mask}, 12, row(w * 128, offset), kShared);
                launch.store({0, w, mask}, 13, row(w * 128), kShared);
            }
        }
        EXPECT_EQ(launch.end().empty(), dropped == -1) << dropped;
    }
}

}  // namespace
}  // namespace gradguard::observers::test
