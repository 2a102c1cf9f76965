// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

/// One thread (of 32) `victim` accesses `type` at base + offset; the others do nothing.
std::string lone_access(const std::string& access) {
    return ptx_module(".param .u64 base, .param .u32 victim", R"(
    .reg .pred %p;
    .reg .b32 %r<9>;
    .reg .b64 %b, %w<9>;
    .reg .f32 %f<5>;
    ld.param.u64 %b, [base];
    ld.param.u32 %r1, [victim];
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p, %r1, %r2;
    @%p bra $end;
)" + access + "\n$end:\n    ret;");
}

Finding fault(const std::string& access, Machine& machine, Address base, std::uint32_t victim = 5) {
    return fault_of(machine, lone_access(access), {{3}, {32}}, Arguments(base, victim));
}

/// What ptxas makes of it, too (release 13.0, seen in the machine code).
TEST(Memory, AnIndexedArrayIsTheAddressOfThatElement) {
    Machine machine;
    const Address out = machine.allocate(8);
    run(machine, ptx_module(".param .u64 out", R"(
    .reg .b32 %r<5>;
    .reg .b64 %o;
    .shared .align 8 .b32 words[64];
    .shared .align 8 .b8 bytes[64];
    ld.param.u64 %o, [out];
    mov.u32 %r1, words;
    mov.u32 %r2, words[3];
    sub.u32 %r3, %r2, %r1;
    mov.u32 %r1, bytes;
    mov.u32 %r2, bytes[3];
    sub.u32 %r4, %r2, %r1;
    st.global.v2.u32 [%o], {%r3, %r4};
    ret;)"),
        {{1}, {1}}, Arguments(out));
    EXPECT_EQ(download<std::uint32_t>(machine, out, 2), (std::vector<std::uint32_t>{12, 3}));
}

TEST(Memory, AReadBeyondTheEndNamesPlaceThreadAndAllocation) {
    Machine machine;
    const Address base = machine.allocate(100);
    const std::string ptx =
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 base)\n{\n.reg .b64 %b;\n"
        ".reg .b32 %r;\nld.param.u64 %b, [base];\n.loc 1 77 3\nld.global.u32 %r, [%b+100];\nret;\n}\n"
        ".file 1 \"some/kernel.cu\"\n";
    const Finding finding = fault_of(machine, ptx, {{1}, {32}}, Arguments(base));
    EXPECT_EQ(finding.kind, FindingKind::OutOfBounds);
    EXPECT_EQ(finding.place.kernel, "k");
    EXPECT_EQ(finding.place.ptx_file, "test.ptx");
    EXPECT_EQ(finding.place.ptx_line, 10U);
    EXPECT_EQ(finding.place.instruction, "ld.global.u32 %r, [%b+100];");
    EXPECT_EQ(finding.place.source_file, "some/kernel.cu");
    EXPECT_EQ(finding.place.source_line, 77U);
    EXPECT_EQ(finding.thread, (Dim3{0, 0, 0}));
    EXPECT_EQ(finding.address, base + 100);
    EXPECT_EQ(finding.allocation, base);
    EXPECT_EQ(finding.allocation_bytes, 100U);
    EXPECT_EQ(finding.access, AccessKind::Load);
    EXPECT_EQ(finding.access_bytes, 4U);
    ASSERT_EQ(machine.findings().size(), 1U);
    EXPECT_EQ(machine.findings()[0].message(), finding.message());
}

TEST(Memory, EveryKindOfBadAddressHasItsOwnKind) {
    const auto kind = [](const std::string& access, auto&& prepare) {
        Machine machine;
        const Address base = prepare(machine);
        const Finding finding = fault(access, machine, base);
        EXPECT_EQ(finding.thread, (Dim3{5, 0, 0}));
        return finding.kind;
    };
    const auto plain = [](Machine& machine) { return machine.allocate(64); };
    EXPECT_EQ(kind("st.global.u32 [%b+64], %r1;", plain), FindingKind::OutOfBounds);
    EXPECT_EQ(kind("st.global.u32 [%b+61], %r1;", plain), FindingKind::OutOfBounds);
    EXPECT_EQ(kind("ld.global.u32 %r3, [%b+-4];", plain), FindingKind::NoSuchAllocation);
    EXPECT_EQ(kind("ld.global.u32 %r3, [%b+2];", plain), FindingKind::Misaligned);
    EXPECT_EQ(kind("ld.global.v2.u32 {%r3, %r4}, [%b+4];", plain), FindingKind::Misaligned);
    EXPECT_EQ(kind("ld.global.u32 %r3, [0];", plain), FindingKind::NoSuchAllocation);
    EXPECT_EQ(kind("ld.u32 %r3, [%b];", [](Machine&) { return Address{16}; }), FindingKind::NoSuchAllocation);
    const auto freed = [](Machine& machine) {
        const Address address = machine.allocate(64);
        machine.allocate(64);
        machine.free(address);
        return address;
    };
    EXPECT_EQ(kind("ld.global.u32 %r3, [%b];", freed), FindingKind::UseAfterFree);
}

TEST(Memory, NeighbouringAllocationsAreNeverReachedByOverrunning) {
    Machine machine;
    std::vector<Address> addresses;
    for (int i = 0; i < 100; ++i) addresses.push_back(machine.allocate(4));
    for (const Address address : addresses) EXPECT_THROW(machine.host_pointer(address, 5), LaunchError);
    for (int k = 0; k < 34; ++k) {
        EXPECT_THROW(machine.host_pointer(addresses[50] + (std::uint64_t{4} << k), 4), LaunchError) << k;
    }
}

TEST(Memory, FaultsAreSticky) {
    Machine machine;
    const Address base = machine.allocate(64);
    fault("ld.global.u32 %r3, [%b+64];", machine, base);
    EXPECT_THROW(run(machine, lone_access(""), {{1}, {32}}, Arguments(base, 99U)), LaunchError);
    Machine fresh;
    EXPECT_NO_THROW(run(fresh, lone_access(""), {{1}, {32}}, Arguments(base, 99U)));
}

TEST(Memory, SharedMemoryIsBoundedByTheBlocksOwn) {
    const std::string declare = ".shared .align 8 .b8 box[64];\nmov.u32 %r3, box;\n";
    Machine first, second, third;
    EXPECT_EQ(fault(declare + "st.shared.u32 [%r3+64], %r1;", first, 0).kind, FindingKind::OutOfBounds);
    EXPECT_EQ(fault(declare + "st.shared.u32 [%r3+62], %r1;", second, 0).kind, FindingKind::OutOfBounds);
    const Finding finding = fault(declare + "ld.shared.u32 %r4, [box+2];", third, 0);
    EXPECT_EQ(finding.kind, FindingKind::Misaligned);
    EXPECT_EQ(finding.space, Space::Shared);
    EXPECT_EQ(finding.allocation_bytes, 64U);
}

TEST(Memory, ConstantsCanBeReadAndNotWritten) {
    const std::string globals = ".const .align 4 .u32 table[3] = {5, 6, 7};\n.global .align 8 .f64 half = 0.5;\n";
    const std::string body = R"(
    .reg .b32 %r<5>;
    .reg .b64 %w<5>;
    .reg .f64 %g;
    ld.param.u64 %w1, [out];
    ld.const.u32 %r1, [table+8];
    st.global.u32 [%w1], %r1;
    ld.global.f64 %g, [half];
    st.global.f64 [%w1+8], %g;
    mov.u64 %w2, table;
    cvta.const.u64 %w3, %w2;
)";
    Machine machine;
    const Address out = machine.allocate(16);
    const auto module = Module::load(ptx_module(".param .u64 out", body + "ret;", globals), "constants.ptx");
    machine.launch(*module, "k", {{1}, {1}}, Arguments(out).bytes());
    EXPECT_EQ(download<std::uint32_t>(machine, out, 1)[0], 7U);
    EXPECT_EQ(download<double>(machine, out, 2)[1], 0.5);
    EXPECT_EQ(download<std::uint32_t>(machine, machine.variable(*module, "table"), 3),
              (std::vector<std::uint32_t>{5, 6, 7}));
    EXPECT_THROW(machine.variable(*module, "chair"), LaunchError);
    EXPECT_EQ(fault_of(machine, ptx_module(".param .u64 out", body + "st.u32 [%w3], %r1;\nret;", globals), {{1}, {1}},
                       Arguments(out))
                  .kind,
              FindingKind::WriteToConstant);
}

/// Each of `n` threads loads with `type` from in + permuted index * stride and stores what it got.
std::string gather_module(const std::string& load, const std::string& store, int in_stride, int out_stride) {
    return ptx_module(".param .u64 in, .param .u64 out, .param .u64 index",
                      R"(
    .reg .b16 %h<9>;
    .reg .b32 %r<9>;
    .reg .b64 %w<12>, %d<5>;
    ld.param.u64 %w1, [in];
    ld.param.u64 %w2, [out];
    ld.param.u64 %w3, [index];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %w4, %r1, 4;
    add.u64 %w3, %w3, %w4;
    ld.global.nc.u32 %r2, [%w3];
    mul.wide.u32 %w5, %r2, )" +
                          std::to_string(in_stride) + ";\n    add.u64 %w5, %w5, %w1;\n    mul.wide.u32 %w6, %r1, " +
                          std::to_string(out_stride) + ";\n    add.u64 %w6, %w6, %w2;\n" + load + "\n" + store +
                          "\n    ret;");
}

class Gather : public testing::TestWithParam<VectorLevel> {};

TEST_P(Gather, LoadsAndStoresOfEverySizeAndPattern) {
    struct Case {
        const char* load;
        const char* store;
        int bytes;
    };
    const Case cases[] = {
        {"ld.global.u8 %r5, [%w5];", "st.global.u8 [%w6], %r5;", 1},
        {"ld.global.u16 %h1, [%w5];", "st.global.u16 [%w6], %h1;", 2},
        {"ld.global.b32 %r5, [%w5];", "st.global.b32 [%w6], %r5;", 4},
        {"ld.global.u64 %d1, [%w5];", "st.global.u64 [%w6], %d1;", 8},
        {"ld.global.v2.b32 {%r5, %r6}, [%w5];", "st.global.v2.b32 [%w6], {%r5, %r6};", 8},
        {"ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%w5];", "st.global.v4.b32 [%w6], {%r5, %r6, %r7, %r8};", 16},
        {"ld.global.v2.u64 {%d1, %d2}, [%w5];", "st.global.v2.u64 [%w6], {%d1, %d2};", 16},
        {"ld.global.v4.u16 {%h1, %h2, %h3, %h4}, [%w5];", "st.global.v4.u16 [%w6], {%h1, %h2, %h3, %h4};", 8},
        {"ld.u32 %r5, [%w5];", "st.u32 [%w6], %r5;", 4},
    };
    const auto indices = [](std::uint32_t threads, int pattern) {
        std::vector<std::uint32_t> result(threads);
        for (std::uint32_t i = 0; i < threads; ++i)
            result[i] = pattern == 0 ? i : pattern == 1 ? 3 : pattern == 2 ? threads - 1 - i : i * 7 % threads;
        return result;
    };
    for (const Case& one : cases) {
        for (const std::uint32_t threads : {64U, 45U}) {
            for (int pattern = 0; pattern < 4; ++pattern) {
                MachineOptions options;
                options.vector_level = GetParam();
                Machine machine(options);
                std::vector<std::uint8_t> data(threads * one.bytes);
                for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
                const auto index = indices(threads, pattern);
                const Address in = upload(machine, data), out = machine.allocate(data.size()),
                              list = upload(machine, index);
                run(machine, gather_module(one.load, one.store, one.bytes, one.bytes), {{1}, {threads}},
                    Arguments(in, out, list));
                const auto result = download<std::uint8_t>(machine, out, data.size());
                for (std::size_t i = 0; i < data.size(); ++i) {
                    const std::size_t source = index[i / one.bytes] * one.bytes + i % one.bytes;
                    ASSERT_EQ(result[i], data[source])
                        << one.load << " thread " << i / one.bytes << " pattern " << pattern;
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Levels, Gather, testing::ValuesIn(supported_vector_levels()),
                         [](const auto& level) { return std::string(name_of(level.param)); });

TEST(Memory, NarrowLoadsExtendToTheRegister) {
    const std::string body = R"(
    .reg .b16 %h;
    .reg .b32 %r;
    .reg .b64 %i, %o, %d;
    ld.param.u64 %i, [in];
    ld.param.u64 %o, [out];
    ld.global.s8 %r, [%i];
    st.global.u32 [%o], %r;
    ld.global.u8 %r, [%i];
    st.global.u32 [%o+4], %r;
    ld.global.s16 %d, [%i];
    st.global.u64 [%o+8], %d;
    ld.global.u32 %d, [%i];
    st.global.u64 [%o+16], %d;
    ld.global.s32 %d, [%i];
    st.global.u32 [%o+24], %d;
    ld.global.s8 %h, [%i];
    cvt.u32.u16 %r, %h;
    st.global.u32 [%o+28], %r;
    ret;
)";
    Machine machine;
    const Address in = upload(machine, std::vector<std::uint32_t>{0xFFFEFDFC}), out = machine.allocate(32);
    run(machine, ptx_module(".param .u64 in, .param .u64 out", body), {{1}, {1}}, Arguments(in, out));
    const auto words = download<std::uint32_t>(machine, out, 8);
    EXPECT_EQ(words, (std::vector<std::uint32_t>{0xFFFFFFFC, 0xFC, 0xFFFFFDFC, 0xFFFFFFFF, 0xFFFEFDFC, 0, 0xFFFEFDFC,
                                                 0xFFFC}));
}

TEST(Memory, GenericAddressesKnowSharedMemory) {
    const std::string body = R"(
    .shared .align 4 .b8 box[128];
    .reg .b32 %r<5>;
    .reg .b64 %o, %w<6>;
    ld.param.u64 %o, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %w1, %r1, 4;
    add.u64 %o, %o, %w1;
    mov.u64 %w2, box;
    cvta.shared.u64 %w3, %w2;
    add.u64 %w3, %w3, %w1;
    st.u32 [%w3], %r1;
    cvta.to.shared.u64 %w4, %w3;
    ld.shared.u32 %r2, [%w4];
    add.u32 %r2, %r2, 1;
    st.u32 [%o], %r2;
    ret;
)";
    Machine machine;
    const Address out = machine.allocate(128);
    const LaunchStats stats = run(machine, ptx_module(".param .u64 out", body), {{1}, {32}}, Arguments(out));
    for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(download<std::uint32_t>(machine, out, 32)[i], i + 1);
    EXPECT_EQ(stats.counters.global_bytes_written, 128U);
}

TEST(Memory, MappedHostMemoryIsUsedInPlaceAndKeepsItsAlignment) {
    alignas(256) std::uint32_t words[64] = {};
    Machine machine;
    const Address whole = machine.map(words, sizeof(words));
    const Address odd = machine.map(words + 1, 8);
    EXPECT_EQ(machine.host_pointer(odd, 4), reinterpret_cast<std::byte*>(words + 1));
    EXPECT_EQ(odd % 8, 4U);
    run(machine, lone_access("st.global.u32 [%b+12], %r1;"), {{1}, {32}}, Arguments(whole, 5U));
    EXPECT_EQ(words[3], 5U);
    EXPECT_EQ(machine.allocated_bytes(), 0U);
    EXPECT_EQ(machine.live_allocations(), 2U);
    EXPECT_EQ(fault("st.global.u64 [%b], %b;", machine, odd).kind, FindingKind::Misaligned);
    machine.free(whole);
    EXPECT_THROW(machine.free(whole), LaunchError);
    EXPECT_THROW(machine.free(odd + 4), LaunchError);
}

TEST(Memory, HostMemoryMappedInPlaceHasItsOwnAddressAndDeviceMemoryLiesBeyond) {
    MachineOptions options;
    options.host_addresses = true;
    Machine machine(options);
    std::uint32_t words[4] = {1, 2, 3, 4};  // on the stack: far beyond 2^40
    const Address address = machine.map_in_place(words, sizeof(words));
    EXPECT_EQ(address, reinterpret_cast<std::uintptr_t>(words));
    EXPECT_GE(machine.allocate(4), Address{1} << 48);
    EXPECT_EQ(download<std::uint32_t>(machine, address + 4, 1), std::vector<std::uint32_t>{2});
    EXPECT_THROW(machine.map_in_place(words, 4), LaunchError);  // one at a time so near to each other
    machine.free(address);
    EXPECT_EQ(machine.map_in_place(words + 1, 8), address + 4);
    EXPECT_THROW(Machine().map_in_place(words, 4), LaunchError);
}

TEST(Memory, FreshMemoryHoldsPoisonThatDiffersByAllocationAndSeed) {
    std::set<std::vector<std::uint32_t>> seen;
    for (const std::uint64_t seed : {0, 1, 2}) {
        MachineOptions options;
        options.seed = seed;
        Machine machine(options);
        for (int i = 0; i < 3; ++i) seen.insert(download<std::uint32_t>(machine, machine.allocate(64), 16));
    }
    EXPECT_EQ(seen.size(), 9U);
}

TEST(Memory, FreshSharedMemoryHoldsPoisonThatDiffersByBlockAndSeed) {
    const std::string body = R"(
    .shared .align 4 .b32 box;
    .reg .b32 %r<5>;
    .reg .b64 %o, %w;
    ld.param.u64 %o, [out];
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %w, %r1, 4;
    add.u64 %o, %o, %w;
    ld.shared.u32 %r2, [box];
    st.global.u32 [%o], %r2;
    ret;
)";
    std::set<std::uint32_t> seen;
    for (const std::uint64_t seed : {0, 1, 2}) {
        MachineOptions options;
        options.seed = seed;
        Machine machine(options);
        const Address out = machine.allocate(16);
        run(machine, ptx_module(".param .u64 out", body), {{4}, {1}}, Arguments(out));
        for (const std::uint32_t word : download<std::uint32_t>(machine, out, 4)) seen.insert(word);
    }
    EXPECT_EQ(seen.size(), 12U);
}

}  // namespace
}  // namespace gradguard::vgpu::test
