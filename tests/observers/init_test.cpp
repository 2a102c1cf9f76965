// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "harness/observers/init.h"
#include "tests/observers/fake_launch.h"

namespace gradguard::observers::test {
namespace {

constexpr vgpu::Address kData = allocation(0);
constexpr std::uint64_t kBytes = 10'000;
constexpr vgpu::LaunchConfig kOneBlock{{1, 1, 1}, {64, 1, 1}};

struct InitTest : testing::Test {
    InitTest() { init.allocated(kData, kBytes); }
    Init init;
};

TEST_F(InitTest, ReadingWhatNobodyWroteIsFound) {
    FakeLaunch launch(init, kOneBlock);
    launch.load({0, 1, 0xF0}, 10, row(kData));
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, vgpu::FindingKind::UninitializedRead);
    EXPECT_EQ(findings[0].place.ptx_line, 10U);
    EXPECT_EQ(findings[0].thread, (vgpu::Dim3{36, 0, 0}));
    EXPECT_EQ(findings[0].address, kData + 16);
    EXPECT_EQ(findings[0].count, 4U);
    EXPECT_EQ(findings[0].allocation, kData);
}

TEST_F(InitTest, WhatTheHostWroteIsDefined) {
    init.host_wrote(kData, 4096 + 128);
    FakeLaunch launch(init, kOneBlock);
    launch.load({0, 0}, 10, row(kData + 4096));
    EXPECT_TRUE(launch.end().empty());
    FakeLaunch beyond(init, kOneBlock);
    beyond.load({0, 0}, 10, row(kData + 4096, 1));
    const auto findings = beyond.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].address, kData + 4096 + 128);
    EXPECT_EQ(findings[0].thread.x, 31U);
}

TEST_F(InitTest, WhatAKernelWroteIsDefinedInLaterLaunches) {
    FakeLaunch writer(init, kOneBlock);
    writer.store({0, 0}, 10, row(kData));
    EXPECT_TRUE(writer.end().empty());
    FakeLaunch reader(init, kOneBlock);
    reader.load({0, 1}, 10, row(kData));
    EXPECT_TRUE(reader.end().empty());
}

TEST_F(InitTest, FreeingForgets) {
    init.host_wrote(kData, kBytes);
    init.freed(kData);
    init.allocated(kData, kBytes);
    FakeLaunch launch(init, kOneBlock);
    launch.load({0, 0}, 10, row(kData));
    EXPECT_EQ(launch.end().size(), 1U);
}

TEST_F(InitTest, SharedMemoryIsFreshInEachBlock) {
    FakeLaunch launch(init, {{2, 1, 1}, {64, 1, 1}});
    launch.store({0, 0}, 10, row(0), kShared);
    launch.load({0, 1}, 11, row(0), kShared);
    launch.load({1, 1}, 12, row(0), kShared);
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].place.ptx_line, 12U);
    EXPECT_EQ(findings[0].space, vgpu::Space::Shared);
}

TEST_F(InitTest, SharedMemoryIsFreshInEachLaunch) {
    FakeLaunch first(init, kOneBlock);
    first.store({0, 0}, 10, row(0), kShared);
    EXPECT_TRUE(first.end().empty());
    FakeLaunch second(init, kOneBlock);
    second.load({0, 0}, 11, row(0), kShared);
    EXPECT_EQ(second.end().size(), 1U);
}

TEST_F(InitTest, OneUndefinedByteOfAWordIsEnough) {
    FakeLaunch launch(init, kOneBlock);
    for (std::uint32_t byte = 0; byte < 3; ++byte)
        launch.store({0, 0, 1}, 10, same(kData + byte), {vgpu::Space::Global, 1});
    launch.load({0, 0, 1}, 11, same(kData), {vgpu::Space::Global, 2});
    launch.load({0, 0, 1}, 12, same(kData));
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].place.ptx_line, 12U);
    EXPECT_EQ(findings[0].address, kData + 3);
}

TEST_F(InitTest, AtomicsReadAndDefine) {
    FakeLaunch launch(init, kOneBlock);
    launch.atomic({0, 0, 1}, 10, same(kData));
    launch.atomic({0, 1, 1}, 11, same(kData));
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].place.ptx_line, 10U);
}

TEST_F(InitTest, GenericAddressesKnowTheirSpace) {
    FakeLaunch launch(init, kOneBlock);
    init.host_wrote(kData, 256);
    const auto mixed = [](std::uint32_t lane) {
        return lane % 2 == 0 ? kData + lane * 4 : (vgpu::exec::kSharedWindow << vgpu::exec::kOffsetBits) + lane * 4;
    };
    launch.store({0, 0, 0x55555557}, 9, mixed, {vgpu::Space::Generic});
    launch.load({0, 0}, 10, mixed, {vgpu::Space::Generic});
    const auto findings = launch.end();
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].space, vgpu::Space::Shared);
    EXPECT_EQ(findings[0].address, 12U);
    EXPECT_EQ(findings[0].count, 15U);
}

TEST_F(InitTest, MemoryItWasNotToldOfIsNotItsBusiness) {
    FakeLaunch launch(init, kOneBlock);
    launch.load({0, 0}, 10, row(allocation(99)));
    EXPECT_TRUE(launch.end().empty());
}

TEST(DefinedBytes, CountsAcrossWordsAndPages) {
    DefinedBytes bytes(9000);
    bytes.define(60, 8);
    EXPECT_TRUE(bytes.is_defined(60, 8));
    EXPECT_EQ(bytes.first_undefined(59, 2), 59U);
    EXPECT_EQ(bytes.first_undefined(60, 9), 68U);
    bytes.define(0, 9000);
    bytes.define(10, 20);
    EXPECT_TRUE(bytes.is_defined(0, 512));
    EXPECT_TRUE(bytes.is_defined(8900, 100));
    bytes.reset(9000);
    EXPECT_FALSE(bytes.is_defined(8999, 1));
}

}  // namespace
}  // namespace gradguard::observers::test
