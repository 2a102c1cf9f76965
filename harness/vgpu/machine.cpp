// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/machine.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/vgpu/decode/program.h"
#include "harness/vgpu/decode/program_cache.h"
#include "harness/vgpu/exec/instruction_table.h"
#include "harness/vgpu/finding_log.h"
#include "harness/vgpu/launch.h"
#include "harness/vgpu/memory.h"
#include "harness/vgpu/random.h"

namespace gradguard::vgpu {
namespace {

std::string words(const Dim3& d) { return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z); }

bool has_zero(const Dim3& d) { return d.x == 0 || d.y == 0 || d.z == 0; }
bool exceeds(const Dim3& d, const Dim3& limit) { return d.x > limit.x || d.y > limit.y || d.z > limit.z; }

/// Everything about a launch that can be wrong before it starts.
void check_config(const EntryInfo& entry, const LaunchConfig& config, std::size_t param_bytes, const Limits& limits) {
    const auto refuse = [&](const std::string& why) { throw LaunchError("launch of " + entry.name + ": " + why); };
    if (has_zero(config.grid) || has_zero(config.block)) refuse("grid and block must not be empty");
    if (exceeds(config.grid, limits.max_grid))
        refuse("grid " + words(config.grid) + ", the limit is " + words(limits.max_grid));
    if (exceeds(config.block, limits.max_block))
        refuse("block " + words(config.block) + ", the limit is " + words(limits.max_block));
    if (config.block.count() > limits.max_threads_per_block) {
        refuse(std::to_string(config.block.count()) + " threads per block, the limit is " +
               std::to_string(limits.max_threads_per_block));
    }
    if (entry.max_threads != 0 && config.block.count() > entry.max_threads) {
        refuse(std::to_string(config.block.count()) + " threads per block, the kernel allows " +
               std::to_string(entry.max_threads));
    }
    if (!has_zero(entry.required_block) && config.block != entry.required_block) {
        refuse("block " + words(config.block) + ", the kernel requires " + words(entry.required_block));
    }
    const std::uint64_t shared = std::uint64_t{entry.static_shared_bytes} + config.dynamic_shared_bytes;
    if (shared > limits.max_shared_bytes_per_block) {
        refuse(std::to_string(shared) + " bytes of shared memory, the limit is " +
               std::to_string(limits.max_shared_bytes_per_block));
    }
    if (param_bytes != entry.param_bytes) {
        refuse(std::to_string(param_bytes) + " bytes of arguments, the kernel takes " +
               std::to_string(entry.param_bytes));
    }
}

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
    launches += other.launches;
    blocks += other.blocks;
    lane_instructions += other.lane_instructions;
    warp_instructions += other.warp_instructions;
    barriers += other.barriers;
    divergent_branches += other.divergent_branches;
    global_bytes_read += other.global_bytes_read;
    global_bytes_written += other.global_bytes_written;
    return *this;
}

class Machine::Impl {
  public:
    Impl(const MachineOptions& chosen, std::shared_ptr<ProgramCache> cache)
        : options(chosen),
          memory(options.seed, options.limits.max_memory_bytes, options.host_addresses),
          programs(cache ? std::move(cache) : std::make_shared<ProgramCache>()) {
        options.vector_level = exec::resolve(options.vector_level);
        exec::InstructionTable::of(options.vector_level);  // throws if the processor lacks it
    }

    struct LoadedModule {
        std::map<std::string, Address, std::less<>> variables;
        std::map<const ast::Entry*, const decode::Program*> programs;  ///< Of this machine's options.
    };

    LoadedModule& loaded(const Module& module) {
        const auto [it, fresh] = modules.try_emplace(module.id());
        if (fresh) {
            for (const ast::Variable& variable : module.syntax().variables) place(variable, it->second);
            for (const ast::Variable& variable : module.syntax().variables) place_addresses(variable, it->second);
        }
        return it->second;
    }

    /// .global and .const variables become allocations, so that an access beyond one is seen.
    void place(const ast::Variable& variable, LoadedModule& into) {
        if (variable.space != Space::Global && variable.space != Space::Constant) return;
        const Address address = memory.allocate(variable.bytes);
        // PTX: a variable without an initial value is zero.
        std::byte* const data = memory.locate(address, variable.bytes);
        std::memset(data, 0, variable.bytes);
        if (!variable.initial.empty()) std::memcpy(data, variable.initial.data(), variable.initial.size());
        if (variable.space == Space::Constant) memory.make_constant(address);
        into.variables[variable.name] = address;
        for (Observer* observer : observers) {
            observer->known(address, variable.bytes);
            observer->host_wrote(address, variable.bytes);
        }
    }

    /// Initial values that are addresses: known once all variables have their place.
    void place_addresses(const ast::Variable& variable, const LoadedModule& into) const {
        for (const ast::AddressValue& value : variable.addresses) {
            const Address address = into.variables.at(value.name) + static_cast<std::uint64_t>(value.offset);
            std::memcpy(memory.locate(into.variables.at(variable.name) + value.at_bytes, sizeof(address)), &address,
                        sizeof(address));
        }
    }

    /// The argument block as memory that the kernel can read, if it takes the address of a parameter; else 0.
    Address place_params(const ast::Entry& entry, const decode::Program& program, std::span<const std::byte> params) {
        const bool wanted =
            std::any_of(program.constants.begin(), program.constants.end(), [&](const decode::Constant& constant) {
                return constant.kind == decode::Constant::Kind::Variable &&
                       entry.variables[constant.variable].space == Space::Param;
            });
        if (!wanted || params.empty()) return 0;
        const Address address = memory.allocate(params.size());
        std::memcpy(memory.locate(address, params.size()), params.data(), params.size());
        memory.make_constant(address);
        for (Observer* observer : observers) {
            observer->known(address, params.size());
            observer->host_wrote(address, params.size());
        }
        return address;
    }

    const decode::Program& program(const Module& module, const ast::Entry& entry, LoadedModule& into) {
        const decode::Program*& known = into.programs[&entry];
        if (known != nullptr) return *known;
        decode::Options how;
        how.allow_approximate = options.allow_approximate;
        how.level = options.vector_level;
        how.flush_subnormals = options.flush_subnormals;
        how.fusion_seed = options.seed == 0 ? 0 : mix(options.seed) | 1;
        known = &programs->get(module, entry, how);
        return *known;
    }

    /// Lets the observers know of new memory. When one has no host memory left to note it in, nobody keeps it.
    template <class Tell>
    Address announce(Address address, Tell tell) {
        try {
            for (Observer* observer : observers) tell(*observer, address);
        } catch (...) {
            memory.free(address);
            for (Observer* observer : observers) observer->freed(address);
            throw;
        }
        return address;
    }

    MachineOptions options;
    Memory memory;
    FindingLog findings;
    Counters counters;
    std::vector<Observer*> observers;
    std::shared_ptr<ProgramCache> programs;
    std::map<std::uint64_t, LoadedModule> modules;
    std::optional<LaunchError> fault;
};

Machine::Machine(MachineOptions options, std::shared_ptr<ProgramCache> programs)
    : impl_(std::make_unique<Impl>(options, std::move(programs))) {}
Machine::~Machine() = default;

const MachineOptions& Machine::options() const { return impl_->options; }
VectorLevel Machine::vector_level() const { return impl_->options.vector_level; }

Address Machine::allocate(std::uint64_t bytes) {
    return impl_->announce(impl_->memory.allocate(bytes),
                           [&](Observer& observer, Address address) { observer.allocated(address, bytes); });
}

Address Machine::map(void* host, std::uint64_t bytes) {
    return impl_->announce(impl_->memory.map(host, bytes), [&](Observer& observer, Address address) {
        observer.allocated(address, bytes);
        observer.host_wrote(address, bytes);
    });
}

Address Machine::map_in_place(void* host, std::uint64_t bytes) {
    const Address address = impl_->memory.map_in_place(host, bytes);
    for (Observer* observer : impl_->observers) {
        observer->allocated(address, bytes);
        observer->host_wrote(address, bytes);
    }
    return address;
}

void Machine::free(Address address) {
    impl_->memory.free(address);
    for (Observer* observer : impl_->observers) observer->freed(address);
}

std::uint64_t Machine::allocated_bytes() const { return impl_->memory.allocated_bytes(); }
std::uint64_t Machine::live_allocations() const { return impl_->memory.live_allocations(); }

std::byte* Machine::host_pointer(Address address, std::uint64_t bytes) {
    std::byte* const data = impl_->memory.locate(address, bytes);
    for (Observer* observer : impl_->observers) observer->host_wrote(address, bytes);
    return data;
}
const std::byte* Machine::host_pointer(Address address, std::uint64_t bytes) const {
    return impl_->memory.locate(address, bytes);
}

void Machine::write(Address address, const void* source, std::uint64_t bytes) {
    std::byte* const destination = impl_->memory.locate(address, bytes);
    if (bytes > 0) std::memcpy(destination, source, bytes);
    for (Observer* observer : impl_->observers) observer->host_wrote(address, bytes);
}

void Machine::read(Address address, void* destination, std::uint64_t bytes) const {
    const std::byte* const source = impl_->memory.locate(address, bytes);
    if (bytes > 0) std::memcpy(destination, source, bytes);
}

Address Machine::variable(const Module& module, std::string_view name) {
    const auto& variables = impl_->loaded(module).variables;
    const auto it = variables.find(name);
    if (it == variables.end())
        throw LaunchError("module " + module.file_name() + " has no variable '" + std::string(name) + "'");
    return it->second;
}

LaunchStats Machine::launch(const Module& module, std::string_view name, const LaunchConfig& config,
                            std::span<const std::byte> params) {
    if (impl_->fault) throw LaunchError(*impl_->fault);
    const EntryInfo* info = module.find(name);
    if (!info) throw LaunchError("module " + module.file_name() + " has no entry '" + std::string(name) + "'");
    check_config(*info, config, params.size(), impl_->options.limits);
    const ast::Entry& entry = module.syntax().entries[static_cast<std::size_t>(info - module.entries().data())];
    Impl::LoadedModule& loaded = impl_->loaded(module);
    std::vector<Address> variables;
    const decode::Program& program = impl_->program(module, entry, loaded);
    const Address param_block = impl_->place_params(entry, program, params);
    for (const ast::Variable& variable : entry.variables) {
        const auto it = loaded.variables.find(variable.name);
        const bool is_param = variable.space == Space::Param;
        variables.push_back(is_param                       ? param_block + variable.offset_bytes
                            : it == loaded.variables.end() ? 0
                                                           : it->second);
    }
    Launch launch({module.syntax(), entry, program, impl_->options, config, params, variables, impl_->counters.launches,
                   impl_->memory, impl_->findings, impl_->observers, param_block});
    for (Observer* observer : impl_->observers) observer->launch_begin(launch);
    const auto finish = [&] {
        LaunchStats stats = launch.stats();
        impl_->counters += stats.counters;
        for (Observer* observer : impl_->observers) observer->launch_end(stats);
        if (param_block != 0) free(param_block);
        return stats;
    };
    try {
        launch.run();
    } catch (const LaunchError& error) {
        impl_->fault = error;
        finish();
        throw;
    }
    return finish();
}

void Machine::attach(Observer* observer) {
    impl_->observers.push_back(observer);
    for (const Memory::Info& info : impl_->memory.live()) {
        observer->known(info.start, info.bytes);
        observer->host_wrote(info.start, info.bytes);
    }
}
void Machine::detach(Observer* observer) { std::erase(impl_->observers, observer); }

std::span<const Finding> Machine::findings() const { return impl_->findings.all(); }
const Counters& Machine::counters() const { return impl_->counters; }

}  // namespace gradguard::vgpu
