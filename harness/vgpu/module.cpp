// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/module.h"

#include <algorithm>
#include <atomic>

#include "harness/vgpu/decode/program.h"
#include "harness/vgpu/exec/instruction_table.h"
#include "harness/vgpu/ptx/parser.h"

namespace gradguard::vgpu {
namespace {

EntryInfo describe(const ast::Entry& entry) {
    EntryInfo info;
    info.name = entry.name;
    info.line = entry.line;
    for (std::uint32_t i = 0; i < entry.param_count; ++i) {
        const ast::Variable& parameter = entry.variables[i];
        info.params.push_back({parameter.name, static_cast<std::uint32_t>(parameter.offset_bytes),
                               static_cast<std::uint32_t>(parameter.bytes), parameter.align_bytes});
    }
    info.param_bytes = entry.param_bytes;
    info.static_shared_bytes = entry.static_shared_bytes;
    info.uses_dynamic_shared = entry.uses_dynamic_shared;
    info.max_threads = entry.max_threads;
    info.required_block = entry.required_block;
    return info;
}

std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

}  // namespace

std::shared_ptr<const Module> Module::load(std::string_view ptx, std::string file_name, bool allow_approximate) {
    std::unique_ptr<const ast::Module> syntax = ptx::parse(ptx, std::move(file_name));
    decode::Options options;
    options.level = VectorLevel::Portable;
    options.allow_approximate = allow_approximate;
    for (const ast::Entry& entry : syntax->entries) decode::decode(*syntax, entry, options);  // refuses what is unknown
    return std::make_shared<const Module>(std::move(syntax));
}

Module::Module(std::unique_ptr<const ast::Module> syntax) : syntax_(std::move(syntax)), id_(next_id()) {
    for (const ast::Entry& entry : syntax_->entries) entries_.push_back(describe(entry));
}

Module::~Module() = default;

const EntryInfo* Module::find(std::string_view name) const {
    const auto it =
        std::find_if(entries_.begin(), entries_.end(), [&](const EntryInfo& entry) { return entry.name == name; });
    return it == entries_.end() ? nullptr : &*it;
}

const std::string& Module::file_name() const { return syntax_->file_name; }

std::vector<std::string> instruction_names() { return exec::InstructionTable::of(VectorLevel::Portable).names(); }

}  // namespace gradguard::vgpu
