// SPDX-License-Identifier: Apache-2.0
// What makes an outcome a function of its case: a device that starts anew, and kernels that are decoded once.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "harness/devices/virtual_device.h"
#include "harness/vgpu/decode/program_cache.h"
#include "harness/vgpu/machine.h"
#include "harness/vgpu/module.h"
#include "kernels/host/tensor.h"
#include "reference/contract/error.h"

namespace gradguard {
namespace {

/// p = a * b + c without a rounding named: the seed chooses whether it is fused. Then a store to nowhere, on request.
constexpr const char* kFusable = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry fusable(.param .u64 out, .param .u64 wild)
{
    .reg .f32 %f<8>;
    .reg .b64 %rd<4>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [wild];
    ld.global.f32 %f1, [%rd1];
    ld.global.f32 %f2, [%rd1+4];
    ld.global.f32 %f3, [%rd1+8];
    mul.f32 %f4, %f1, %f2;
    add.f32 %f5, %f4, %f3;
    st.global.f32 [%rd1+12], %f5;
    setp.eq.u64 %p1, %rd2, 0;
    @%p1 ret;
    st.global.f32 [%rd2], %f5;
    ret;
}
)";

/// (1 + 2^-12)^2 - 1: 2^-24 is lost unless fused.
float run_fusable(vgpu::Machine& machine, const vgpu::Module& module, std::uint64_t wild = 0) {
    float values[4] = {1.0F + 0x1p-12F, 1.0F + 0x1p-12F, -1.0F, 0.0F};
    const vgpu::Address memory = machine.allocate(sizeof values);
    machine.write(memory, values, sizeof values);
    const std::uint64_t arguments[2] = {memory, wild};
    machine.launch(module, "fusable", {}, std::as_bytes(std::span(arguments)));
    machine.read(memory, values, sizeof values);
    return values[3];
}

TEST(ProgramCache, GivesEachSeedTheProgramOfAMachineOfItsOwn) {
    const auto module = vgpu::Module::load(kFusable, "fusable.ptx");
    const auto cache = std::make_shared<vgpu::ProgramCache>();
    std::size_t fused = 0;
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
        vgpu::MachineOptions options;
        options.seed = seed;
        vgpu::Machine alone(options);
        vgpu::Machine sharing(options, cache);
        const float want = run_fusable(alone, *module);
        EXPECT_EQ(run_fusable(sharing, *module), want) << "seed " << seed;
        fused += want == 0x1p-11F + 0x1p-24F;
    }
    EXPECT_GT(fused, 0U);
    EXPECT_LT(fused, 64U);
}

TEST(ProgramCache, KeepsOneProgramForEachChoice) {
    const auto module = vgpu::Module::load(kFusable, "fusable.ptx");
    const vgpu::ast::Entry& entry = module->syntax().entries.front();
    vgpu::ProgramCache cache;
    std::vector<const vgpu::decode::Program*> programs;
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
        vgpu::decode::Options options;
        options.fusion_seed = seed;
        const auto* program = &cache.get(*module, entry, options);
        if (std::find(programs.begin(), programs.end(), program) == programs.end()) programs.push_back(program);
    }
    EXPECT_EQ(programs.size(), 3U);  // seed 0; fused; not fused
}

using harness::VirtualDevice;
using harness::VirtualDeviceOptions;

VirtualDeviceOptions watched() {
    VirtualDeviceOptions options;
    options.observers = "all";
    return options;
}

/// Address, poison and result of a first allocation and launch.
std::string first_use(VirtualDevice& device, const vgpu::Module& module) {
    const auto queue = device.create_queue();
    const Buffer buffer = device.allocate(64, *queue);
    std::uint64_t poison = 0;
    device.machine().read(buffer.address, &poison, sizeof poison);
    return std::to_string(buffer.address) + " " + std::to_string(poison) + " " +
           std::to_string(run_fusable(device.machine(), module));
}

TEST(Renewal, DeviceIsLikeANewOneOfThatSeed) {
    const auto module = vgpu::Module::load(kFusable, "fusable.ptx");
    const auto used = VirtualDevice::create(watched());
    for (const std::uint64_t seed : {5U, 6U, 5U, 0U}) {
        VirtualDeviceOptions options = watched();
        options.machine.seed = seed;
        const auto fresh = VirtualDevice::create(options);
        used->renew(seed);
        EXPECT_EQ(first_use(*used, *module), first_use(*fresh, *module)) << "seed " << seed;
    }
}

TEST(Renewal, FindingsAndLeaksAreForgotten) {
    const auto module = vgpu::Module::load(kFusable, "fusable.ptx");
    const auto device = VirtualDevice::create(watched());
    EXPECT_ANY_THROW(run_fusable(device->machine(), *module, 4));
    EXPECT_GE(device->final_findings().size(), 2U);  // the store to nowhere, and memory that nobody freed
    device->renew(1);
    EXPECT_TRUE(device->final_findings().empty());
    EXPECT_NO_THROW(run_fusable(device->machine(), *module));
}

TEST(Renewal, BuffersFromBeforeMayBeLetGo) {
    const auto device = VirtualDevice::create(watched());
    Buffer old = device->allocate(64, *device->create_queue());
    device->renew(1);
    const Buffer fresh = device->allocate(64, *device->create_queue());
    old = {};
    EXPECT_EQ(device->machine().live_allocations(), 1U);
    EXPECT_NE(device->machine().host_pointer(fresh.address, 64), nullptr);
}

}  // namespace
}  // namespace gradguard
