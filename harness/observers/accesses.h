// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include "harness/vgpu/exec/op.h"
#include "harness/vgpu/observer.h"

/// The shape of a warp's access, worked out once, so that the usual case (neighbouring lanes, neighbouring bytes) is
/// one step and not 32.
namespace gradguard::observers {

/// Lanes in a mask. Full masks are the usual case, and without -mpopcnt counting is a call.
inline std::uint32_t lane_count(std::uint32_t mask) {
    return mask == ~0U ? vgpu::kWarpLanes : static_cast<std::uint32_t>(std::popcount(mask));
}

/// Lanes [first, first + lanes) access `lanes * lane_bytes` bytes in a row, the first of them at `begin`.
struct Stretch {
    vgpu::Address begin = 0;
    std::uint32_t bytes = 0;
    std::uint32_t first = 0;
    std::uint32_t lanes = 0;
};

/// The event as one stretch; nothing when lanes or addresses have gaps, or when it is misaligned.
inline std::optional<Stretch> stretch_of(const vgpu::MemoryEvent& event) {
    if (event.mask == 0) return std::nullopt;
    const auto first = static_cast<std::uint32_t>(std::countr_zero(event.mask));
    const auto lanes = lane_count(event.mask);
    const vgpu::Address begin = event.addresses[first];
    const Stretch stretch{begin, lanes * event.lane_bytes, first, lanes};
    if (event.consecutive) return stretch;
    if (event.mask >> first != (lanes == 32 ? ~0U : (1U << lanes) - 1)) return std::nullopt;
    if ((begin & (event.lane_bytes - 1)) != 0) return std::nullopt;
    std::uint64_t wrong = 0;
    if (lanes == vgpu::kWarpLanes) {
        const vgpu::Address* const addresses = event.addresses.data();
        for (std::uint32_t i = 0; i < vgpu::kWarpLanes; ++i) wrong |= addresses[i] ^ (begin + i * event.lane_bytes);
    } else {
        for (std::uint32_t i = 0; i < lanes; ++i) wrong |= event.addresses[first + i] ^ (begin + i * event.lane_bytes);
    }
    if (wrong != 0) return std::nullopt;
    return stretch;
}

/// The address that all lanes share, if they do.
inline std::optional<vgpu::Address> common_address(const vgpu::MemoryEvent& event) {
    const vgpu::Address address = event.addresses[static_cast<unsigned>(std::countr_zero(event.mask))];
    for (std::uint32_t mask = event.mask; mask != 0; mask &= mask - 1) {
        if (event.addresses[static_cast<unsigned>(std::countr_zero(mask))] != address) return std::nullopt;
    }
    return address;
}

inline bool reads(const vgpu::MemoryEvent& event) { return event.kind != vgpu::AccessKind::Store; }
inline bool writes(const vgpu::MemoryEvent& event) { return event.kind != vgpu::AccessKind::Load; }

/// Calls `handle(event, space)` with Global or Shared, once or (generic addresses of both kinds in one warp) twice;
/// shared addresses are offsets in the block's shared memory. Other spaces are left out: they belong to one thread or
/// cannot be written.
template <class Handle>
void for_each_space(const vgpu::MemoryEvent& event, Handle&& handle) {
    using vgpu::Space;
    if (event.mask == 0) return;
    if (event.space == Space::Global || event.space == Space::Shared) return handle(event, event.space);
    if (event.space != Space::Generic) return;
    std::uint32_t shared = 0;
    for (std::uint32_t mask = event.mask; mask != 0; mask &= mask - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(mask));
        if (event.addresses[lane] >> vgpu::exec::kOffsetBits == vgpu::exec::kSharedWindow) shared |= 1U << lane;
    }
    if (shared == 0) return handle(event, Space::Global);
    if (shared != event.mask) {
        vgpu::MemoryEvent global = event;
        global.mask = event.mask & ~shared;
        global.consecutive = false;
        handle(global, Space::Global);
    }
    std::array<vgpu::Address, vgpu::kWarpLanes> offsets;
    for (std::uint32_t i = 0; i < vgpu::kWarpLanes; ++i) offsets[i] = event.addresses[i] & vgpu::exec::kOffsetMask;
    const vgpu::MemoryEvent inside{event.warp,
                                   event.instruction,
                                   Space::Shared,
                                   event.kind,
                                   event.lane_bytes,
                                   shared,
                                   offsets,
                                   event.order,
                                   event.scope,
                                   event.returns,
                                   shared == event.mask && event.consecutive};
    handle(inside, Space::Shared);
}

}  // namespace gradguard::observers
