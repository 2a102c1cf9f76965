// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/record.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/devices/finding_json.h"
#include "harness/vdriver/driver.h"
#include "harness/vgpu/ptx/ast.h"

namespace gradguard::vdriver {

namespace {

using Json = nlohmann::ordered_json;

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

/// {name: lane instructions executed, null when nobody counted}.
Json executed(const std::set<std::string>& names, const KernelRecord& kernel, bool counted) {
    Json json = Json::object();
    for (const std::string& name : names) {
        const auto it = kernel.instructions.find(name);
        json[name] = !counted ? Json(nullptr) : Json(it == kernel.instructions.end() ? 0 : it->second);
    }
    return json;
}

Json kernel_json(const std::string& name, const KernelRecord& kernel, const observers::Totals* totals) {
    const bool counted = totals != nullptr;
    Json json{{"kernel", name},
              {"ptx_file", kernel.ptx_file},
              {"launches", kernel.launches},
              {"failed_launches", kernel.failed_launches},
              {"blocks", kernel.counters.blocks},
              {"lane_instructions", kernel.counters.lane_instructions},
              {"warp_instructions", kernel.counters.warp_instructions},
              {"barriers", kernel.counters.barriers},
              {"approximate_instructions", executed(kernel.approximate, kernel, counted)},
              {"flushing_instructions", executed(kernel.flushing, kernel, counted)}};
    if (!counted) return json;
    json["instructions"] = kernel.instructions;
    json["global_read"] = {{"bytes", totals->global_reads.bytes}, {"sectors", totals->global_reads.sectors}};
    json["global_written"] = {{"bytes", totals->global_writes.bytes}, {"sectors", totals->global_writes.sectors}};
    return json;
}

void add_traffic(observers::Traffic& total, const observers::Traffic& more) {
    total.bytes += more.bytes;
    total.sectors += more.sectors;
}

void add_totals(std::map<std::string, observers::Totals>& totals, const Context& context) {
    if (context.counts() == nullptr) return;
    for (const auto& [name, counts] : context.counts()->by_kernel()) {
        add_traffic(totals[name].global_reads, counts.totals().global_reads);
        add_traffic(totals[name].global_writes, counts.totals().global_writes);
    }
}

/// Device memory of contexts and host memory of the driver that nobody has freed.
std::vector<Memory> live_memory(const Driver& driver) {
    std::vector<Memory> live;
    for (const auto& [handle, context] : driver.contexts) {
        for (const auto& [address, entry] : context->memory()) {
            if (!entry.on_host() && entry.kind != Memory::Kind::kGlobal && !entry.freed_in_stream)
                live.push_back(entry);
        }
    }
    for (const auto& [address, block] : driver.pinned.all()) live.push_back(block);
    return live;
}

vgpu::Finding leak(const Memory& entry) {
    vgpu::Finding finding;
    finding.kind = vgpu::FindingKind::Leak;
    finding.allocation = entry.address;
    finding.allocation_bytes = entry.bytes;
    return finding;
}

}  // namespace

KernelRecord& Record::of_kernel(const vgpu::Module& program, const vgpu::EntryInfo& entry) {
    const auto known = kernels_.find(entry.name);
    if (known != kernels_.end() && known->second.ptx_file == program.file_name()) return known->second;
    KernelRecord& kernel = kernels_[entry.name];
    kernel.ptx_file = program.file_name();  // the last one of several
    const auto index = static_cast<std::size_t>(&entry - program.entries().data());
    for (const vgpu::ast::Instruction& instruction : program.syntax().entries[index].instructions) {
        if (instruction.name.find(".ftz") != std::string::npos) kernel.flushing.insert(instruction.name);
    }
    return kernel;
}

void Record::say(const std::string& text) {
    if (said_.insert(text).second) std::fprintf(stderr, "gradguard virtual driver: %s\n", text.c_str());
}

void Record::refused(const std::string& text) {
    refused_.push_back(text);
    say(text);
}

void Record::failed(const std::string& text) {
    failures_.push_back(text);
    say(text);
}

void Record::not_supported(const std::string& function) {
    ++not_supported_[function];
    say(function + " is not supported (CUDA_ERROR_NOT_SUPPORTED)");
}

void Record::add(const Context& context) {
    for (const vgpu::Finding& finding : context.findings()) findings_.add(finding);
    observers::add_checked(checked_, context.checked());
    add_totals(totals_, context);
}

nlohmann::ordered_json Record::to_json(const Driver& driver) const {
    Record all = *this;  // and what live contexts have
    for (const auto& [handle, context] : driver.contexts) all.add(*context);
    const std::vector<Memory> live = live_memory(driver);
    if (driver.configuration.wants_leaks()) {
        for (const Memory& entry : live) all.findings_.add(leak(entry));
    }

    Json kernels = Json::array();
    for (const auto& [name, kernel] : all.kernels_) {
        const auto totals = all.totals_.find(name);
        kernels.push_back(kernel_json(name, kernel, totals == all.totals_.end() ? nullptr : &totals->second));
    }
    Json findings = Json::array();
    for (const vgpu::Finding& finding : all.findings_.all())
        findings.push_back(Json::parse(harness::finding_to_json(finding)));
    Json checked = Json::object();
    for (const observers::Checked& entry : all.checked_) {
        for (const auto& [what, count] : entry.counts) checked[entry.observer][what] = count;
    }
    Json allocations = Json::array();
    for (const Memory& entry : live)
        allocations.push_back(
            {{"address", hex(entry.address)}, {"bytes", entry.bytes}, {"kind", vdriver::name_of(entry.kind)}});
    return {{"device", "virtual driver"},
            {"configuration", vdriver::to_json(driver.configuration)},
            {"calls", driver.calls},
            {"kernels", kernels},
            {"findings", findings},
            {"checked", checked},
            {"live",
             {{"allocations", allocations},
              {"contexts", driver.contexts.size()},
              {"modules", driver.modules.size() + driver.libraries.size()},
              {"streams", driver.streams.size()},
              {"events", driver.events.size()},
              {"memory_pools", driver.pools.size() - (driver.default_pool != nullptr ? 1 : 0)}}},
            {"not_supported", all.not_supported_},
            {"refused", all.refused_},
            {"failures", all.failures_}};
}

void write_report() {
    Driver& driver = Driver::get();
    const std::lock_guard guard(driver.lock);
    std::string path = driver.configuration.report;
    if (!driver.initialized || path.empty()) return;
    if (const std::size_t place = path.find("%p"); place != std::string::npos)
        path.replace(place, 2, std::to_string(getpid()));
    std::ofstream file(path);
    file << driver.record.to_json(driver).dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
    file.close();
    if (!file) std::fprintf(stderr, "gradguard virtual driver: cannot write the report to %s\n", path.c_str());
}

}  // namespace gradguard::vdriver
