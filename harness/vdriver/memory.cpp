// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/export.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

constexpr std::size_t kPitch = 512;

/// Frees memory of cuMemAlloc and of pools, now.
void free_device_memory(Driver& driver, CUdeviceptr address) {
    const std::shared_ptr<Context> context = driver.owner_of(address);
    require(context != nullptr);
    context->check();
    Memory* const memory = context->find(address);
    require(memory->address == address && !memory->freed_in_stream);
    switch (memory->kind) {
        case Memory::Kind::kDevice:
            // The driver waits for what is queued. Pool memory it frees at once: what still uses it was not waited for.
            context->synchronize();
            break;
        case Memory::Kind::kPool:
            if (const auto pool = driver.pools.find(memory->pool)) pool->used -= memory->bytes;
            break;
        case Memory::Kind::kManaged: {
            constexpr Memory::Kind kManaged[] = {Memory::Kind::kManaged};
            driver.pinned.remove(memory->host, kManaged, CUDA_ERROR_INVALID_VALUE);
            return;
        }
        default:
            fail(CUDA_ERROR_INVALID_VALUE);
    }
    context->release(address);
}

CUresult allocate_host(const char* function, void** memory, std::size_t bytes, unsigned flags) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        driver.current()->check();
        require(memory != nullptr && bytes > 0 && (flags & ~7U) == 0);
        *memory = driver.pinned.allocate(bytes, Memory::Kind::kPinned, flags | CU_MEMHOSTALLOC_DEVICEMAP).host;
    });
}

CUresult address_range(const char* function, CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<Context> context = driver.owner_of(address);
        require(context != nullptr, CUDA_ERROR_NOT_FOUND);
        const Memory& memory = *context->find(address);
        if (base != nullptr) *base = memory.address;
        if (bytes != nullptr) *bytes = memory.bytes;
    });
}

}  // namespace

GRADGUARD_DRIVER_API cuMemGetInfo_v2(std::size_t* available, std::size_t* total) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<Context> context = driver.current();
        context->check();
        require(available != nullptr && total != nullptr);
        *total = driver.configuration.machine.limits.max_memory_bytes;
        *available = *total - context->machine().allocated_bytes();
    });
}

GRADGUARD_DRIVER_API cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
    return in_context(__func__, [&](Context& context) {
        require(address != nullptr && bytes > 0);
        *address = context.allocate(bytes, Memory::Kind::kDevice);
    });
}

GRADGUARD_DRIVER_API cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
                                        unsigned element_bytes) {
    return in_context(__func__, [&](Context& context) {
        require(address != nullptr && pitch != nullptr && width > 0 && height > 0);
        require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
        require(width < SIZE_MAX - kPitch);
        *pitch = (width + kPitch - 1) / kPitch * kPitch;
        require(height <= SIZE_MAX / *pitch, CUDA_ERROR_OUT_OF_MEMORY);
        *address = context.allocate(*pitch * height, Memory::Kind::kDevice);
    });
}

GRADGUARD_DRIVER_API cuMemFree_v2(CUdeviceptr address) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        if (address == 0) return;  // as free(NULL)
        free_device_memory(driver, address);
    });
}

GRADGUARD_DRIVER_API cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
    return address_range(__func__, base, bytes, address);
}

// ---- memory of the host --------------------------------------------------------------------------------------------

GRADGUARD_DRIVER_API cuMemAllocHost_v2(void** memory, std::size_t bytes) {
    return allocate_host(__func__, memory, bytes, 0);
}

GRADGUARD_DRIVER_API cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
    return allocate_host(__func__, memory, bytes, flags);
}

GRADGUARD_DRIVER_API cuMemFreeHost(void* memory) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        constexpr Memory::Kind kPinned[] = {Memory::Kind::kPinned};
        driver.pinned.remove(memory, kPinned, CUDA_ERROR_INVALID_VALUE);
    });
}

GRADGUARD_DRIVER_API cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        driver.current()->check();
        require(memory != nullptr && bytes > 0 && (flags & ~15U) == 0);
        require((flags & CU_MEMHOSTREGISTER_IOMEMORY) == 0, CUDA_ERROR_NOT_SUPPORTED);
        driver.pinned.add_registered(memory, bytes, flags);
    });
}

GRADGUARD_DRIVER_API cuMemHostUnregister(void* memory) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        constexpr Memory::Kind kRegistered[] = {Memory::Kind::kRegistered};
        require(memory != nullptr);
        driver.pinned.remove(memory, kRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    });
}

GRADGUARD_DRIVER_API cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned flags) {
    return in_context(__func__, [&](Context& context) {
        require(address != nullptr && flags == 0);
        const Memory* const block = Driver::get().pinned.find(memory);
        require(block != nullptr);
        const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - block->host);
        for (const auto& [start, entry] : context.memory()) {
            if (entry.host != block->host) continue;
            *address = start + offset;
            return CUDA_SUCCESS;
        }
        return CUDA_ERROR_INVALID_VALUE;
    });
}

GRADGUARD_DRIVER_API cuMemHostGetFlags(unsigned* flags, void* memory) {
    return in_context(__func__, [&](Context&) {
        require(flags != nullptr);
        const Memory* const block = Driver::get().pinned.find(memory);
        require(block != nullptr && block->kind == Memory::Kind::kPinned);
        *flags = block->flags;
    });
}

GRADGUARD_DRIVER_API cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        driver.current()->check();
        require(address != nullptr && bytes > 0);
        require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
        *address = driver.pinned.allocate(bytes, Memory::Kind::kManaged, flags).address;
    });
}
