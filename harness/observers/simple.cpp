// SPDX-License-Identifier: Apache-2.0
#include "harness/observers/simple.h"

#include <algorithm>
#include <bit>

#include "harness/observers/accesses.h"

namespace gradguard::observers {

void Bounds::memory(const vgpu::MemoryEvent& event) { accesses_ += std::uint64_t{lane_count(event.mask)}; }

const char* description_of(vgpu::RegisterUse use) {
    switch (use) {
        case vgpu::RegisterUse::AsAddress:
            return "the address";
        case vgpu::RegisterUse::AsGuard:
            return "the guard";
        case vgpu::RegisterUse::AsCondition:
            return "the condition";
        case vgpu::RegisterUse::InGlobal:
            return "the value stored";
        case vgpu::RegisterUse::InAtomic:
            return "an operand of the atomic";
        case vgpu::RegisterUse::AtBarrier:
            return "an operand of the barrier";
        case vgpu::RegisterUse::AsMemberMask:
            return "the member mask";
    }
    return "?";
}

void Registers::launch_begin(vgpu::Observed& launch) {
    launch_ = &launch;
    folder_.clear();
}

void Registers::launch_end(const vgpu::LaunchStats& stats) {
    reads_ += stats.register_reads;
    if (launch_) folder_.report_to(*launch_);
    launch_ = nullptr;
}

void Registers::undefined_register(const vgpu::UndefinedRegisterEvent& event) {
    if (event.loaded) return;
    for (std::uint32_t mask = event.mask; mask != 0; mask &= mask - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
        folder_.add(vgpu::FindingKind::UninitializedRegister, vgpu::Space::Generic, event.instruction, event.origin,
                    [&] { return describe(event, lane); });
    }
}

vgpu::Finding Registers::describe(const vgpu::UndefinedRegisterEvent& event, std::uint32_t lane) const {
    vgpu::Finding finding = finding_at(*launch_, event.warp, event.instruction, lane);
    finding.kind = vgpu::FindingKind::UninitializedRegister;
    finding.space = vgpu::Space::Generic;
    finding.register_name = event.origin_name;
    const std::string origin = event.origin_name.empty() ? "a register" : finding.register_name;
    finding.detail = std::string(description_of(event.use)) + " is undefined: nobody wrote " + origin;
    if (!event.name.empty() && event.name != event.origin_name)
        finding.detail += ", from which " + std::string(event.name) + " comes";
    return finding;
}

Checked Inputs::checked() const { return {std::string(name()), {{"writes", writes_}, {"reads of inputs", reads_}}}; }

void Inputs::mark_read_only(vgpu::Address address, std::uint64_t bytes) {
    if (bytes != 0) ranges_.push_back({address, address + bytes});
}

void Inputs::unmark(vgpu::Address address, std::uint64_t bytes) {
    const auto at = std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& range) {
        return range.begin == address && range.end == address + bytes;
    });
    if (at != ranges_.end()) ranges_.erase(at);
}

const Inputs::Range* Inputs::touched(vgpu::Address begin, vgpu::Address end) const {
    for (const Range& range : ranges_) {
        if (begin < range.end && range.begin < end) return &range;
    }
    return nullptr;
}

void Inputs::launch_begin(vgpu::Observed& launch) {
    launch_ = &launch;
    folder_.clear();
}

void Inputs::launch_end(const vgpu::LaunchStats&) {
    if (launch_) folder_.report_to(*launch_);
    launch_ = nullptr;
}

void Inputs::memory(const vgpu::MemoryEvent& event) {
    if (ranges_.empty() || event.space == vgpu::Space::Shared) return;
    for_each_space(event, [this](const vgpu::MemoryEvent& part, vgpu::Space space) {
        if (space == vgpu::Space::Shared) return;
        if (!writes(part)) {
            const vgpu::Address begin = part.addresses[static_cast<std::size_t>(std::countr_zero(part.mask))];
            if (touched(begin, begin + part.lane_bytes)) reads_ += std::uint64_t{lane_count(part.mask)};
            return;
        }
        writes_ += std::uint64_t{lane_count(part.mask)};
        const auto stretch = stretch_of(part);
        if (stretch && !touched(stretch->begin, stretch->begin + stretch->bytes)) return;
        for (std::uint32_t mask = part.mask; mask != 0; mask &= mask - 1) {
            const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
            const vgpu::Address address = part.addresses[lane];
            const Range* const range = touched(address, address + part.lane_bytes);
            if (!range) continue;
            folder_.add(vgpu::FindingKind::WriteToInput, space, part.instruction, 0, [&] {
                vgpu::Finding finding = finding_for(*launch_, part, lane, space, address);
                finding.kind = vgpu::FindingKind::WriteToInput;
                finding.allocation = range->begin;
                finding.allocation_bytes = range->end - range->begin;
                return finding;
            });
        }
    });
}

void Leaks::allocated(vgpu::Address address, std::uint64_t bytes) {
    live_[address] = bytes;
    ++allocations_;
}

std::vector<vgpu::Finding> Leaks::final_findings() const {
    std::vector<vgpu::Finding> findings;
    for (const auto& [address, bytes] : live_) {
        vgpu::Finding finding;
        finding.kind = vgpu::FindingKind::Leak;
        finding.address = finding.allocation = address;
        finding.allocation_bytes = bytes;
        findings.push_back(std::move(finding));
    }
    return findings;
}

void Barriers::launch_begin(vgpu::Observed& launch) {
    launch_ = &launch;
    folder_.clear();
    phases_.clear();
    last_ = nullptr;
}

void Barriers::launch_end(const vgpu::LaunchStats&) {
    if (launch_) folder_.report_to(*launch_);
    launch_ = nullptr;
}

Barriers::Phases& Barriers::phases_of(std::uint64_t block) {
    if (!last_ || last_block_ != block) {
        last_ = &phases_[block];
        last_block_ = block;
    }
    return *last_;
}

void Barriers::barrier(const vgpu::BarrierEvent& event) {
    ++arrivals_;
    if (event.barrier >= kBarriers) return;  // the machine refuses it
    const auto threads = static_cast<std::uint32_t>(launch_->config().block.count());
    const std::uint32_t expected = event.expected == 0 ? threads : event.expected;
    Phase& phase = phases_of(event.warp.block)[event.barrier];
    if (phase.empty) {
        phase = {expected, event.instruction, event.warp, static_cast<std::uint32_t>(std::countr_zero(event.mask)),
                 false};
    } else if (phase.expected != expected) {
        mismatch(event, phase,
                 "expects " + std::to_string(expected) + " threads, the other " + std::to_string(phase.expected));
    } else if (event.expected == 0 && phase.instruction != event.instruction && phase.warp.warp != event.warp.warp) {
        mismatch(event, phase, "warps reach one barrier of the whole block at different places");
    }
}

void Barriers::mismatch(const vgpu::BarrierEvent& event, const Phase& other, std::string detail) {
    folder_.add(vgpu::FindingKind::BarrierMismatch, vgpu::Space::Shared, event.instruction, other.instruction, [&] {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(event.mask));
        vgpu::Finding finding = finding_at(*launch_, event.warp, event.instruction, lane);
        finding.kind = vgpu::FindingKind::BarrierMismatch;
        finding.other = launch_->place(other.instruction);
        finding.other_block = finding.block;
        finding.other_thread = unflatten(std::uint64_t{other.warp.warp} * 32 + other.lane, launch_->config().block);
        finding.detail = std::move(detail);
        return finding;
    });
}

void Barriers::barrier_complete(std::uint64_t block, std::uint32_t barrier) {
    ++completed_;
    if (barrier < kBarriers) phases_of(block)[barrier].empty = true;
}

void Barriers::block_end(std::uint64_t block) {
    phases_.erase(block);
    last_ = nullptr;
}

}  // namespace gradguard::observers
