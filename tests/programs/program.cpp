// SPDX-License-Identifier: Apache-2.0
#include "tests/programs/program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace gradguard::programs {
namespace {

std::uint64_t launched = 0;

vgpu::Address make_buffer(vgpu::Machine& machine, const Argument& argument, observers::Inputs* inputs) {
    const std::uint64_t bytes = argument.words.size() * sizeof(std::uint32_t);
    const vgpu::Address address = machine.allocate(bytes);
    if (!argument.poisoned) machine.write(address, argument.words.data(), bytes);
    if (argument.kind == Argument::Kind::Input && inputs) inputs->mark_read_only(address, bytes);
    return address;
}

}  // namespace

Argument scalar(std::uint32_t value) { return {.scalar = value, .words = {}}; }
Argument scalar(float value) { return scalar(std::bit_cast<std::uint32_t>(value)); }
Argument input(Words words) { return {.kind = Argument::Kind::Input, .words = std::move(words)}; }
Argument output(std::size_t words) { return {.kind = Argument::Kind::Output, .words = Words(words), .poisoned = true}; }
Argument in_out(Words words) { return {.kind = Argument::Kind::Output, .words = std::move(words)}; }

std::shared_ptr<const vgpu::Module> load(const std::string& path, Approximate approximate) {
    static std::map<std::pair<std::string, Approximate>, std::shared_ptr<const vgpu::Module>> loaded;
    auto& module = loaded[{path, approximate}];
    if (!module) {
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        if (!file) throw std::runtime_error("cannot read " + path);
        module = vgpu::Module::load(text.str(), path, approximate == Approximate::Allowed);
    }
    return module;
}

Outcome launch(const vgpu::Module& module, const std::string& entry, const vgpu::LaunchConfig& config,
               const std::vector<Argument>& arguments, std::uint64_t seed, Approximate approximate) {
    const vgpu::EntryInfo* const info = module.find(entry);
    if (!info) throw std::runtime_error(module.file_name() + " has no entry " + entry);
    if (info->params.size() < arguments.size()) throw std::runtime_error(entry + " takes fewer arguments");
    ++launched;
    vgpu::MachineOptions options;
    options.seed = seed;
    options.allow_approximate = approximate == Approximate::Allowed;
    options.instruction_budget = 5'000'000;
    options.preemption_interval = 1000;
    vgpu::Machine machine(options);
    const observers::ObserverSet set(machine, "all");
    std::vector<std::byte> params(info->param_bytes);
    std::vector<vgpu::Address> buffers;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const bool is_buffer = arguments[i].kind != Argument::Kind::Scalar;
        if (is_buffer) buffers.push_back(make_buffer(machine, arguments[i], set.inputs()));
        const std::uint64_t value = is_buffer ? buffers.back() : arguments[i].scalar;
        std::memcpy(params.data() + info->params[i].offset_bytes, &value,
                    std::min<std::size_t>(sizeof value, info->params[i].size_bytes));
    }
    Outcome outcome;
    bool faulted = false;
    try {
        vgpu::LaunchStats stats = machine.launch(module, entry, config, params);
        outcome.counters = stats.counters;
        outcome.approximate = std::move(stats.approximate_instructions);
    } catch (const vgpu::LaunchError& error) {
        if (!error.finding()) throw;
        faulted = true;
    }
    auto buffer = buffers.begin();
    for (const Argument& argument : arguments) {
        if (argument.kind == Argument::Kind::Scalar) continue;
        if (argument.kind == Argument::Kind::Output && !faulted) {
            outcome.outputs.emplace_back(argument.words.size());
            machine.read(*buffer, outcome.outputs.back().data(), argument.words.size() * sizeof(std::uint32_t));
        }
        machine.free(*buffer++);
    }
    for (const vgpu::Finding& finding : machine.findings()) outcome.findings += finding.message() + "\n";
    for (const vgpu::Finding& finding : set.final_findings()) outcome.findings += finding.message() + "\n";
    outcome.checked = set.checked();
    return outcome;
}

std::uint64_t seeds(std::uint64_t usual) {
    const char* const wanted = std::getenv("GRADGUARD_SEEDS");
    return wanted ? std::max<std::uint64_t>(usual, std::stoull(wanted)) : usual;
}

std::uint64_t launches() { return launched; }

}  // namespace gradguard::programs
