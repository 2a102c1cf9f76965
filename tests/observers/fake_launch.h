// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/observers/accesses.h"
#include "harness/observers/detector.h"

/// A launch that exists only as the events a test makes up, so that observers are tested without a machine.
namespace gradguard::observers::test {

/// The first address of made-up allocation `number` (from 16 on, as the machine numbers them).
constexpr vgpu::Address allocation(std::uint64_t number) { return (number + 16) << vgpu::exec::kOffsetBits; }

struct Warp {
    std::uint64_t block = 0;
    std::uint32_t warp = 0;
    std::uint32_t mask = ~0U;
};

struct How {
    vgpu::Space space = vgpu::Space::Global;
    std::uint32_t bytes = 4;
    vgpu::Order order = vgpu::Order::Weak;
    vgpu::Scope scope = vgpu::Scope::Gpu;
    bool returns = true;
};

class FakeLaunch : public vgpu::Observed {
  public:
    FakeLaunch(Detector& detector, vgpu::LaunchConfig config, std::uint32_t shared_bytes = 4096)
        : detector_(detector), config_(config), shared_bytes_(shared_bytes) {
        detector_.launch_begin(*this);
        for (std::uint64_t b = 0; b < config_.grid.count(); ++b) detector_.block_begin(b);
    }
    /// All findings of the launch.
    std::vector<vgpu::Finding> end() {
        for (std::uint64_t b = 0; b < config_.grid.count(); ++b) detector_.block_end(b);
        detector_.launch_end({});
        return std::move(findings_);
    }

    const std::string& kernel() const override { return kernel_; }
    const vgpu::LaunchConfig& config() const override { return config_; }
    std::uint32_t shared_bytes_per_block() const override { return shared_bytes_; }
    /// Instruction n stands on line n.
    vgpu::Place place(std::uint32_t instruction) const override {
        return {kernel_, "made-up.ptx", instruction, "", "", 0, "", 0};
    }
    void report(vgpu::Finding finding) override { findings_.push_back(std::move(finding)); }
    bool stored_bytes(const vgpu::MemoryEvent&, std::uint32_t lane, std::span<std::byte> bytes) const override {
        if (!values_) return false;
        const std::uint64_t value = values_(lane);
        std::memcpy(bytes.data(), &value, std::min(bytes.size(), sizeof(value)));
        return true;
    }
    bool memory_bytes(const vgpu::MemoryEvent&, vgpu::Address address, std::span<std::byte> bytes) const override {
        const auto at = memory_.find(address);
        if (at == memory_.end()) return false;
        std::memcpy(bytes.data(), &at->second, std::min(bytes.size(), sizeof(at->second)));
        return true;
    }

    using Addresses = std::function<vgpu::Address(std::uint32_t lane)>;
    void load(Warp warp, std::uint32_t line, const Addresses& addresses, How access = {}) {
        send(vgpu::AccessKind::Load, warp, line, addresses, access);
    }
    void store(Warp warp, std::uint32_t line, const Addresses& addresses, How access = {}) {
        send(vgpu::AccessKind::Store, warp, line, addresses, access);
    }
    /// A store whose values the observers can see, as they can see memory that was stored to in this way.
    void store_values(Warp warp, std::uint32_t line, const Addresses& addresses, Addresses values) {
        values_ = std::move(values);
        send(vgpu::AccessKind::Store, warp, line, addresses, {});
        for (std::uint32_t i = 0; i < 32; ++i) {
            if (warp.mask >> i & 1) memory_[addresses(i)] = values_(i);
        }
        values_ = nullptr;
    }
    void atomic(Warp warp, std::uint32_t line, const Addresses& addresses, How access = {}) {
        if (access.order == vgpu::Order::Weak) access.order = vgpu::Order::Relaxed;
        send(vgpu::AccessKind::Atomic, warp, line, addresses, access);
    }
    void fence(Warp warp, std::uint32_t line, vgpu::Scope scope = vgpu::Scope::Gpu) {
        detector_.fence({{warp.block, warp.warp}, line, warp.mask, scope});
    }
    void warp_sync(Warp warp, std::uint32_t line) { detector_.warp_sync({{warp.block, warp.warp}, line, warp.mask}); }
    /// All warps of the block arrive, and go on.
    void barrier(std::uint64_t block, std::uint32_t line) {
        const auto threads = static_cast<std::uint32_t>(config_.block.count());
        for (std::uint32_t w = 0; w * 32 < threads; ++w) {
            const std::uint32_t mask = threads - w * 32 >= 32 ? ~0U : (1U << (threads - w * 32)) - 1;
            vgpu::BarrierEvent event{{block, w}, line, 0, mask, mask};
            detector_.barrier(event);
        }
        detector_.barrier_complete(block, 0);
    }
    void arrive(vgpu::BarrierEvent event) { detector_.barrier(event); }
    void complete(std::uint64_t block, std::uint32_t barrier) { detector_.barrier_complete(block, barrier); }

  private:
    void send(vgpu::AccessKind kind, Warp warp, std::uint32_t line, const Addresses& addresses, const How& access) {
        std::array<vgpu::Address, vgpu::kWarpLanes> list{};
        for (std::uint32_t i = 0; i < vgpu::kWarpLanes; ++i) {
            if (warp.mask >> i & 1) list[i] = addresses(i);
        }
        vgpu::MemoryEvent event{{warp.block, warp.warp}, line, access.space, kind, access.bytes, warp.mask, list};
        event.order = access.order;
        event.scope = access.scope;
        event.returns = access.returns;
        detector_.memory(event);
    }

    Detector& detector_;
    vgpu::LaunchConfig config_;
    std::uint32_t shared_bytes_;
    std::string kernel_ = "made_up";
    std::vector<vgpu::Finding> findings_;
    Addresses values_;
    std::map<vgpu::Address, std::uint64_t> memory_;
};

/// Lane i accesses base + (i + shift) * bytes.
inline FakeLaunch::Addresses row(vgpu::Address base, std::int64_t shift = 0, std::int64_t bytes = 4) {
    return [=](std::uint32_t lane) { return base + static_cast<std::uint64_t>((lane + shift) * bytes); };
}
inline FakeLaunch::Addresses same(vgpu::Address address) {
    return [=](std::uint32_t) { return address; };
}
inline constexpr How kShared{vgpu::Space::Shared};

}  // namespace gradguard::observers::test
