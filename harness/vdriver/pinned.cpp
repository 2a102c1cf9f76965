// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "harness/vdriver/driver.h"
#include "harness/vgpu/error.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace gradguard::vdriver {

using namespace cuda;  // NOLINT: the names of the driver API

namespace {

/// A machine takes one mapping in each of these (Machine::map_in_place).
constexpr std::uint64_t kWindow = std::uint64_t{1} << 36;
/// Windows that user space has on all 64-bit hosts, beyond the shadow of AddressSanitizer and before programs and
/// stacks.
constexpr std::uint64_t kFirstWindow = 0x110;
constexpr std::uint64_t kWindows = 0x7C0 - kFirstWindow;
constexpr std::uint64_t kPage = 4096;

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void map(Context& context, const Memory& block) {
    Memory entry = block;
    if (block.kind == Memory::Kind::kRegistered) {
        entry.address = context.machine().map(block.host, block.bytes);
    } else {
        context.machine().map_in_place(block.host, block.bytes);
    }
    context.add_memory(entry);
}

}  // namespace

/// Memory in a window of its own. Null when the host has none left.
void* PinnedMemory::reserve(std::uint64_t bytes) {
    const auto is_free = [&](std::uint64_t window) {
        const auto next = blocks_.lower_bound(window * kWindow);
        return next == blocks_.end() || next->first >= (window + 1) * kWindow;
    };
    for (std::uint64_t tries = 0; tries < kWindows; ++tries) {
        const std::uint64_t window = kFirstWindow + next_window_++ % kWindows;
        if (!is_free(window)) continue;
        void* const wanted = reinterpret_cast<void*>(window * kWindow);
        void* const got = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == wanted) return got;
        if (got != MAP_FAILED) munmap(got, bytes);  // a kernel that does not know the flag takes it for a hint
        if (got == MAP_FAILED && errno == ENOMEM) return nullptr;
    }
    return nullptr;
}

Memory PinnedMemory::allocate(std::uint64_t bytes, Memory::Kind kind, unsigned flags) {
    require(bytes < kWindow, CUDA_ERROR_OUT_OF_MEMORY);
    void* const host = reserve(whole_pages(bytes));
    require(host != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    Memory block;
    block.kind = kind;
    block.address = reinterpret_cast<std::uintptr_t>(host);
    block.bytes = bytes;
    block.host = static_cast<std::byte*>(host);
    block.flags = flags;
    block.id = next_handle();
    blocks_[block.address] = block;
    for (const auto& [handle, context] : Driver::get().contexts) map(*context, block);
    return block;
}

void PinnedMemory::add_registered(void* host, std::uint64_t bytes, unsigned flags) {
    Memory block;
    block.kind = Memory::Kind::kRegistered;
    block.address = reinterpret_cast<std::uintptr_t>(host);
    block.bytes = bytes;
    block.host = static_cast<std::byte*>(host);
    block.flags = flags;
    block.id = next_handle();
    const auto next = blocks_.lower_bound(block.address);
    require(next == blocks_.end() || next->first >= block.address + bytes, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    require(find(host) == nullptr, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    blocks_[block.address] = block;
    for (const auto& [handle, context] : Driver::get().contexts) map(*context, block);
}

void PinnedMemory::remove(const void* host, std::span<const Memory::Kind> kinds, CUresult otherwise) {
    const auto it = blocks_.find(reinterpret_cast<std::uintptr_t>(host));
    require(it != blocks_.end() && std::find(kinds.begin(), kinds.end(), it->second.kind) != kinds.end(), otherwise);
    const Memory block = it->second;
    // Queued work may use it: the driver waits.
    std::vector<std::shared_ptr<Context>> contexts;  // others may add some while host functions run
    for (const auto& [handle, context] : Driver::get().contexts) contexts.push_back(context);
    for (const auto& context : contexts) {
        context->queues().run_all();
        for (const auto& [address, entry] : context->memory()) {
            if (entry.host != block.host) continue;
            context->release(address);
            break;
        }
    }
    blocks_.erase(block.address);
    if (block.kind != Memory::Kind::kRegistered) munmap(block.host, whole_pages(block.bytes));
}

const Memory* PinnedMemory::find(const void* host) const {
    const auto address = reinterpret_cast<std::uintptr_t>(host);
    auto it = blocks_.upper_bound(address);
    if (it == blocks_.begin()) return nullptr;
    const Memory& block = (--it)->second;
    return address - block.address < block.bytes ? &block : nullptr;
}

void PinnedMemory::map_into(Context& context) const {
    for (const auto& [address, block] : blocks_) map(context, block);
}

void PinnedMemory::clear() {
    for (const auto& [address, block] : blocks_) {
        if (block.kind != Memory::Kind::kRegistered) munmap(block.host, whole_pages(block.bytes));
    }
    blocks_.clear();
}

}  // namespace gradguard::vdriver
