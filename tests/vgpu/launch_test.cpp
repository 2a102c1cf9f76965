// SPDX-License-Identifier: Apache-2.0
// Configuration, limits, special registers, arguments, counters.
#include <gtest/gtest.h>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

std::string refusal(Machine& machine, const std::string& ptx, const LaunchConfig& config, const Arguments& arguments) {
    try {
        run(machine, ptx, config, arguments);
    } catch (const LaunchError& error) {
        EXPECT_EQ(error.finding(), nullptr);
        return error.what();
    }
    return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Launch, RefusesWhatIsBeyondALimitAndNamesIt) {
    MachineOptions options;
    options.limits.max_threads_per_block = 256;
    options.limits.max_block = {128, 64, 8};
    options.limits.max_grid = {10, 5, 2};
    options.limits.max_shared_bytes_per_block = 1000;
    Machine machine(options);
    const std::string empty = ptx_module("", "ret;");
    EXPECT_TRUE(contains(refusal(machine, empty, {{11}, {1}}, Arguments()), "grid 11x1x1, the limit is 10x5x2"));
    EXPECT_TRUE(contains(refusal(machine, empty, {{1}, {129}}, Arguments()), "block 129x1x1"));
    EXPECT_TRUE(
        contains(refusal(machine, empty, {{1}, {128, 4}}, Arguments()), "512 threads per block, the limit is 256"));
    EXPECT_TRUE(contains(refusal(machine, empty, {{1}, {1}, 1001}, Arguments()),
                         "1001 bytes of shared memory, the limit is 1000"));
    EXPECT_TRUE(contains(refusal(machine, empty, {{0}, {1}}, Arguments()), "must not be empty"));
    EXPECT_TRUE(
        contains(refusal(machine, empty, {{1}, {1}}, Arguments(1)), "4 bytes of arguments, the kernel takes 0"));
    EXPECT_TRUE(contains(
        refusal(machine, ".version 9.0\n.target sm_80\n.entry k()\n.maxntid 64\n{\nret;\n}", {{1}, {65}}, Arguments()),
        "the kernel allows 64"));
    EXPECT_TRUE(contains(
        refusal(machine, ".version 9.0\n.target sm_80\n.entry k()\n.reqntid 64\n{\nret;\n}", {{1}, {32}}, Arguments()),
        "the kernel requires 64x1x1"));
    EXPECT_TRUE(
        contains(refusal(machine, ".version 9.0\n.target sm_80\n.entry other()\n{\nret;\n}", {{1}, {32}}, Arguments()),
                 "no entry 'k'"));
    EXPECT_EQ(refusal(machine, empty, {{10, 5, 2}, {128, 2}, 1000}, Arguments()), "")
        << "the limits themselves are granted, and a refusal is not sticky";
}

TEST(Launch, MemoryIsLimited) {
    MachineOptions options;
    options.limits.max_memory_bytes = 1000;
    Machine machine(options);
    const Address first = machine.allocate(600);
    EXPECT_THROW(machine.allocate(401), LaunchError);
    machine.free(first);
    EXPECT_NO_THROW(machine.allocate(1000));
    EXPECT_EQ(machine.allocated_bytes(), 1000U);
}

TEST(Launch, SpecialRegistersDescribeTheThread) {
    // Words: tid, ntid, ctaid, nctaid (x y z each), laneid, warpid, nwarpid.
    std::string body = ".reg .b32 %r<30>;\n.reg .b64 %o, %w;\nld.param.u64 %o, [out];\n";
    int number = 0;
    for (const char* name : {"tid", "ntid", "ctaid", "nctaid"}) {
        for (const char* axis : {"x", "y", "z"})
            body += "mov.u32 %r" + std::to_string(number++) + ", %" + name + "." + axis + ";\n";
    }
    body += "mov.u32 %r12, %laneid;\nmov.u32 %r13, %warpid;\nmov.u32 %r14, %nwarpid;\nmov.u32 %r15, %lanemask_lt;\n";
    body += R"(
    mad.lo.u32 %r20, %r8, %r10, %r7;
    mad.lo.u32 %r20, %r20, %r9, %r6;
    mad.lo.u32 %r21, %r2, %r4, %r1;
    mad.lo.u32 %r21, %r21, %r3, %r0;
    mad.lo.u32 %r20, %r20, 60, %r21;
    mul.wide.u32 %w, %r20, 64;
    add.u64 %o, %o, %w;
)";
    for (int i = 0; i < 16; ++i)
        body += "st.global.u32 [%o+" + std::to_string(4 * i) + "], %r" + std::to_string(i) + ";\n";
    Machine machine;
    const Dim3 grid{2, 3, 2}, block{5, 4, 3};
    const Address out = machine.allocate(64 * 60 * 12);
    run(machine, ptx_module(".param .u64 out", body + "ret;"), {grid, block}, Arguments(out));
    const auto words = download<std::uint32_t>(machine, out, 16 * 60 * 12);
    for (std::uint32_t b = 0; b < 12; ++b) {
        for (std::uint32_t t = 0; t < 60; ++t) {
            const std::uint32_t* w = &words[(b * 60 + t) * 16];
            const std::vector<std::uint32_t> got(w, w + 16);
            const std::vector<std::uint32_t> wanted = {
                t % 5, t / 5 % 4, t / 20, 5, 4,      3,      b % 2, b / 2 % 3,
                b / 6, 2,         3,      2, t % 32, t / 32, 2,     (1U << (t % 32)) - 1};
            ASSERT_EQ(got, wanted) << "block " << b << " thread " << t;
        }
    }
}

TEST(Launch, ParametersAreReadAtTheirOffsets) {
    const std::string body = R"(
    .reg .b16 %h;
    .reg .b32 %r<5>;
    .reg .b64 %o, %d;
    .reg .f32 %f<5>;
    ld.param.u64 %o, [out];
    ld.param.s8 %r1, [small];
    st.global.u32 [%o], %r1;
    ld.param.u16 %r2, [half];
    st.global.u32 [%o+4], %r2;
    ld.param.v2.f32 {%f1, %f2}, [pair+8];
    st.global.f32 [%o+8], %f1;
    st.global.f32 [%o+12], %f2;
    ld.param.u32 %d, [pair];
    st.global.u64 [%o+16], %d;
    ret;
)";
    struct Pair {
        std::uint32_t first, second;
        float x, y;
    };
    Machine machine;
    const Address out = machine.allocate(24);
    std::vector<std::byte> block(40);
    const std::int8_t small = -2;
    const std::uint16_t half = 0xBEEF;
    const Pair pair{0xDEADBEEF, 2, 1.5F, -2.5F};
    std::memcpy(block.data(), &out, 8);
    std::memcpy(block.data() + 8, &small, 1);
    std::memcpy(block.data() + 10, &half, 2);
    std::memcpy(block.data() + 16, &pair, sizeof(pair));
    block.resize(32);
    const auto module = Module::load(
        ptx_module(".param .u64 out, .param .s8 small, .param .u16 half, .param .align 8 .b8 pair[16]", body),
        "params.ptx");
    machine.launch(*module, "k", {{1}, {1}}, block);
    EXPECT_EQ(download<std::uint32_t>(machine, out, 6),
              (std::vector<std::uint32_t>{0xFFFFFFFE, 0xBEEF, std::bit_cast<std::uint32_t>(1.5F),
                                          std::bit_cast<std::uint32_t>(-2.5F), 0xDEADBEEF, 0}));
}

TEST(Launch, DynamicSharedMemoryFollowsTheStaticPart) {
    const std::string globals = ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .b8 fixed[20];\n";
    const std::string body = R"(
    .reg .b32 %r<5>;
    .reg .b64 %o;
    ld.param.u64 %o, [out];
    mov.u32 %r1, fixed;
    mov.u32 %r2, dynamic;
    st.global.u32 [%o], %r1;
    st.global.u32 [%o+4], %r2;
    st.shared.u32 [%r2+60], %r1;
    ret;
)";
    Machine machine;
    const Address out = machine.allocate(8);
    run(machine, ptx_module(".param .u64 out", body, globals), {{1}, {1}, 64}, Arguments(out));
    EXPECT_EQ(download<std::uint32_t>(machine, out, 2), (std::vector<std::uint32_t>{0, 32}));
    EXPECT_EQ(fault_of(machine, ptx_module(".param .u64 out", body, globals), {{1}, {1}, 60}, Arguments(out)).kind,
              FindingKind::OutOfBounds);
}

TEST(Launch, CountersCountWhatRan) {
    const std::string body = R"(
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %o, %w;
    ld.param.u64 %o, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %w, %r1, 4;
    add.u64 %o, %o, %w;
    setp.lt.u32 %p, %r1, 10;
    @%p ld.global.u32 %r2, [%o];
    @!%p st.global.u32 [%o], %r1;
    bar.sync 0;
    ret;
)";
    MachineOptions options;
    options.count_by_kind = true;
    Machine machine(options);
    const Address out = upload(machine, std::vector<std::uint32_t>(40, 1));
    const LaunchStats stats = run(machine, ptx_module(".param .u64 out", body), {{3}, {40}}, Arguments(out));
    EXPECT_EQ(stats.counters.launches, 1U);
    EXPECT_EQ(stats.counters.blocks, 3U);
    EXPECT_EQ(stats.counters.warp_instructions, 3U * 2 * 9);
    EXPECT_EQ(stats.counters.lane_instructions, 3U * (40 * 7 + 10 + 30));
    EXPECT_EQ(stats.counters.global_bytes_read, 3U * 40);
    EXPECT_EQ(stats.counters.global_bytes_written, 3U * 120);
    EXPECT_EQ(stats.counters.barriers, 3U);
    std::uint64_t lanes = 0;
    for (const InstructionCount& count : stats.instructions_by_kind) {
        lanes += count.lane_instructions;
        if (count.name == "ld.global.u32") {
            EXPECT_EQ(count.lane_instructions, 30U);
        }
        if (count.name == "ld.param.u64") {
            EXPECT_EQ(count.lane_instructions, 120U);
        }
    }
    EXPECT_EQ(lanes, stats.counters.lane_instructions);
    EXPECT_EQ(stats.instructions_by_kind.size(), 9U);
    run(machine, ptx_module("", "ret;"), {{1}, {1}}, Arguments());
    EXPECT_EQ(machine.counters().launches, 2U);
    EXPECT_EQ(machine.counters().lane_instructions, lanes + 1);
}

TEST(Launch, RefusesAVectorLevelThatTheProcessorLacks) {
    for (const VectorLevel level : {VectorLevel::Portable, VectorLevel::Avx2, VectorLevel::Avx512}) {
        MachineOptions options;
        options.vector_level = level;
        if (is_supported(level)) {
            EXPECT_EQ(Machine(options).vector_level(), level);
        } else {
            EXPECT_THROW(Machine{options}, std::invalid_argument);
        }
    }
    EXPECT_NE(Machine().vector_level(), VectorLevel::Best);
}

}  // namespace
}  // namespace gradguard::vgpu::test
