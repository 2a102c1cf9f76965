// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "harness/vdriver/export.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

CUresult allocate_from_pool(const char* function, CUdeviceptr* address, std::size_t bytes, CUmemoryPool chosen,
                            bool current_pool, CUstream handle) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const StreamOf stream = driver.stream(handle);
        require(address != nullptr && bytes > 0);
        const CUmemoryPool pool = current_pool ? driver.current_pool : chosen;
        const std::shared_ptr<Pool> object = driver.pools.get(pool, CUDA_ERROR_INVALID_VALUE);
        *address = stream.context->allocate(bytes, Memory::Kind::kPool, pool);
        object->used += bytes;
        object->used_high = std::max(object->used_high, object->used);
    });
}

bool is_statistic(int attribute) {
    return attribute >= CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT && attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

bool is_switch(int attribute) {
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

GRADGUARD_DRIVER_API cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
    return allocate_from_pool(__func__, address, bytes, nullptr, true, stream);
}

GRADGUARD_DRIVER_API cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                             CUstream stream) {
    return allocate_from_pool(__func__, address, bytes, pool, false, stream);
}

GRADGUARD_DRIVER_API cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        const StreamOf stream = driver.stream(handle);
        Context& context = *stream.context;
        Memory* const memory = context.find(address);
        require(memory != nullptr && memory->address == address && !memory->freed_in_stream);
        require(memory->kind == Memory::Kind::kPool || memory->kind == Memory::Kind::kDevice);
        memory->freed_in_stream = true;
        if (const auto pool = driver.pools.find(memory->pool)) pool->used -= memory->bytes;
        context.submit(stream.stream, [&context, address] { context.release(address); });
    });
}

GRADGUARD_DRIVER_API cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
    return initialized(__func__, [&](Driver& driver) {
        require(pool != nullptr && properties != nullptr);
        require(properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
        require(properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE && properties->location.id == 0);
        require(properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
        *pool = driver.pools.add(std::make_shared<Pool>());
    });
}

GRADGUARD_DRIVER_API cuMemPoolDestroy(CUmemoryPool pool) {
    return initialized(__func__, [&](Driver& driver) {
        require(pool != nullptr && pool != driver.default_pool);
        require(driver.pools.erase(pool));
        if (driver.current_pool == pool) driver.current_pool = driver.default_pool;
    });
}

GRADGUARD_DRIVER_API cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    return initialized(__func__, [&](Driver& driver) {
        require(value != nullptr);
        const std::shared_ptr<Pool> pool = driver.pools.get(handle, CUDA_ERROR_INVALID_VALUE);
        if (is_switch(attribute)) {
            pool->attributes[attribute] = *static_cast<const int*>(value) != 0 ? 1 : 0;
        } else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
            pool->attributes[attribute] = *static_cast<const std::uint64_t*>(value);
        } else {
            // High marks can be set back, to zero.
            require(is_statistic(attribute) && *static_cast<const std::uint64_t*>(value) == 0);
            require(attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH);
            pool->used_high = pool->used;
        }
    });
}

GRADGUARD_DRIVER_API cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
    return initialized(__func__, [&](Driver& driver) {
        require(value != nullptr);
        const std::shared_ptr<Pool> pool = driver.pools.get(handle, CUDA_ERROR_INVALID_VALUE);
        const auto set = pool->attributes.find(attribute);
        if (is_switch(attribute)) {
            *static_cast<int*>(value) = set == pool->attributes.end() ? 1 : static_cast<int>(set->second);
        } else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
            *static_cast<std::uint64_t*>(value) = set == pool->attributes.end() ? 0 : set->second;
        } else {
            require(is_statistic(attribute));
            const bool high =
                attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
            *static_cast<std::uint64_t*>(value) = high ? pool->used_high : pool->used;
        }
    });
}

GRADGUARD_DRIVER_API cuMemPoolTrimTo(CUmemoryPool pool, std::size_t) {
    return initialized(__func__, [&](Driver& driver) { driver.pools.get(pool, CUDA_ERROR_INVALID_VALUE); });
}

GRADGUARD_DRIVER_API cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count) {
    return initialized(__func__, [&](Driver& driver) {
        driver.pools.get(pool, CUDA_ERROR_INVALID_VALUE);
        require(access != nullptr || count == 0);
        for (std::size_t i = 0; i < count; ++i) {
            // The device of the pool keeps its access, and there is no other.
            require(access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && access[i].location.id == 0,
                    CUDA_ERROR_INVALID_DEVICE);
            require(access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        }
    });
}

GRADGUARD_DRIVER_API cuMemPoolGetAccess(int* flags, CUmemoryPool pool, const CUmemLocation* location) {
    return initialized(__func__, [&](Driver& driver) {
        require(flags != nullptr && location != nullptr);
        driver.pools.get(pool, CUDA_ERROR_INVALID_VALUE);
        require(location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == 0, CUDA_ERROR_INVALID_DEVICE);
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    });
}
