// SPDX-License-Identifier: Apache-2.0
#include "tests/observers/program.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>

namespace gradguard::observers::test {
namespace {

std::string path_of(const std::string& file) {
    return std::string(GRADGUARD_SOURCE_DIR) + "/tests/observers/programs/" + file;
}

std::shared_ptr<const vgpu::Module> load(const std::string& program) {
    static std::map<std::string, std::shared_ptr<const vgpu::Module>> loaded;
    auto& module = loaded[program];
    if (!module) {
        std::ifstream file(path_of(program + ".ptx"));
        std::stringstream text;
        text << file.rdbuf();
        if (!file) throw std::runtime_error("cannot read " + path_of(program + ".ptx"));
        module = vgpu::Module::load(text.str(), program + ".ptx");
    }
    return module;
}

vgpu::Address make_buffer(vgpu::Machine& machine, std::uint32_t words, bool count_up) {
    std::vector<std::int32_t> values(words);
    if (count_up) std::iota(values.begin(), values.end(), 0);
    const vgpu::Address address = machine.allocate(words * 4);
    machine.write(address, values.data(), words * 4);
    return address;
}

}  // namespace

std::string Run::describe() const {
    std::string text;
    for (const vgpu::Finding& finding : findings) text += finding.message() + "\n";
    return text;
}

Run run_program(const Setup& setup, const std::string& kernel, std::uint64_t seed, std::string_view observers) {
    vgpu::MachineOptions options;
    options.seed = seed;
    options.preemption_interval = 1000;
    options.instruction_budget = 10'000'000;
    const auto module = load(setup.program);
    const vgpu::EntryInfo* const entry = module->find(kernel);
    if (!entry) throw std::runtime_error(setup.program + ".ptx has no kernel " + kernel);
    vgpu::Machine machine(options);
    ObserverSet set(machine, observers);
    vgpu::Address a, b, c = 0;
    if (setup.a_behind_b) {
        b = make_buffer(machine, setup.words_b + setup.words_a, true);
        a = b + setup.words_b * 4;
        if (set.inputs()) set.inputs()->mark_read_only(a, setup.words_a * 4);
    } else {
        a = make_buffer(machine, setup.words_a, true);
        b = setup.clear_b ? make_buffer(machine, setup.words_b, false) : machine.allocate(setup.words_b * 4);
    }
    if (setup.words_c != 0) c = make_buffer(machine, setup.words_c, false);
    if (setup.free_c) machine.free(c);
    std::vector<std::byte> params(entry->param_bytes);
    const std::uint64_t values[3] = {a, b, c != 0 ? c : static_cast<std::uint64_t>(setup.n)};
    for (std::size_t i = 0; i < entry->params.size(); ++i) {
        std::memcpy(params.data() + entry->params[i].offset_bytes, &values[i], entry->params[i].size_bytes);
    }
    Run run;
    try {
        machine.launch(*module, kernel, {setup.grid, setup.block, 0}, params);
    } catch (const vgpu::LaunchError& error) {
        if (!error.finding()) throw;
        run.faulted = true;
    }
    machine.free(b);
    if (!setup.a_behind_b) machine.free(a);
    if (c != 0 && !setup.free_c) machine.free(c);
    run.findings.assign(machine.findings().begin(), machine.findings().end());
    for (vgpu::Finding& finding : set.final_findings()) run.findings.push_back(std::move(finding));
    run.checked = set.checked();
    return run;
}

std::string source_of(const std::string& program) {
    return std::filesystem::exists(path_of(program + ".cu")) ? program + ".cu" : program + ".ptx";
}

std::vector<std::uint32_t> marked_lines(const std::string& program, const std::string& mark) {
    std::ifstream file(path_of(source_of(program)));
    if (!file) throw std::runtime_error("cannot read " + path_of(source_of(program)));
    std::vector<std::uint32_t> lines;
    std::string line;
    for (std::uint32_t number = 1; std::getline(file, line); ++number) {
        const std::string wanted = "// <- " + mark;
        if (line.size() >= wanted.size() && line.compare(line.size() - wanted.size(), wanted.size(), wanted) == 0) {
            lines.push_back(number);
        }
    }
    return lines;
}

}  // namespace gradguard::observers::test
