// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>
#include <string>

#include "harness/vdriver/device_attributes.h"
#include "harness/vdriver/export.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

constexpr char kName[] = "gradguard virtual GPU";
constexpr char kBusId[] = "0000:00:00.0";
constexpr CUuuid kUuid{{'g', 'r', 'a', 'd', 'g', 'u', 'a', 'r', 'd', ' ', 'v', 'G', 'P', 'U', ' ', '0'}};

void require_device(CUdevice device) { require(device == 0, CUDA_ERROR_INVALID_DEVICE); }

void copy_text(const char* text, char* target, int length) {
    require(target != nullptr && length > 0);
    std::snprintf(target, static_cast<std::size_t>(length), "%s", text);
}

}  // namespace

GRADGUARD_DRIVER_API cuInit(unsigned int flags) {
    return anytime(__func__, [&](Driver& driver) {
        require(flags == 0);
        driver.initialize();
    });
}

GRADGUARD_DRIVER_API cuDriverGetVersion(int* version) {
    return anytime(__func__, [&](Driver& driver) {
        require(version != nullptr);
        driver.configure();
        *version = driver.configuration.driver_version;
    });
}

GRADGUARD_DRIVER_API cuDeviceGetCount(int* count) {
    return initialized(__func__, [&](Driver&) {
        require(count != nullptr);
        *count = 1;
    });
}

GRADGUARD_DRIVER_API cuDeviceGet(CUdevice* device, int ordinal) {
    return initialized(__func__, [&](Driver&) {
        require(device != nullptr);
        require_device(ordinal);
        *device = 0;
    });
}

GRADGUARD_DRIVER_API cuDeviceGetName(char* name, int length, CUdevice device) {
    return initialized(__func__, [&](Driver&) {
        require_device(device);
        copy_text(kName, name, length);
    });
}

GRADGUARD_DRIVER_API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    return initialized(__func__, [&](Driver&) {
        require(uuid != nullptr);
        require_device(device);
        *uuid = kUuid;
    });
}

GRADGUARD_DRIVER_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    return initialized(__func__, [&](Driver&) {
        require(uuid != nullptr);
        require_device(device);
        *uuid = kUuid;
    });
}

GRADGUARD_DRIVER_API cuDeviceGetLuid(char*, unsigned int*, CUdevice device) {
    return initialized(__func__, [&](Driver&) {
        require_device(device);
        return CUDA_ERROR_NOT_SUPPORTED;  // of Windows
    });
}

GRADGUARD_DRIVER_API cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
    return initialized(__func__, [&](Driver& driver) {
        require(bytes != nullptr);
        require_device(device);
        *bytes = driver.configuration.machine.limits.max_memory_bytes;
    });
}

GRADGUARD_DRIVER_API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    return initialized(__func__, [&](Driver& driver) {
        require(value != nullptr);
        require_device(device);
        const std::optional<int> known = device_attribute(driver.configuration, attribute);
        require(known.has_value());
        *value = *known;
    });
}

GRADGUARD_DRIVER_API cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    return initialized(__func__, [&](Driver& driver) {
        require(major != nullptr && minor != nullptr);
        require_device(device);
        *major = driver.configuration.capability_major;
        *minor = driver.configuration.capability_minor;
    });
}

GRADGUARD_DRIVER_API cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
    return initialized(__func__, [&](Driver&) {
        require_device(device);
        copy_text(kBusId, id, length);
    });
}

GRADGUARD_DRIVER_API cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
    return initialized(__func__, [&](Driver&) {
        require(device != nullptr && id != nullptr);
        unsigned domain = 0, bus = 0, slot = 0, function = 0;
        const int parts = std::sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
        require(parts >= 3 && (domain | bus | slot | function) == 0, CUDA_ERROR_INVALID_DEVICE);
        *device = 0;
    });
}

GRADGUARD_DRIVER_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    return initialized(__func__, [&](Driver&) {
        require(can != nullptr);
        require_device(device);
        require_device(peer);
        *can = 0;  // a device is no peer of itself
    });
}

GRADGUARD_DRIVER_API cuDeviceGetP2PAttribute(int*, int, CUdevice device, CUdevice peer) {
    return initialized(__func__, [&](Driver&) {
        require_device(device);
        require_device(peer);
        return CUDA_ERROR_INVALID_DEVICE;  // one device has no pair
    });
}

GRADGUARD_DRIVER_API cuDeviceGetTexture1DLinearMaxWidth(std::size_t* elements, int, unsigned, CUdevice device) {
    return initialized(__func__, [&](Driver&) {
        require(elements != nullptr);
        require_device(device);
        *elements = 0;  // no textures
    });
}

GRADGUARD_DRIVER_API cuDeviceGetExecAffinitySupport(int* supported, int, CUdevice device) {
    return initialized(__func__, [&](Driver&) {
        require(supported != nullptr);
        require_device(device);
        *supported = 0;
    });
}

GRADGUARD_DRIVER_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    return initialized(__func__, [&](Driver& driver) {
        require(pool != nullptr);
        require_device(device);
        *pool = driver.default_pool;
    });
}

GRADGUARD_DRIVER_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    return initialized(__func__, [&](Driver& driver) {
        require(pool != nullptr);
        require_device(device);
        *pool = driver.current_pool;
    });
}

GRADGUARD_DRIVER_API cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    return initialized(__func__, [&](Driver& driver) {
        require_device(device);
        driver.pools.get(pool, CUDA_ERROR_INVALID_VALUE);
        driver.current_pool = pool;
    });
}
