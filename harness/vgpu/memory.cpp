// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/memory.h"

#include <cstring>
#include <new>
#include <sstream>

#include "harness/vgpu/error.h"
#include "harness/vgpu/random.h"

namespace gradguard::vgpu {
namespace {

constexpr std::uint64_t kAlignment = 256;
/// User addresses of the host have at most 48 bits.
constexpr std::uint64_t kFirstBeyondHost = std::uint64_t{1} << (48 - exec::kOffsetBits);
constexpr std::uint64_t kMaxAllocations = std::uint64_t{1} << 27;

std::string hex(std::uint64_t value) {
    std::ostringstream text;
    text << "0x" << std::hex << value;
    return text.str();
}

}  // namespace

void fill_with_poison(std::byte* data, std::uint64_t bytes, std::uint64_t key) {
    const std::uint64_t random = mix(key);
    const bool nans = (random >> 40 & 1) != 0;
    const std::uint32_t family = nans ? 0x7FC00000U : 0x42000000U;
    const std::uint32_t varying = nans ? 0x803FFFFFU : 0x80FFFFFFU;
    const auto start = static_cast<std::uint32_t>(random);
    // In pieces of a fixed size, so that the compiler makes vectors of them: every launch fills its registers.
    constexpr std::uint32_t kPiece = 32;
    constexpr std::uint32_t kStep = 4 * 0x9E3779B1U;
    std::uint32_t place = start;
    std::uint64_t i = 0;
    for (; i + 4 * kPiece <= bytes; i += 4 * kPiece, place += kPiece * kStep) {
        std::uint32_t words[kPiece];
        for (std::uint32_t k = 0; k < kPiece; ++k) words[k] = family | ((place + k * kStep) & varying);
        std::memcpy(data + i, words, sizeof words);
    }
    for (; i + 4 <= bytes; i += 4, place += kStep) {
        const std::uint32_t word = family | (place & varying);
        std::memcpy(data + i, &word, 4);
    }
    for (; i < bytes; ++i) data[i] = static_cast<std::byte>(random >> (8 * (i & 3)));
}

void AlignedDelete::operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t{kAlignment}); }

AlignedBytes allocate_aligned(std::uint64_t bytes) {
    return AlignedBytes(new (std::align_val_t{kAlignment}) std::byte[bytes > 0 ? bytes : 1]);
}

Memory::Memory(std::uint64_t seed, std::uint64_t max_bytes, bool host_addresses)
    : seed_(seed), max_bytes_(max_bytes), first_(host_addresses ? kFirstBeyondHost : exec::kFirstAllocation) {
    views_.resize(first_);  // windows: nothing can be accessed there
    allocations_.resize(first_);
}

Address Memory::add(Allocation allocation, std::byte* data, std::uint64_t begin) {
    const std::uint64_t number = views_.size();
    if (number >= kMaxAllocations) throw LaunchError("allocate: no address numbers left");
    allocation.start = (number << exec::kOffsetBits) + begin;
    allocation.live = true;
    const std::uint64_t bytes = allocation.bytes;
    allocations_.push_back(std::move(allocation));
    try {
        views_.push_back({data, begin, bytes, bytes});
    } catch (...) {
        allocations_.pop_back();  // the two tables number alike, also when the host has no memory for one of them
        throw;
    }
    ++live_;
    return allocations_.back().start;
}

Address Memory::allocate(std::uint64_t bytes) {
    if (bytes > max_bytes_ || allocated_bytes_ > max_bytes_ - bytes) {
        throw LaunchError("allocate: out of memory: " + std::to_string(bytes) + " bytes wanted, " +
                          std::to_string(allocated_bytes_) + " of " + std::to_string(max_bytes_) + " in use");
    }
    if (bytes > exec::kOffsetMask)
        throw LaunchError("allocate: one allocation of " + std::to_string(bytes) + " bytes is too large");
    Allocation allocation;
    try {
        allocation.storage = allocate_aligned(bytes);
    } catch (const std::bad_alloc&) {
        throw LaunchError("allocate: the host has no " + std::to_string(bytes) + " bytes left");
    }
    allocation.bytes = bytes;
    std::byte* const data = allocation.storage.get();
    fill_with_poison(data, bytes, mix(seed_) ^ views_.size());
    const Address address = add(std::move(allocation), data, 0);
    allocated_bytes_ += bytes;
    return address;
}

Address Memory::map(void* host, std::uint64_t bytes) {
    if (host == nullptr && bytes > 0) throw LaunchError("map: null host pointer");
    const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(host) % kAlignment;
    if (bytes > exec::kOffsetMask - begin) throw LaunchError("map: " + std::to_string(bytes) + " bytes are too many");
    Allocation allocation;
    allocation.bytes = bytes;
    return add(std::move(allocation), static_cast<std::byte*>(host), begin);
}

Address Memory::map_in_place(void* host, std::uint64_t bytes) {
    const auto address = static_cast<Address>(reinterpret_cast<std::uintptr_t>(host));
    const std::uint64_t number = address >> exec::kOffsetBits;
    const std::uint64_t begin = address & exec::kOffsetMask;
    const auto refuse = [&](const char* why) { throw LaunchError("map: host memory at " + hex(address) + why); };
    if (first_ != kFirstBeyondHost) refuse(": the machine keeps no host addresses free");
    if (number < exec::kFirstAllocation || number >= first_) refuse(" has an address that kernels cannot use");
    if (bytes > exec::kOffsetMask - begin) refuse(" reaches into the next 2^36 bytes");
    if (allocations_[number].live) refuse(" is too near to other mapped memory");
    allocations_[number] = {nullptr, address, bytes, true, false};
    views_[number] = {static_cast<std::byte*>(host), begin, bytes, bytes};
    ++live_;
    return address;
}

void Memory::free(Address address) {
    const Info found = info(address);
    if (!found.known || found.start != address)
        throw LaunchError("free: " + hex(address) + " is not the start of an allocation");
    if (!found.live) throw LaunchError("free: " + hex(address) + " was freed before");
    const std::uint64_t number = address >> exec::kOffsetBits;
    Allocation& allocation = allocations_[number];
    if (allocation.storage) allocated_bytes_ -= allocation.bytes;
    allocation.storage.reset();
    allocation.live = false;
    views_[number] = {};
    --live_;
}

std::byte* Memory::locate(Address address, std::uint64_t bytes) const {
    const std::uint64_t number = address >> exec::kOffsetBits;
    if (number < views_.size()) {
        const exec::AllocationView& view = views_[number];
        const std::uint64_t position = (address & exec::kOffsetMask) - view.begin;
        if (allocations_[number].live && bytes <= view.bytes && position <= view.bytes - bytes)
            return view.data + position;
    }
    const Info found = info(address);
    throw LaunchError("host access to " + std::to_string(bytes) + " bytes at " + hex(address) +
                      (!found.known  ? ": no such allocation"
                       : !found.live ? ": the allocation was freed"
                                     : ": outside its allocation of " + std::to_string(found.bytes) + " bytes"));
}

void Memory::make_constant(Address address) {
    const std::uint64_t number = address >> exec::kOffsetBits;
    allocations_[number].constant = true;
    views_[number].writable_bytes = 0;
}

Memory::Info Memory::info(Address address) const {
    const std::uint64_t number = address >> exec::kOffsetBits;
    if (number < exec::kFirstAllocation || number >= allocations_.size()) return {};
    const Allocation& allocation = allocations_[number];
    if (allocation.start == 0) return {};  // a host address that was never mapped
    return {true, allocation.live, allocation.constant, allocation.start, allocation.bytes};
}

std::vector<Memory::Info> Memory::live() const {
    std::vector<Info> result;
    for (const Allocation& allocation : allocations_) {
        if (allocation.live) result.push_back({true, true, allocation.constant, allocation.start, allocation.bytes});
    }
    return result;
}

}  // namespace gradguard::vgpu
