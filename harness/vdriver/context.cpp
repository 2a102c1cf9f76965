// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/context.h"

#include <algorithm>

#include "harness/vdriver/driver.h"
#include "harness/vgpu/error.h"
#include "harness/vgpu/ptx/ast.h"

namespace gradguard::vdriver {

using namespace cuda;  // NOLINT: the names of the driver API

namespace {

/// What a kernel's fault is to the driver.
CUresult result_of(const vgpu::LaunchError& error) {
    const vgpu::Finding* const finding = error.finding();
    if (finding == nullptr) return CUDA_ERROR_LAUNCH_FAILED;
    switch (finding->kind) {
        case vgpu::FindingKind::OutOfBounds:
        case vgpu::FindingKind::UseAfterFree:
        case vgpu::FindingKind::NoSuchAllocation:
        case vgpu::FindingKind::WriteToConstant:
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        case vgpu::FindingKind::Misaligned:
            return CUDA_ERROR_MISALIGNED_ADDRESS;
        case vgpu::FindingKind::Deadlock:
        case vgpu::FindingKind::NoProgress:
            return CUDA_ERROR_LAUNCH_TIMEOUT;
        default:
            return CUDA_ERROR_LAUNCH_FAILED;
    }
}

}  // namespace

const char* name_of(Memory::Kind kind) {
    switch (kind) {
        case Memory::Kind::kDevice:
            return "device";
        case Memory::Kind::kPool:
            return "pool";
        case Memory::Kind::kGlobal:
            return "module variable";
        case Memory::Kind::kPinned:
            return "pinned";
        case Memory::Kind::kRegistered:
            return "registered";
        case Memory::Kind::kManaged:
            return "managed";
    }
    return "?";
}

Context::Context(const Configuration& configuration, unsigned chosen, std::mutex& lock, Record& record)
    : flags(chosen),
      record_(record),
      machine_(std::make_unique<vgpu::Machine>(configuration.machine)),
      observers_(std::make_unique<observers::ObserverSet>(*machine_, configuration.observers_to_attach())),
      queues_(configuration.machine.seed, configuration.hold_back, lock) {
    if (configuration.count) machine_->attach(&counts_.emplace());
}

Context::~Context() {
    if (counts_) machine_->detach(&*counts_);
}

void Context::check() const {
    if (queues_.failed()) fail(queues_.failure());
}

void Context::note_failure(const std::exception& error) {
    CUresult code = CUDA_ERROR_LAUNCH_FAILED;
    if (const auto* const failure = dynamic_cast<const Failure*>(&error)) {
        code = failure->code;
    } else if (const auto* const fault = dynamic_cast<const vgpu::LaunchError*>(&error)) {
        code = result_of(*fault);
    }
    queues_.fail(code);
    record_.failed(error.what());
}

std::function<void()> Context::guarded(std::function<void()> run) {
    return [this, work = std::move(run)] {
        try {
            work();
        } catch (const std::exception& error) {
            note_failure(error);
        }
    };
}

Point Context::submit(const std::shared_ptr<Stream>& stream, std::function<void()> run) {
    return queues_.submit(stream, guarded(std::move(run)));
}

Point Context::submit_held(const std::shared_ptr<Stream>& stream, std::function<void()> run) {
    return queues_.submit_held(stream, guarded(std::move(run)));
}

void Context::synchronize(const std::shared_ptr<Stream>& stream) {
    queues_.run_all(stream);
    check();
}

void Context::synchronize() {
    queues_.run_all();
    check();
}

void Context::run_synchronously(std::function<void()> run) {
    queues_.run_to(submit(queues_.legacy(), std::move(run)));
    check();
}

CUdeviceptr Context::allocate(std::uint64_t bytes, Memory::Kind kind, CUmemoryPool pool) {
    Memory entry;
    try {
        entry.address = machine_->allocate(bytes);
    } catch (const vgpu::LaunchError&) {
        fail(CUDA_ERROR_OUT_OF_MEMORY);
    }
    entry.kind = kind;
    entry.bytes = bytes;
    entry.pool = pool;
    entry.id = next_handle();
    memory_[entry.address] = entry;
    return entry.address;
}

void Context::release(CUdeviceptr address) {
    if (memory_.erase(address) != 0) machine_->free(address);
}

const Memory* Context::find(CUdeviceptr address) const {
    auto it = memory_.upper_bound(address);
    if (it == memory_.begin()) return nullptr;
    const Memory& entry = (--it)->second;
    return address - entry.address < entry.bytes ? &entry : nullptr;
}

Memory Context::variable(const vgpu::Module& program, std::string_view name) {
    for (const vgpu::ast::Variable& variable : program.syntax().variables) {
        if (variable.name != name || (variable.space != vgpu::Space::Global && variable.space != vgpu::Space::Constant))
            continue;
        Memory entry;
        entry.kind = Memory::Kind::kGlobal;
        entry.address = machine_->variable(program, name);
        entry.bytes = variable.bytes;
        if (!memory_.contains(entry.address)) entry.id = next_handle(), memory_[entry.address] = entry;
        return memory_.at(entry.address);
    }
    fail(CUDA_ERROR_NOT_FOUND);
}

void Context::unload(const vgpu::Module& program) {
    for (const vgpu::ast::Variable& variable : program.syntax().variables) {
        if (variable.space != vgpu::Space::Global && variable.space != vgpu::Space::Constant) continue;
        const CUdeviceptr address = machine_->variable(program, variable.name);
        memory_.erase(address);
        machine_->free(address);
    }
}

void Context::launch(const vgpu::Module& program, const vgpu::EntryInfo& entry, const vgpu::LaunchConfig& config,
                     std::span<const std::byte> arguments) {
    KernelRecord& kernel = record_.of_kernel(program, entry);
    ++kernel.launches;
    try {
        const vgpu::LaunchStats stats = machine_->launch(program, entry.name, config, arguments);
        kernel.counters += stats.counters;
        for (const vgpu::InstructionCount& count : stats.instructions_by_kind)
            kernel.instructions[count.name] += count.lane_instructions;
        kernel.approximate.insert(stats.approximate_instructions.begin(), stats.approximate_instructions.end());
        queues_.nanoseconds += static_cast<double>(stats.counters.warp_instructions);
    } catch (const std::exception&) {
        ++kernel.failed_launches;
        throw;
    }
}

}  // namespace gradguard::vdriver
