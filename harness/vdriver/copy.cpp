// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/copy.h"

#include <cstring>

#include "harness/vgpu/error.h"

namespace gradguard::vdriver {

using namespace cuda;  // NOLINT: the names of the driver API

namespace {

/// Device addresses lie beyond those of the host (vgpu::MachineOptions::host_addresses).
constexpr CUdeviceptr kFirstDeviceAddress = CUdeviceptr{1} << 48;

template <class Access>
auto access(const Access& get) {
    try {
        return get();
    } catch (const vgpu::LaunchError& error) {
        throw Failure(CUDA_ERROR_ILLEGAL_ADDRESS, std::string("queued copy or set: ") + error.what());
    }
}

template <class Each>
void for_each_row(const Extent& extent, const Each& each) {
    for (std::uint64_t z = 0; z < extent.depth; ++z) {
        for (std::uint64_t y = 0; y < extent.height; ++y) each(y, z);
    }
}

std::uint64_t row_start(const Rows& rows, std::uint64_t y, std::uint64_t z) {
    return rows.start + z * rows.slice + y * rows.pitch;
}

void copy_rows(const Rows& target, const Rows& source, const Extent& extent) {
    for_each_row(extent, [&](std::uint64_t y, std::uint64_t z) {
        std::memmove(target.place.writable(row_start(target, y, z), extent.width),
                     source.place.readable(row_start(source, y, z), extent.width), extent.width);
    });
}

/// The bytes of the rows, one after the other.
Rows snapshot(const Rows& source, const Extent& extent, std::vector<std::byte>& bytes) {
    bytes.resize(extent.width * extent.height * extent.depth);
    Rows packed;
    packed.place.host = bytes.data();
    packed.pitch = extent.width;
    packed.slice = extent.width * extent.height;
    copy_rows(packed, source, extent);
    return packed;
}

void poison(const Rows& target, const Extent& extent) {
    for_each_row(extent, [&](std::uint64_t y, std::uint64_t z) {
        std::memset(target.place.writable(row_start(target, y, z), extent.width), kPoison, extent.width);
    });
}

}  // namespace

const std::byte* Place::readable(std::uint64_t offset, std::uint64_t bytes) const {
    if (on_host()) return host + offset;
    return access([&] { return std::as_const(owner->machine()).host_pointer(address + offset, bytes); });
}

std::byte* Place::writable(std::uint64_t offset, std::uint64_t bytes) const {
    if (on_host()) return host + offset;
    return access([&] { return owner->machine().host_pointer(address + offset, bytes); });
}

Place device_place(Driver& driver, CUdeviceptr address, std::uint64_t bytes) {
    Place place;
    place.address = address;
    if (const std::shared_ptr<Context> owner = driver.owner_of(address)) {
        const Memory& memory = *owner->find(address);
        const std::uint64_t offset = address - memory.address;
        require(bytes <= memory.bytes - offset);
        if (memory.on_host()) {
            place.host = memory.host + offset;
            place.pinned = true;
        } else {
            place.owner = owner;
        }
        return place;
    }
    // A variable of a module that nobody asked for by name.
    place.owner = driver.current();
    try {
        std::as_const(place.owner->machine()).host_pointer(address, bytes);
    } catch (const vgpu::LaunchError&) {
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    return place;
}

Place host_place(Driver& driver, const void* memory, std::uint64_t bytes) {
    require(memory != nullptr);
    Place place;
    place.host = const_cast<std::byte*>(static_cast<const std::byte*>(memory));
    if (const Memory* const block = driver.pinned.find(memory)) {
        require(bytes <= block->bytes - static_cast<std::uint64_t>(place.host - block->host));
        place.pinned = true;
    }
    return place;
}

Place any_place(Driver& driver, CUdeviceptr address, std::uint64_t bytes) {
    if (address >= kFirstDeviceAddress) return device_place(driver, address, bytes);
    return host_place(driver, reinterpret_cast<const void*>(address), bytes);
}

void copy(const StreamOf& stream, const Rows& target, const Rows& source, const Extent& extent, bool synchronous) {
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return;
    Context& context = *stream.context;
    Queues& queues = context.queues();
    const double cost = static_cast<double>(extent.width * extent.height * extent.depth) * kNanosecondsPerByte;
    const auto work = [&queues, target, source, extent, cost] {
        copy_rows(target, source, extent);
        queues.nanoseconds += cost;
    };
    const bool host = target.place.on_host() || source.place.on_host();
    if (target.place.pageable() || (synchronous && host)) {
        queues.run_to(context.submit(stream.stream, work));
        context.check();
    } else if (source.place.pageable()) {
        const auto bytes = std::make_shared<std::vector<std::byte>>();
        const Rows packed = snapshot(source, extent, *bytes);
        context.submit(stream.stream, [&queues, target, packed, extent, cost, bytes] {
            copy_rows(target, packed, extent);
            queues.nanoseconds += cost;
        });
    } else if (target.place.on_host()) {
        // Work before it may use this memory, and may read it: that comes before the poison.
        queues.run_to(context.submit(stream.stream, [] {}));
        context.check();
        poison(target, extent);
        context.submit_held(stream.stream, work);
    } else {
        context.submit(stream.stream, work);
    }
}

}  // namespace gradguard::vdriver
