// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/launch.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace gradguard::vgpu {
namespace {

using ast::SpecialRegister;
using exec::kLanes;

template <class T>
void broadcast(std::byte* slot, T value) {
    for (unsigned i = 0; i < kLanes; ++i) std::memcpy(slot + i * sizeof(T), &value, sizeof(T));
}

std::uint64_t seed_of(std::uint64_t seed, std::uint64_t launch) { return mix(mix(seed) + launch); }

/// Of those that say how large the grid is.
std::uint32_t grid_special(SpecialRegister which, const LaunchConfig& config) {
    switch (which) {
        case SpecialRegister::NtidX:
            return config.block.x;
        case SpecialRegister::NtidY:
            return config.block.y;
        case SpecialRegister::NtidZ:
            return config.block.z;
        case SpecialRegister::NctaidX:
            return config.grid.x;
        case SpecialRegister::NctaidY:
            return config.grid.y;
        default:
            return config.grid.z;  // NctaidZ
    }
}

}  // namespace

Launch::Launch(const Setup& setup)
    : module_(setup.module),
      entry_(setup.entry),
      program_(setup.program),
      options_(setup.options),
      config_(setup.config),
      number_(setup.number),
      memory_(setup.memory),
      findings_(setup.findings),
      observers_(setup.observers),
      watched_(!setup.observers.empty() || setup.options.count_by_kind),
      watches_registers_(std::any_of(setup.observers.begin(), setup.observers.end(),
                                     [](const Observer* observer) { return observer->wants_registers(); })),
      seeded_(setup.options.seed != 0),
      random_(seed_of(setup.options.seed, setup.number)) {
    block_threads_ = static_cast<std::uint32_t>(config_.block.count());
    block_warps_ = (block_threads_ + kLanes - 1) / kLanes;
    shared_bytes_ = entry_.static_shared_bytes + config_.dynamic_shared_bytes;
    constants_ = allocate_aligned(program_.constant_bytes);
    fill_constants(setup.params, setup.variables);
    context_.base[1] = constants_.get();
    context_.owner = this;
    context_.approximation_seed = seeded_ ? mix(options_.seed) | 1 : 0;
    context_.shared_bytes = shared_bytes_;
    context_.param_address = setup.param_block;
    context_.local_bytes = entry_.local_bytes;
    counters_.launches = 1;
    if (options_.count_by_kind) {
        lanes_by_instruction_.resize(entry_.instructions.size());
        warps_by_instruction_.resize(entry_.instructions.size());
    }
    if (seeded_) wanted_residents_ = 1 + random_.below(4);
}

void Launch::fill_constants(std::span<const std::byte> params, std::span<const Address> variables) {
    for (const decode::Constant& constant : program_.constants) {
        std::uint64_t bits = constant.bits;
        switch (constant.kind) {
            case decode::Constant::Kind::Literal:
                break;
            case decode::Constant::Kind::Param: {
                bits = 0;
                std::memcpy(&bits, params.data() + constant.bits, constant.param_bytes);
                const unsigned shift = 64 - 8 * constant.param_bytes;
                if (constant.sign_extend) {
                    bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
                }
                break;
            }
            case decode::Constant::Kind::Variable:
                bits += variables[constant.variable];
                break;
            case decode::Constant::Kind::Special:
                bits = constant.bits <= static_cast<std::uint64_t>(SpecialRegister::NctaidZ)
                           ? grid_special(static_cast<SpecialRegister>(constant.bits), config_)
                           : launch_special(static_cast<SpecialRegister>(constant.bits));
                break;
        }
        std::byte* const slot = constants_.get() + constant.slot_offset;
        if (constant.bytes == 8)
            broadcast(slot, bits);
        else
            broadcast(slot, static_cast<std::uint32_t>(bits));
    }
}

Dim3 Launch::block_id(std::uint64_t index) const {
    const Dim3& grid = config_.grid;
    return {static_cast<std::uint32_t>(index % grid.x), static_cast<std::uint32_t>(index / grid.x % grid.y),
            static_cast<std::uint32_t>(index / grid.x / grid.y)};
}

Dim3 Launch::thread_id(std::uint32_t warp, unsigned lane) const {
    const std::uint32_t thread = warp * kLanes + lane;
    const Dim3& block = config_.block;
    if (thread < block.x) return {thread, 0, 0};  // most blocks are a row, and division is slow
    return {thread % block.x, thread / block.x % block.y, thread / block.x / block.y};
}

std::uint32_t Launch::lane_special(ast::SpecialRegister which, std::uint32_t warp, unsigned lane) const {
    const Dim3 thread = thread_id(warp, lane);
    switch (which) {
        case SpecialRegister::TidX:
            return thread.x;
        case SpecialRegister::TidY:
            return thread.y;
        case SpecialRegister::TidZ:
            return thread.z;
        case SpecialRegister::LaneId:
            return lane;
        case SpecialRegister::WarpId:
            return warp_identifier(warp);
        case SpecialRegister::LanemaskEq:
            return 1U << lane;
        case SpecialRegister::LanemaskLe:
            return (2U << lane) - 1;
        case SpecialRegister::LanemaskLt:
            return (1U << lane) - 1;
        case SpecialRegister::LanemaskGe:
            return ~((1U << lane) - 1);
        default:
            return ~((2U << lane) - 1);  // LanemaskGt
    }
}

/// Special registers of each lane. Those that do not depend on the block stay from block to block.
void Launch::fill_specials(BlockRun& block, bool fresh) const {
    const Dim3 id = block_id(block.index);
    for (const decode::SpecialSlot& special : program_.specials) {
        const bool is_ctaid = special.which == SpecialRegister::CtaidX || special.which == SpecialRegister::CtaidY ||
                              special.which == SpecialRegister::CtaidZ;
        const std::uint32_t ctaid = special.which == SpecialRegister::CtaidX   ? id.x
                                    : special.which == SpecialRegister::CtaidY ? id.y
                                                                               : id.z;
        for (std::uint32_t w = 0; w < block_warps_; ++w) {
            std::byte* const slot = block.warps[w].frame + special.offset;
            if (is_ctaid) {
                broadcast(slot, ctaid);
            } else if (fresh) {
                for (unsigned i = 0; i < kLanes; ++i) {
                    const std::uint32_t value = lane_special(special.which, w, i);
                    std::memcpy(slot + 4 * i, &value, 4);
                }
            }
        }
    }
}

std::unique_ptr<BlockRun> Launch::new_block() {
    auto block = std::make_unique<BlockRun>();
    const std::uint64_t frame_bytes = (program_.frame_bytes + 63) / 64 * 64;
    block->frames = allocate_aligned(frame_bytes * block_warps_);
    fill_with_poison(block->frames.get(), frame_bytes * block_warps_, mix(options_.seed) + residents_.size());
    block->shared = allocate_aligned(shared_bytes_);
    block->warps.resize(block_warps_);
    const std::uint64_t local_bytes = std::uint64_t{entry_.local_bytes} * kLanes;
    block->local = allocate_aligned(local_bytes * block_warps_);
    for (std::uint32_t w = 0; w < block_warps_; ++w) {
        block->warps[w].frame = block->frames.get() + w * frame_bytes;
        block->warps[w].local = block->local.get() + w * local_bytes;
    }
    return block;
}

void Launch::reset(BlockRun& block, std::uint64_t index) {
    block.index = index;
    block.live_threads = block_threads_;
    block.current_warp = 0;
    block.barriers = {};
    for (std::uint32_t w = 0; w < block_warps_; ++w) {
        const std::uint32_t lanes = std::min(block_threads_ - w * kLanes, kLanes);
        block.warps[w].reset(lanes == kLanes ? exec::kFullMask : (1U << lanes) - 1);
    }
    fill_specials(block, block.fresh);
    if (watches_registers_) reset_registers(block);
    block.fresh = false;
    if (entry_.local_bytes > 0) {
        fill_with_poison(block.local.get(), std::uint64_t{entry_.local_bytes} * kLanes * block_warps_,
                         mix(mix(mix(options_.seed) + number_) + ~index));
    }
    if (shared_bytes_ > 0) {
        fill_with_poison(block.shared.get(), shared_bytes_, mix(mix(mix(options_.seed) + number_) + index));
    }
}

Place Launch::place(std::uint32_t instruction) const {
    Place place;
    place.kernel = entry_.name;
    place.ptx_file = module_.file_name;
    if (instruction >= entry_.instructions.size()) return place;
    const ast::Instruction& syntax = entry_.instructions[instruction];
    place.ptx_line = syntax.line;
    place.instruction = syntax.text;
    if (const auto file = module_.source_files.find(syntax.source.file); file != module_.source_files.end()) {
        place.source_file = file->second;
        place.source_line = syntax.source.line;
    }
    if (const auto file = module_.source_files.find(syntax.inlined.file); file != module_.source_files.end()) {
        place.inlined_file = file->second;
        place.inlined_line = syntax.inlined.line;
    }
    return place;
}

LaunchStats Launch::stats() const {
    LaunchStats stats;
    stats.counters = counters_;
    stats.counters.lane_instructions -= context_.lanes_off;
    stats.counters.global_bytes_read = context_.global_bytes_read;
    stats.counters.global_bytes_written = context_.global_bytes_written;
    stats.fused_pairs = program_.fused_pairs;
    stats.register_reads = register_reads_;
    stats.approximate_instructions = program_.approximate;
    std::map<std::string, InstructionCount> by_name;
    for (std::size_t i = 0; i < warps_by_instruction_.size(); ++i) {
        if (warps_by_instruction_[i] == 0) continue;
        InstructionCount& count = by_name[entry_.instructions[i].name];
        count.name = entry_.instructions[i].name;
        count.lane_instructions += lanes_by_instruction_[i];
        count.warp_instructions += warps_by_instruction_[i];
    }
    for (auto& [name, count] : by_name) stats.instructions_by_kind.push_back(std::move(count));
    return stats;
}

void Launch::fault(const exec::Op& op, std::uint64_t address, unsigned lane) {
    const decode::OpEvent& event = program_.events[static_cast<std::size_t>(&op - program_.ops.data())];
    fault(op, event, static_cast<std::uint32_t>(op.lane_bytes) * op.elements, address, lane);
}

void Launch::fault_at(const exec::Op& op, exec::MemoryPlace place, std::uint64_t address, unsigned lane) {
    decode::OpEvent event;
    event.space = place.is_shared ? Space::Shared : Space::Global;
    event.access = place.is_store ? AccessKind::Store : AccessKind::Load;
    fault(op, event, place.bytes, address, lane);
}

void Launch::fault(const exec::Op& op, const decode::OpEvent& event, std::uint32_t bytes, std::uint64_t address,
                   unsigned lane) {
    Finding finding;
    finding.place = place(op.instruction);
    finding.block = block_id(running_block_->index);
    finding.thread = thread_id(running_warp_, lane);
    finding.access = event.access;
    finding.access_bytes = bytes;
    finding.address = address;
    const bool is_shared = event.space == Space::Shared ||
                           (event.space == Space::Generic && address >> exec::kOffsetBits == exec::kSharedWindow);
    const bool is_local = event.space == Space::Local ||
                          (event.space == Space::Generic && address >> exec::kOffsetBits == exec::kLocalWindow);
    finding.space = is_local                        ? Space::Local
                    : is_shared                     ? Space::Shared
                    : event.space == Space::Generic ? Space::Global
                                                    : event.space;
    const bool misaligned = address % finding.access_bytes != 0;
    const Memory::Info info = memory_.info(address);
    const bool writes = event.access != AccessKind::Load;
    if (is_shared || is_local) {
        const std::uint64_t size = is_shared ? shared_bytes_ : entry_.local_bytes;
        finding.allocation_bytes = size;
        const std::uint64_t offset = event.space == Space::Generic ? address & exec::kOffsetMask : address;
        const bool inside = finding.access_bytes <= size && offset <= size - finding.access_bytes;
        finding.kind = inside && misaligned ? FindingKind::Misaligned : FindingKind::OutOfBounds;
    } else if (!info.known) {
        finding.kind = FindingKind::NoSuchAllocation;
    } else {
        finding.allocation = info.start;
        finding.allocation_bytes = info.bytes;
        const std::uint64_t position = address - info.start;
        const bool inside = finding.access_bytes <= info.bytes && position <= info.bytes - finding.access_bytes;
        finding.kind = !info.live                ? FindingKind::UseAfterFree
                       : !inside                 ? FindingKind::OutOfBounds
                       : info.constant && writes ? FindingKind::WriteToConstant
                                                 : FindingKind::Misaligned;
    }
    report(finding);
    throw LaunchError(std::move(finding));
}

namespace exec {

void memory_fault(Context& context, const Op& op, std::uint64_t address, unsigned lane) {
    static_cast<Launch*>(context.owner)->fault(op, address, lane);
}

}  // namespace exec
}  // namespace gradguard::vgpu
