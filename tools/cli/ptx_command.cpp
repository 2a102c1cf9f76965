// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "harness/devices/kernel_counts.h"
#include "harness/io/atomic_file.h"
#include "harness/io/file_error.h"
#include "harness/io/results.h"
#include "harness/observers/registry.h"
#include "tools/cli/commands.h"
#include "tools/cli/observations.h"
#include "tools/cli/ptx_arguments.h"
#include "tools/cli/ptx_refusals.h"
#include "tools/cli/text_table.h"

namespace gradguard::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

Json dim_json(const vgpu::Dim3& dim) { return {dim.x, dim.y, dim.z}; }
std::string dim_text(const vgpu::Dim3& dim) { return fmt::format("({},{},{})", dim.x, dim.y, dim.z); }

// ---- what a file holds ---------------------------------------------------------------------------------------------

Json entry_json(const vgpu::EntryInfo& entry) {
    Json json;
    json["name"] = entry.name;
    json["line"] = entry.line;
    json["parameter_bytes"] = entry.param_bytes;
    json["parameters"] = Json::array();
    for (const vgpu::ParamInfo& param : entry.params) {
        json["parameters"].push_back({{"name", param.name},
                                      {"offset", param.offset_bytes},
                                      {"bytes", param.size_bytes},
                                      {"align", param.align_bytes}});
    }
    json["static_shared_bytes"] = entry.static_shared_bytes;
    json["dynamic_shared"] = entry.uses_dynamic_shared;
    json["max_threads"] = entry.max_threads != 0 ? Json(entry.max_threads) : Json(nullptr);
    json["required_block"] = entry.required_block.count() != 0 ? dim_json(entry.required_block) : Json(nullptr);
    return json;
}

void print_entry(const std::string& file, const vgpu::EntryInfo& entry) {
    fmt::print("{}:{}: entry {}\n", file, entry.line, entry.name);
    using Align = TextTable::Align;
    TextTable table({Align::kRight, Align::kLeft, Align::kRight, Align::kRight});
    table.add({"", "parameter", "offset", "bytes"});
    for (std::size_t i = 0; i < entry.params.size(); ++i) {
        const vgpu::ParamInfo& param = entry.params[i];
        table.add(
            {std::to_string(i), param.name, std::to_string(param.offset_bytes), std::to_string(param.size_bytes)});
    }
    if (!entry.params.empty()) fmt::print("{}", table.text());
    fmt::print("  shared memory: {} bytes{}; threads of a block: {}\n", entry.static_shared_bytes,
               entry.uses_dynamic_shared ? " and a dynamic part" : "",
               entry.required_block.count() != 0 ? dim_text(entry.required_block)
               : entry.max_threads != 0          ? fmt::format("at most {}", entry.max_threads)
                                                 : std::string("not said"));
}

void print_listing(const PtxRequest& request, std::span<const vgpu::EntryInfo> entries,
                   const std::vector<PtxRefusal>& refusals) {
    if (request.json) {
        Json json;
        json["file"] = request.file;
        json["entries"] = Json::array();
        for (const vgpu::EntryInfo& entry : entries) json["entries"].push_back(entry_json(entry));
        json["refusals"] = Json::array();
        for (const PtxRefusal& refusal : refusals) {
            json["refusals"].push_back({{"line", refusal.line}, {"message", refusal.message}});
        }
        if (!refusals.empty()) {
            const std::string error = harness::error_to_json({"InvalidFile", {}, {}, refusals.front().message});
            json["error"] = Json::parse(error)["error"];
        }
        fmt::print("{}\n", dump(json));
        return;
    }
    if (entries.empty()) fmt::print("{}: no entry\n", request.file);
    for (const vgpu::EntryInfo& entry : entries) print_entry(request.file, entry);
    for (const PtxRefusal& refusal : refusals) fmt::print("refused: {}\n", refusal.message);
    if (refusals.empty()) fmt::print("refused: nothing\n");
}

int list_module(const PtxRequest& request) {
    ReadModule read = read_module(read_text(request.file), request.file, request.allow_approximate);
    const bool sensible = read.syntax != nullptr;
    const vgpu::Module module(sensible ? std::move(read.syntax) : std::make_unique<const vgpu::ast::Module>());
    print_listing(request, module.entries(), read.refusals);
    if (read.refusals.empty()) return kWithinBounds;
    std::fflush(stdout);
    const std::size_t more = read.refusals.size() - 1;
    fmt::print(stderr, "gradguard: {}{}\n", read.refusals.front().message,
               more == 0 ? "" : fmt::format(" (and {} on other lines)", counted(more, "refusal")));
    return kBadInput;
}

// ---- a run ---------------------------------------------------------------------------------------------------------

/// One launch on a machine of its own.
class PtxRun {
  public:
    explicit PtxRun(const PtxRequest& request)
        : request_(request),
          module_(vgpu::Module::load(read_text(request.file), request.file, request.allow_approximate)),
          machine_(options_of(request)),
          observers_(machine_, request.observers) {
        if (request.count) machine_.attach(&counts_);
        const vgpu::EntryInfo* const entry = module_->find(request.entry);
        if (entry == nullptr) throw UsageError("--entry " + request.entry + ": " + request.file + known_entries());
        arguments_ = parse_arguments(*entry, request.arguments);
        for (const auto& [name, file] : request.outs) outs_.emplace_back(find_buffer(arguments_, name, "--out"), file);
        block_ = request.block.value_or(entry->required_block.count() != 0 ? entry->required_block : vgpu::Dim3{});
        params_.resize(entry->param_bytes);
        for (const PtxArgument& argument : arguments_) place(argument);
        for (const std::string& name : request.read_only) {
            const std::size_t index = find_buffer(arguments_, name, "--read-only");
            if (observers_.inputs()) observers_.inputs()->mark_read_only(addresses_[index], arguments_[index].bytes());
        }
    }

    /// Runs, reads the buffers back, and frees them.
    void run() {
        try {
            approximate_ =
                machine_.launch(*module_, request_.entry, {request_.grid, block_, request_.shared_bytes}, params_)
                    .approximate_instructions;
        } catch (const vgpu::LaunchError& error) {
            if (error.finding() == nullptr) throw UsageError(request_.file + ": " + error.what());
            faulted_ = true;
        }
        for (std::size_t i = 0; i < arguments_.size(); ++i) {
            std::vector<std::byte>& bytes = results_.emplace_back(arguments_[i].bytes());
            if (!arguments_[i].is_buffer()) continue;
            machine_.read(addresses_[i], bytes.data(), bytes.size());
            machine_.free(addresses_[i]);
        }
        seen_.checked = observers_.checked();
        seen_.findings.assign(machine_.findings().begin(), machine_.findings().end());
        for (vgpu::Finding& finding : observers_.final_findings()) seen_.findings.push_back(std::move(finding));
        for (const auto& [kernel, counts] : counts_.by_kernel()) seen_.kernels.emplace(kernel, counts.totals());
    }

    /// A launch that a fault ended has no results to keep.
    void write() const {
        if (faulted_) return;
        for (const auto& [index, path] : outs_) {
            harness::AtomicFile file(path);
            file.write(results_[index]);
            file.commit();
        }
    }

    void print_text() const {
        fmt::print("{}: grid {}, block {}, {} bytes of dynamic shared memory, seed {}\n", request_.entry,
                   dim_text(request_.grid), dim_text(block_), request_.shared_bytes, request_.seed);
        for (std::size_t i = 0; i < arguments_.size(); ++i) {
            if (arguments_[i].is_buffer()) fmt::print("{}\n", buffer_text(i));
        }
        for (const auto& [index, path] : outs_) {
            if (faulted_) break;
            fmt::print("wrote {}: argument {}, {} bytes\n", path, arguments_[index].number, results_[index].size());
        }
        for (const std::string& name : approximate_) fmt::print("approximate: {}\n", name);
        fmt::print("{}{}", findings_text(seen_.findings), checked_text(seen_));
        if (!seen_.kernels.empty()) fmt::print("\n{}", counts_text(seen_.kernels));
    }

    void print_json() const {
        Json json;
        json["file"] = request_.file;
        json["entry"] = request_.entry;
        json["grid"] = dim_json(request_.grid);
        json["block"] = dim_json(block_);
        json["dynamic_shared_bytes"] = request_.shared_bytes;
        json["seed"] = request_.seed;
        json["completed"] = !faulted_;
        json["approximate_instructions"] = approximate_;
        json["buffers"] = Json::array();
        for (std::size_t i = 0; i < arguments_.size(); ++i) {
            if (arguments_[i].is_buffer()) json["buffers"].push_back(buffer_json(i));
        }
        json["written"] = Json::array();
        for (const auto& [index, path] : outs_) {
            if (!faulted_) json["written"].push_back({{"argument", arguments_[index].number}, {"file", path}});
        }
        add_json(json, seen_);
        fmt::print("{}\n", dump(json));
    }

    const Observations& seen() const { return seen_; }

  private:
    static vgpu::MachineOptions options_of(const PtxRequest& request) {
        vgpu::MachineOptions options;
        options.seed = request.seed;
        options.instruction_budget = request.budget;
        // It is looked at when a path has had its turn.
        options.preemption_interval = static_cast<std::uint32_t>(
            std::clamp<std::uint64_t>(request.budget, 1, vgpu::MachineOptions{}.preemption_interval));
        options.count_by_kind = request.count;
        options.allow_approximate = request.allow_approximate;
        return options;
    }

    std::string known_entries() const {
        std::string text = " has no such entry; it has";
        for (const vgpu::EntryInfo& entry : module_->entries()) text += " " + entry.name;
        return module_->entries().empty() ? " has no entry at all" : text;
    }

    void place(const PtxArgument& argument) {
        std::uint64_t word = argument.bits;
        if (argument.is_buffer()) {
            const std::vector<std::byte> bytes = initial_bytes(argument);
            try {
                word = machine_.allocate(argument.bytes());
            } catch (const vgpu::LaunchError& error) {
                throw UsageError(fmt::format("--arg {} ({}): {}", argument.number, argument.text, error.what()));
            }
            if (!bytes.empty()) machine_.write(word, bytes.data(), bytes.size());
        }
        addresses_.push_back(word);
        std::memcpy(params_.data() + argument.offset_bytes, &word, argument.size_bytes());
    }

    std::uint64_t shown(std::size_t index) const { return std::min(request_.values, arguments_[index].elements); }

    std::uint64_t bits_at(std::size_t index, std::uint64_t element) const {
        const std::uint32_t size = arguments_[index].type.bytes;
        std::uint64_t bits = 0;
        std::memcpy(&bits, results_[index].data() + element * size, size);
        return bits;
    }

    std::string buffer_text(std::size_t index) const {
        const PtxArgument& argument = arguments_[index];
        std::string text = fmt::format("argument {}, {}[{}]:", argument.number, argument.type.name, argument.elements);
        for (std::uint64_t i = 0; i < shown(index); ++i) text += " " + element_text(argument.type, bits_at(index, i));
        return text + (shown(index) < argument.elements ? " ..." : "");
    }

    Json buffer_json(std::size_t index) const {
        const PtxArgument& argument = arguments_[index];
        Json json;
        json["argument"] = argument.number;
        json["parameter"] = argument.parameter.empty() ? Json(nullptr) : Json(argument.parameter);
        json["type"] = argument.type.name;
        json["elements"] = argument.elements;
        json["values"] = Json::array();
        for (std::uint64_t i = 0; i < shown(index); ++i) {
            json["values"].push_back(element_json(argument.type, bits_at(index, i)));
        }
        return json;
    }

    const PtxRequest& request_;
    std::shared_ptr<const vgpu::Module> module_;
    harness::KernelCounts counts_;  // outlives the machine that it is attached to
    vgpu::Machine machine_;
    observers::ObserverSet observers_;
    vgpu::Dim3 block_;
    std::vector<PtxArgument> arguments_;
    std::vector<std::pair<std::size_t, std::string>> outs_;  ///< Index in arguments_, file.
    std::vector<vgpu::Address> addresses_;                   ///< By argument; the bits of a scalar.
    std::vector<std::byte> params_;
    std::vector<std::vector<std::byte>> results_;  ///< By argument.
    bool faulted_ = false;
    std::vector<std::string> approximate_;  ///< Of the kernel, executed or not.
    Observations seen_;
};

}  // namespace

int run_ptx(const PtxRequest& request) {
    if (request.entry.empty()) return list_module(request);
    PtxRun run(request);
    run.run();
    run.write();
    if (request.json) {
        run.print_json();
    } else {
        run.print_text();
    }
    if (run.seen().findings.empty()) return kWithinBounds;
    std::fflush(stdout);
    fmt::print(stderr, "gradguard: {}\n", summary_of(run.seen().findings));
    return kDeviceTrouble;
}

}  // namespace gradguard::tools
