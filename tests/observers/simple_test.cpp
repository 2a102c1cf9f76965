// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>

#include "harness/observers/registry.h"
#include "tests/observers/fake_launch.h"

/// Inputs, leaks, barriers, counts and the registry.
namespace gradguard::observers::test {
namespace {

using vgpu::FindingKind;

constexpr vgpu::Address kData = allocation(0);
constexpr vgpu::LaunchConfig kOneBlock{{1, 1, 1}, {64, 1, 1}};

TEST(Inputs, AWriteIntoAMarkedRangeIsFound) {
    Inputs inputs;
    inputs.mark_read_only(kData + 64, 64);
    FakeLaunch launch(inputs, kOneBlock);
    launch.load({0, 0}, 9, row(kData));
    launch.store({0, 0, 0xFFFF}, 10, row(kData));
    launch.store({0, 0}, 11, row(kData));
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, FindingKind::WriteToInput);
    EXPECT_EQ(findings[0].place.ptx_line, 11U);
    EXPECT_EQ(findings[0].thread.x, 16U);
    EXPECT_EQ(findings[0].count, 16U);
    EXPECT_EQ(findings[0].allocation, kData + 64);
}

TEST(Inputs, AVectorThatReachesIntoTheRangeIsFound) {
    Inputs inputs;
    inputs.mark_read_only(kData + 8, 4);
    FakeLaunch launch(inputs, kOneBlock);
    launch.store({0, 0, 1}, 10, same(kData), {vgpu::Space::Global, 16});
    EXPECT_EQ(launch.end().size(), 1U);
}

TEST(Inputs, UnmarkedMemoryMayBeWritten) {
    Inputs inputs;
    inputs.mark_read_only(kData, 64);
    inputs.mark_read_only(kData, 64);
    inputs.unmark(kData, 64);
    FakeLaunch marked(inputs, kOneBlock);
    marked.store({0, 0}, 10, row(kData));
    EXPECT_EQ(marked.end().size(), 1U);
    inputs.unmark(kData, 64);
    FakeLaunch free(inputs, kOneBlock);
    free.store({0, 0}, 10, row(kData));
    EXPECT_TRUE(free.end().empty());
}

TEST(Inputs, SharedMemoryIsNoInput) {
    Inputs inputs;
    inputs.mark_read_only(0, 4096);
    FakeLaunch launch(inputs, kOneBlock);
    launch.store({0, 0}, 10, row(0), kShared);
    EXPECT_TRUE(launch.end().empty());
}

// Six ways to leave a buffer behind, and their clean twins: what is allocated, what is freed, in which order.
struct Life {
    std::vector<int> steps;  ///< n: allocation n is made; -n: it is freed.
    std::size_t leaks;
};

TEST(Leaks, AreTheBuffersThatNobodyFreed) {
    const std::vector<Life> lives{{{1}, 1},           {{1, -1}, 0},
                                  {{1, 2, -1}, 1},    {{1, 2, -1, -2}, 0},
                                  {{1, 2, 3, -2}, 2}, {{1, 2, 3, -2, -1, -3}, 0},
                                  {{1, -1, 2}, 1},    {{1, -1, 2, -2}, 0},
                                  {{2, 1, -2}, 1},    {{2, 1, -1, -2}, 0},
                                  {{1, 2, -2, 3}, 2}, {{1, 2, -2, 3, -3, -1}, 0}};
    for (const Life& life : lives) {
        Leaks leaks;
        for (const int step : life.steps) {
            if (step > 0)
                leaks.allocated(allocation(static_cast<std::uint64_t>(step)), 100U * static_cast<unsigned>(step));
            else
                leaks.freed(allocation(static_cast<std::uint64_t>(-step)));
        }
        const auto findings = leaks.final_findings();
        ASSERT_EQ(findings.size(), life.leaks) << testing::PrintToString(life.steps);
        for (const vgpu::Finding& finding : findings) {
            EXPECT_EQ(finding.kind, FindingKind::Leak);
            EXPECT_NE(finding.allocation_bytes, 0U);
        }
    }
}

TEST(Leaks, VariablesOfModulesAreNoLeaks) {
    Leaks leaks;
    leaks.known(kData, 64);
    EXPECT_TRUE(leaks.final_findings().empty());
}

TEST(Barriers, ThreadCountsThatDisagreeAreFound) {
    for (const std::uint32_t other : {64U, 32U}) {
        Barriers barriers;
        FakeLaunch launch(barriers, kOneBlock);
        vgpu::BarrierEvent event{{0, 0}, 10, 1, ~0U, ~0U};
        event.expected = 64;
        launch.arrive(event);
        event.warp.warp = 1;
        event.instruction = 20;
        event.expected = other;
        launch.arrive(event);
        const auto findings = launch.end();
        ASSERT_EQ(findings.size(), other == 64 ? 0U : 1U);
        if (other == 64) continue;
        EXPECT_EQ(findings[0].kind, FindingKind::BarrierMismatch);
        EXPECT_EQ(findings[0].place.ptx_line, 20U);
        EXPECT_EQ(findings[0].thread.x, 32U);
        EXPECT_EQ(findings[0].other->ptx_line, 10U);
    }
}

TEST(Barriers, OneBarrierOfTheBlockHasOnePlaceInEachPhase) {
    Barriers barriers;
    FakeLaunch launch(barriers, kOneBlock);
    launch.barrier(0, 10);
    launch.barrier(0, 20);
    EXPECT_TRUE(launch.end().empty());
    FakeLaunch two(barriers, kOneBlock);
    two.arrive({{0, 0}, 10, 0, ~0U, ~0U});
    two.arrive({{0, 1}, 20, 0, ~0U, ~0U});
    EXPECT_EQ(two.end().size(), 1U);
}

TEST(Barriers, NamedBarriersWithACountMayBeReachedAtDifferentPlaces) {
    Barriers barriers;
    FakeLaunch launch(barriers, kOneBlock);
    for (std::uint32_t w = 0; w < 2; ++w) {
        vgpu::BarrierEvent event{{0, w}, 10 + w, 1, ~0U, ~0U};
        event.expected = 64;
        event.waits = w == 0;
        launch.arrive(event);
    }
    EXPECT_TRUE(launch.end().empty());
}

TEST(Counts, SectorsAreThoseThatAWarpTouches) {
    struct Case {
        FakeLaunch::Addresses addresses;
        std::uint32_t bytes;
        std::uint64_t sectors;
    };
    for (const auto& [addresses, bytes, sectors] : {Case{row(kData), 4, 4},           // in a row
                                                    Case{row(kData, 1), 4, 5},        // not aligned to a sector
                                                    Case{row(kData, 0, 16), 16, 16},  // vectors
                                                    Case{same(kData), 4, 1},          // all the same
                                                    Case{row(kData, 0, 128), 4, 32},  // one for each lane
                                                    Case{row(kData, 0, 8), 4, 8},     // every other word
                                                    Case{row(kData, 0, 2), 2, 2}}) {
        Counts counts;
        FakeLaunch launch(counts, kOneBlock);
        launch.load({0, 0}, 10, addresses, {vgpu::Space::Global, bytes});
        launch.end();
        EXPECT_EQ(counts.totals().global_reads.sectors, sectors);
        EXPECT_EQ(counts.totals().global_reads.bytes, 32U * bytes);
        EXPECT_EQ(counts.totals().global_writes.bytes, 0U);
    }
}

TEST(Counts, AtomicsReadAndWrite) {
    Counts counts;
    FakeLaunch launch(counts, kOneBlock);
    launch.atomic({0, 0, 3}, 10, same(kData));
    launch.store({0, 0, 1}, 11, same(0), kShared);
    launch.end();
    EXPECT_EQ(counts.totals().atomics, 1U);
    EXPECT_EQ(counts.totals().global_reads.bytes, 8U);
    EXPECT_EQ(counts.totals().global_writes.bytes, 8U);
    EXPECT_EQ(counts.totals().shared_writes.bytes, 4U);
}

TEST(Counts, ABranchDivergesWhenLanesDisagree) {
    Counts counts;
    for (const std::uint32_t taken : {0U, 0xFFU, 0xFU, 0xFF00U}) counts.branch({{0, 0}, 10, 0xFF, taken});
    EXPECT_EQ(counts.totals().branches, 4U);
    EXPECT_EQ(counts.totals().divergent_branches, 1U);
}

std::vector<std::string> names_of(std::string_view names) {
    std::vector<std::string> result;
    for (const auto& detector : make_observers(names)) result.emplace_back(detector->name());
    return result;
}

TEST(Registry, NamesSelectObservers) {
    EXPECT_TRUE(names_of("none").empty());
    EXPECT_EQ(names_of("init"), std::vector<std::string>{"init"});
    EXPECT_EQ(names_of("counts,bounds"), (std::vector<std::string>{"counts", "bounds"}));
    EXPECT_EQ(names_of("shared-races"), std::vector<std::string>{"shared-races"});
    EXPECT_EQ(names_of("global-races,init,shared-races"), (std::vector<std::string>{"init", "races"}));
    EXPECT_EQ(names_of("all").size() + 1, observer_names().size());
}

TEST(Registry, UnknownAndRepeatedNamesAreRefused) {
    EXPECT_THROW(make_observers("memcheck"), std::invalid_argument);
    EXPECT_THROW(make_observers(""), std::invalid_argument);
    EXPECT_THROW(make_observers("init,"), std::invalid_argument);
    EXPECT_THROW(make_observers("init,init"), std::invalid_argument);
    EXPECT_THROW(make_observers("all,init"), std::invalid_argument);
}

TEST(Registry, AnObserverThatSawNothingIsNamed) {
    std::vector<Checked> total;
    add_checked(total, std::vector<Checked>{{"init", {{"reads", 0}}}, {"bounds", {{"accesses", 3}}}});
    add_checked(total, std::vector<Checked>{{"bounds", {{"accesses", 0}, {"more", 0}}}});
    EXPECT_EQ(checked_nothing(total), std::vector<std::string>{"init"});
    add_checked(total, std::vector<Checked>{{"init", {{"reads", 1}}}});
    EXPECT_TRUE(checked_nothing(total).empty());
}

}  // namespace
}  // namespace gradguard::observers::test
