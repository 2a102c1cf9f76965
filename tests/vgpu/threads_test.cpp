// SPDX-License-Identifier: Apache-2.0
// Machines are independent of each other and may share a module. That nothing is shared behind their backs is for the
// thread sanitizer to say (preset tsan).
#include <gtest/gtest.h>

#include <thread>

#include "kernels/ptx/embedded.h"
#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

/// Each thread adds its number to its element, in shared memory on the way.
std::string body() {
    return R"(
    .shared .align 4 .b32 cells[64];
    .reg .b32 %i, %x, %cell;
    .reg .b64 %o, %wide;
    ld.param.u64 %o, [out];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %wide, %i, 4;
    add.s64 %o, %o, %wide;
    ld.global.u32 %x, [%o];
    mov.u32 %cell, cells;
    mad.lo.s32 %cell, %i, 4, %cell;
    st.shared.u32 [%cell], %x;
    bar.sync 0;
    ld.shared.u32 %x, [%cell];
    add.s32 %x, %x, %i;
    st.global.u32 [%o], %x;
    ret;
)";
}

std::vector<std::uint32_t> run_on_own_machine(const Module& module, std::uint64_t seed) {
    MachineOptions options;
    options.seed = seed;
    Machine machine(options);
    const Address out = upload(machine, std::vector<std::uint32_t>(64, 100));
    machine.launch(module, "k", {{1}, {64}}, Arguments(out).bytes());
    return download<std::uint32_t>(machine, out, 64);
}

TEST(Threads, MachinesOfSeveralThreadsShareAModule) {
    const auto module = Module::load(ptx_module(".param .u64 out", body()), "shared.ptx");
    std::vector<std::vector<std::uint32_t>> results(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < results.size(); ++i) {
        threads.emplace_back([&module, &result = results[i], i] { result = run_on_own_machine(*module, i); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : results) {
        for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(result[i], 100 + i);
    }
}

TEST(Threads, ModulesAreLoadedBySeveralThreadsAtOnce) {
    std::vector<std::shared_ptr<const Module>> modules(4);
    std::vector<std::thread> threads;
    for (auto& module : modules) {
        threads.emplace_back(
            [&module] { module = Module::load(kernels::embedded_ptx("statistics", "fmad"), "own.ptx"); });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 1; i < modules.size(); ++i) {
        EXPECT_EQ(modules[i]->entries().size(), modules[0]->entries().size());
        EXPECT_NE(modules[i]->id(), modules[0]->id());
    }
}

}  // namespace
}  // namespace gradguard::vgpu::test
