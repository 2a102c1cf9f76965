// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "harness/observers/registry.h"
#include "harness/vgpu/machine.h"
#include "kernels/device/params.h"

/// The compiled kernels of this project have no findings, whatever the schedule.
namespace gradguard::observers::test {
namespace {

constexpr std::uint64_t kSeeds = 20;

std::shared_ptr<const vgpu::Module> load(const std::string& name) {
    const std::string path = std::string(GRADGUARD_SOURCE_DIR) + "/kernels/ptx/" + name;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) throw std::runtime_error("cannot read " + path);
    return vgpu::Module::load(text.str(), name);
}

template <class Arguments>
std::span<const std::byte> bytes_of(const Arguments& arguments) {
    return {reinterpret_cast<const std::byte*>(&arguments), sizeof(arguments)};
}

vgpu::Address input(vgpu::Machine& machine, ObserverSet& set, std::uint64_t bytes) {
    const std::vector<std::byte> zeros(bytes, std::byte{0});
    const vgpu::Address address = machine.allocate(bytes);
    machine.write(address, zeros.data(), bytes);
    set.inputs()->mark_read_only(address, bytes);
    return address;
}

void expect_no_findings(const vgpu::Machine& machine, const std::string& what) {
    for (const vgpu::Finding& finding : machine.findings()) ADD_FAILURE() << what << ": " << finding.message();
}

void expect_all_checked(std::span<const Checked> checked) {
    EXPECT_TRUE(checked_nothing(checked).empty()) << testing::PrintToString(checked_nothing(checked));
}

TEST(OurKernels, TheScanIsCleanUnderEverySchedule) {
    std::vector<Checked> total;
    for (const char* file : {"statistics.fmad.ptx", "statistics.nofmad.ptx"}) {
        const auto module = load(file);
        for (const auto& [entry, size] : {std::pair{"gradient_statistics_f32", 4},
                                          {"gradient_statistics_f16", 2},
                                          {"gradient_statistics_bf16", 2}}) {
            for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
                vgpu::MachineOptions options;
                options.seed = seed;
                vgpu::Machine machine(options);
                ObserverSet set(machine, "all");
                const std::uint32_t elements = 3001 + static_cast<std::uint32_t>(seed) * 97,
                                    blocks = (elements + 1023) / 1024;
                // A view into a tensor: warps do not start at a row of their own.
                const vgpu::Address gradients = input(machine, set, (elements + 1) * static_cast<std::uint64_t>(size));
                const vgpu::Address triples = machine.allocate(12 * blocks), summary = machine.allocate(12);
                const kernels::StatisticsArguments scan{gradients + static_cast<std::uint64_t>(size), triples, elements,
                                                        1.0F};
                machine.launch(*module, entry, {{blocks, 1, 1}, {256, 1, 1}, 0}, bytes_of(scan));
                const kernels::MergeArguments merge{triples, summary, blocks, 0};
                machine.launch(*module, kernels::kMergeEntry, {{1, 1, 1}, {256, 1, 1}, 0}, bytes_of(merge));
                expect_no_findings(machine, std::string(entry) + " seed " + std::to_string(seed));
                add_checked(total, set.checked());
            }
        }
    }
    expect_all_checked(total);
}

TEST(OurKernels, TheUpdateIsCleanUnderEverySchedule) {
    for (const char* file : {"update.fmad.ptx", "update.nofmad.ptx"}) {
        const auto module = load(file);
        ASSERT_FALSE(module->entries().empty());
        for (const vgpu::EntryInfo& entry : module->entries()) {
            for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
                vgpu::MachineOptions options;
                options.seed = seed;
                vgpu::Machine machine(options);
                ObserverSet set(machine, "all");
                const std::uint32_t elements = 999, blocks = (elements + 255) / 256;
                kernels::UpdateArguments arguments{};
                for (auto* operand : {&arguments.parameters, &arguments.gradients, &arguments.first_moment,
                                      &arguments.second_moment, &arguments.max_second_moment}) {
                    *operand = input(machine, set, elements * 4);
                }
                for (auto* operand : {&arguments.new_parameters, &arguments.new_first_moment,
                                      &arguments.new_second_moment, &arguments.new_max_second_moment}) {
                    *operand = machine.allocate(elements * 4);
                }
                arguments.elements = elements;
                arguments.epsilon = 1.0F;
                machine.launch(*module, entry.name, {{blocks, 1, 1}, {256, 1, 1}, 0}, bytes_of(arguments));
                expect_no_findings(machine, entry.name + " seed " + std::to_string(seed));
            }
        }
    }
}

}  // namespace
}  // namespace gradguard::observers::test
