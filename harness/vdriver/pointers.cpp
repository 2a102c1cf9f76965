// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "harness/vdriver/export.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

/// What is known of an address: memory of a context, or of the host; null: neither.
struct Known {
    std::shared_ptr<Context> context;
    const Memory* memory = nullptr;
};

Known look_up(Driver& driver, CUdeviceptr address) {
    if (const std::shared_ptr<Context> owner = driver.owner_of(address)) return {owner, owner->find(address)};
    // Registered memory has another address for kernels than for the host.
    const Memory* const block = driver.pinned.find(reinterpret_cast<const void*>(address));
    if (block == nullptr) return {};
    const std::vector<CUcontext>& stack = context_stack();
    return {stack.empty() ? nullptr : driver.contexts.find(stack.back()), block};
}

template <class Value>
void store(void* target, const Value& value) {
    std::memcpy(target, &value, sizeof value);
}

CUdeviceptr device_pointer(const Known& known, CUdeviceptr address) {
    const Memory& memory = *known.memory;
    if (memory.kind != Memory::Kind::kRegistered || !known.context) return address;
    for (const auto& [start, entry] : known.context->memory()) {
        if (entry.host == memory.host) return start + (address - memory.address);
    }
    return address;
}

/// Writes the attribute of memory that is known. Throws Failure INVALID_VALUE for an attribute that is not.
void write_attribute(void* value, int attribute, const Known& known, CUdeviceptr address) {
    const Memory& memory = *known.memory;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return store(value, known.context ? known.context->handle : nullptr);
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: {
            const bool host = memory.on_host() && memory.kind != Memory::Kind::kManaged;
            return store<unsigned>(value, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        }
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return store(value, device_pointer(known, address));
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            require(memory.on_host());
            return store<void*>(value, memory.host + (address - memory.address));
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
            return store<unsigned>(value, 0);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            return store<unsigned long long>(value, memory.id);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return store<unsigned>(value, memory.kind == Memory::Kind::kManaged ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return store<int>(value, 0);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return store<CUdeviceptr>(value, memory.address);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return store<std::size_t>(value, memory.bytes);
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return store<unsigned>(value, 1);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return store<std::uint64_t>(value, 0);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return store<int>(value, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return store(value, memory.pool);
        default:
            fail(CUDA_ERROR_INVALID_VALUE);
    }
}

std::size_t size_of_attribute(int attribute) {
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return 4;
        default:
            return 8;
    }
}

}  // namespace

GRADGUARD_DRIVER_API cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
    return initialized(__func__, [&](Driver& driver) {
        require(value != nullptr);
        const Known known = look_up(driver, address);
        require(known.memory != nullptr);
        write_attribute(value, attribute, known, address);
    });
}

/// Unlike the single form, this one tells zeros of memory that the driver does not know, and of an attribute that it
/// lacks.
GRADGUARD_DRIVER_API cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                            CUdeviceptr address) {
    return initialized(__func__, [&](Driver& driver) {
        require(count > 0 && attributes != nullptr && values != nullptr);
        const Known known = look_up(driver, address);
        for (unsigned i = 0; i < count; ++i) {
            require(values[i] != nullptr);
            std::memset(values[i], 0, size_of_attribute(attributes[i]));
            if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) store<int>(values[i], -2);  // CU_DEVICE_INVALID
            if (known.memory == nullptr) continue;
            try {
                write_attribute(values[i], attributes[i], known, address);
            } catch (const Failure&) {
                continue;
            }
        }
    });
}

GRADGUARD_DRIVER_API cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
    return initialized(__func__, [&](Driver& driver) {
        require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
        require(look_up(driver, address).memory != nullptr);
    });
}

// ---- advice about managed memory: there is one copy of it ----------------------------------------------------------

namespace {

void require_managed(Driver& driver, CUdeviceptr address, std::size_t bytes) {
    const Known known = look_up(driver, address);
    require(bytes > 0 && known.memory != nullptr && known.memory->kind == Memory::Kind::kManaged);
    require(bytes <= known.memory->bytes - (address - known.memory->address));
}

CUresult advise(const char* function, CUdeviceptr address, std::size_t bytes, int advice) {
    return initialized(function, [&](Driver& driver) {
        require(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
        require_managed(driver, address, bytes);
    });
}

CUresult prefetch(const char* function, CUdeviceptr address, std::size_t bytes, CUstream handle) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const StreamOf stream = driver.stream(handle);
        require_managed(driver, address, bytes);
        stream.context->submit(stream.stream, [] {});
    });
}

}  // namespace

GRADGUARD_DRIVER_API cuMemAdvise(CUdeviceptr address, std::size_t bytes, int advice, CUdevice) {
    return advise(__func__, address, bytes, advice);
}
GRADGUARD_DRIVER_API cuMemAdvise_v2(CUdeviceptr address, std::size_t bytes, int advice, CUmemLocation) {
    return advise(__func__, address, bytes, advice);
}
GRADGUARD_DRIVER_API cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUdevice, CUstream stream) {
    return prefetch(__func__, address, bytes, stream);
}
GRADGUARD_DRIVER_API cuMemPrefetchAsync_v2(CUdeviceptr address, std::size_t bytes, CUmemLocation, unsigned,
                                           CUstream stream) {
    return prefetch(__func__, address, bytes, stream);
}
