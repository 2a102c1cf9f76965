// SPDX-License-Identifier: Apache-2.0
#include "harness/observers/init.h"

#include <bit>

#include "harness/observers/accesses.h"
#include "harness/observers/simple.h"

namespace gradguard::observers {

using vgpu::Space;

Checked Init::checked() const {
    Checked result{std::string(name()), {{"global reads", global_reads_}, {"shared reads", shared_reads_}}};
    // Few kernels have local memory; others need not say that they have not.
    if (local_reads_ != 0) result.counts.emplace_back("local reads", local_reads_);
    return result;
}

void Init::launch_begin(vgpu::Observed& launch) {
    launch_ = &launch;
    folder_.clear();
    shared_bytes_ = launch.shared_bytes_per_block();
    for (auto& entry : shared_) spare_.push_back(std::move(entry.second));
    shared_.clear();
    last_shared_ = nullptr;
}

DefinedBytes& Init::shared_of(std::uint64_t block) {
    if (last_shared_ && last_block_ == block) return *last_shared_;
    auto& memory = shared_[block];
    if (!memory) {
        if (spare_.empty()) {
            memory = std::make_unique<DefinedBytes>(shared_bytes_);
        } else {
            memory = std::move(spare_.back());
            spare_.pop_back();
            memory->reset(shared_bytes_);
        }
    }
    last_block_ = block;
    last_shared_ = memory.get();
    return *memory;
}

void Init::block_begin(std::uint64_t block) {
    if (shared_bytes_ != 0) shared_of(block);
}

void Init::block_end(std::uint64_t block) {
    const auto at = shared_.find(block);
    if (at == shared_.end()) return;
    spare_.push_back(std::move(at->second));
    shared_.erase(at);
    last_shared_ = nullptr;
}

void Init::launch_end(const vgpu::LaunchStats&) {
    if (launch_) folder_.report_to(*launch_);
    launch_ = nullptr;
}

void Init::host_wrote(vgpu::Address address, std::uint64_t bytes) {
    auto* const entry = global_.find(address);
    if (entry && entry->holds(address, bytes)) entry->get().define(address - entry->begin, bytes);
}

void Init::memory(const vgpu::MemoryEvent& event) {
    if (event.space == Space::Local) {
        if (reads(event)) local_reads_ += std::uint64_t{lane_count(event.mask)};
        return;
    }
    for_each_space(event, [this](const vgpu::MemoryEvent& part, Space space) { access(part, space); });
}

void Init::access(const vgpu::MemoryEvent& event, Space space) {
    if (reads(event)) {
        (space == Space::Shared ? shared_reads_ : global_reads_) += std::uint64_t{lane_count(event.mask)};
    }
    const auto visit = [&](vgpu::Address address, std::uint32_t bytes, std::uint32_t first) {
        if (space == Space::Shared) {
            if (address > shared_bytes_ || bytes > shared_bytes_ - address) return false;
            check(event, space, shared_of(event.warp.block), 0, address, bytes, first);
            return true;
        }
        auto* const entry = global_.find(address);
        if (!entry || !entry->holds(address, bytes)) return false;
        check(event, space, entry->get(), entry->begin, address - entry->begin, bytes, first);
        return true;
    };
    const auto stretch = stretch_of(event);
    if (stretch && visit(stretch->begin, stretch->bytes, stretch->first)) return;
    for (std::uint32_t mask = event.mask; mask != 0; mask &= mask - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
        visit(event.addresses[lane], event.lane_bytes, lane);
    }
}

void Init::undefined_register(const vgpu::UndefinedRegisterEvent& event) {
    if (!event.loaded) return;
    for (std::uint32_t mask = event.mask; mask != 0; mask &= mask - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
        folder_.add(vgpu::FindingKind::UninitializedRead, Space::Local, event.loaded->instruction, event.instruction,
                    [&] { return describe(event, lane); });
    }
}

vgpu::Finding Init::describe(const vgpu::UndefinedRegisterEvent& event, std::uint32_t lane) const {
    vgpu::Finding finding = finding_at(*launch_, event.warp, event.loaded->instruction, lane);
    finding.kind = vgpu::FindingKind::UninitializedRead;
    finding.space = Space::Local;
    finding.access_bytes = event.loaded->bytes;
    finding.address = event.loaded->address;
    finding.other = launch_->place(event.instruction);
    finding.other_block = finding.block;
    finding.other_thread = finding.thread;
    finding.other_access = event.use == vgpu::RegisterUse::InGlobal   ? vgpu::AccessKind::Store
                           : event.use == vgpu::RegisterUse::InAtomic ? vgpu::AccessKind::Atomic
                                                                      : vgpu::AccessKind::Load;
    finding.detail = std::string(description_of(event.use)) + " is undefined";
    if (!event.name.empty()) finding.detail += ", " + std::string(event.name);
    return finding;
}

void Init::check(const vgpu::MemoryEvent& event, Space space, DefinedBytes& memory, vgpu::Address base,
                 std::uint64_t offset, std::uint32_t bytes, std::uint32_t first) {
    if (reads(event) && !memory.is_defined(offset, bytes)) {
        const std::uint64_t end = offset + bytes;
        for (std::uint64_t at = offset; at < end;) {
            const std::uint64_t absent = memory.first_undefined(at, end - at);
            if (absent == end) break;
            const auto index = static_cast<std::uint32_t>((absent - offset) / event.lane_bytes);
            folder_.add(vgpu::FindingKind::UninitializedRead, space, event.instruction, 0, [&] {
                vgpu::Finding finding = finding_for(*launch_, event, first + index, space, base + absent);
                finding.kind = vgpu::FindingKind::UninitializedRead;
                if (const auto* const entry = space == Space::Global ? global_.find(finding.address) : nullptr) {
                    finding.allocation = entry->begin;
                    finding.allocation_bytes = entry->bytes;
                }
                return finding;
            });
            at = offset + std::uint64_t{index + 1} * event.lane_bytes;
        }
    }
    if (writes(event)) memory.define(offset, bytes);
}

}  // namespace gradguard::observers
