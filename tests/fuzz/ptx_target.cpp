// SPDX-License-Identifier: Apache-2.0
// Bytes as PTX: read, checked, and what is accepted runs for a short while, in the plain order or (texts of odd length)
// under a seed with all observers, on the portable handlers and on the best ones that this processor has: the same
// bits.
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "harness/observers/registry.h"
#include "harness/vgpu/machine.h"
#include "tests/fuzz/fuzz_target.h"

namespace gradguard::fuzz {
namespace {

constexpr std::uint64_t kBufferBytes = 4096;
constexpr std::uint32_t kThreads = 48;  // a whole warp and half of one

/// All that a run leaves behind.
struct Ended {
    std::string fault;  ///< Empty: it ended by itself.
    std::vector<std::byte> memory;
    std::vector<std::string> findings;

    bool operator==(const Ended&) const = default;
};

vgpu::MachineOptions options_for(std::uint64_t seed, vgpu::VectorLevel level) {
    vgpu::MachineOptions options;
    options.seed = seed;
    options.vector_level = level;
    options.allow_approximate = true;
    options.limits.max_threads_per_block = 128;
    options.limits.max_memory_bytes = std::uint64_t{1} << 24;
    options.instruction_budget = 2000;
    options.preemption_interval = 100;
    return options;
}

/// One buffer for all pointers, the address of its first byte; other parameters are small numbers.
std::vector<std::byte> arguments_of(const vgpu::EntryInfo& entry, vgpu::Address buffer) {
    std::vector<std::byte> bytes(entry.param_bytes);
    for (std::size_t i = 0; i < entry.params.size(); ++i) {
        const vgpu::ParamInfo& param = entry.params[i];
        // The third parameter of 8 bytes is a size in most kernels.
        const std::uint64_t value = param.size_bytes == 8 && i != 2 ? buffer : 16;
        std::memcpy(bytes.data() + param.offset_bytes, &value, std::min<std::size_t>(param.size_bytes, sizeof value));
    }
    return bytes;
}

Ended run(const vgpu::Module& module, const vgpu::EntryInfo& entry, std::uint64_t seed, vgpu::VectorLevel level) {
    vgpu::Machine machine(options_for(seed, level));
    std::optional<observers::ObserverSet> observers;
    if (seed != 0) observers.emplace(machine, "all");
    Ended ended;
    ended.memory.resize(kBufferBytes);
    for (std::size_t i = 0; i < kBufferBytes; ++i) ended.memory[i] = static_cast<std::byte>(i % 61);
    const vgpu::Address buffer = machine.allocate(kBufferBytes);
    machine.write(buffer, ended.memory.data(), kBufferBytes);
    vgpu::LaunchConfig config;
    config.grid.x = 2;
    config.block = entry.required_block.count() != 0 ? entry.required_block : vgpu::Dim3{kThreads, 1, 1};
    config.dynamic_shared_bytes = entry.uses_dynamic_shared ? 64 : 0;
    try {
        machine.launch(module, entry.name, config, arguments_of(entry, buffer));
    } catch (const vgpu::LaunchError& error) {
        ended.fault = error.what();
        require_one_line(ended.fault);
    }
    machine.read(buffer, ended.memory.data(), kBufferBytes);
    for (const vgpu::Finding& finding : machine.findings()) ended.findings.push_back(finding.message());
    for (const std::string& finding : ended.findings) require_one_line(finding);
    return ended;
}

void try_text(std::string_view text) {
    std::shared_ptr<const vgpu::Module> module;
    try {
        module = vgpu::Module::load(text, "fuzz.ptx", true);
    } catch (const vgpu::PtxError& error) {
        require_one_line(error.what());
        return;
    }
    const std::uint64_t seed = text.size() % 2;
    std::size_t left = 3;
    for (const vgpu::EntryInfo& entry : module->entries()) {
        if (left-- == 0) break;
        const Ended portable = run(*module, entry, seed, vgpu::VectorLevel::Portable);
        const Ended best = run(*module, entry, seed, vgpu::VectorLevel::Best);
        require(portable == best, "all vector levels give the same bits, faults and findings");
    }
}

}  // namespace
}  // namespace gradguard::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gradguard::fuzz::try_text(gradguard::fuzz::as_text(data, size));
    return 0;
}
