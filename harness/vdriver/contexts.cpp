// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/export.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

constexpr unsigned kApiVersion = 3020;

void require_device(CUdevice device) { require(device == 0, CUDA_ERROR_INVALID_DEVICE); }

CUresult create(const char* function, CUcontext* context, unsigned flags, CUdevice device) {
    return initialized(function, [&](Driver& driver) {
        require(context != nullptr);
        require_device(device);
        require((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
        *context = driver.create_context(flags)->handle;
        context_stack().push_back(*context);
    });
}

CUresult destroy(const char* function, CUcontext handle) {
    return initialized(function, [&](Driver& driver) {
        const std::shared_ptr<Context> context = driver.context(handle);
        require(context != driver.primary, CUDA_ERROR_INVALID_CONTEXT);
        std::vector<CUcontext>& stack = context_stack();
        if (!stack.empty() && stack.back() == handle) stack.pop_back();
        driver.destroy_context(context);
    });
}

CUresult push(const char* function, CUcontext handle) {
    return initialized(function, [&](Driver& driver) {
        driver.context(handle);
        context_stack().push_back(handle);
    });
}

CUresult pop(const char* function, CUcontext* handle) {
    return initialized(function, [&](Driver&) {
        std::vector<CUcontext>& stack = context_stack();
        require(!stack.empty() && stack.back() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
        if (handle != nullptr) *handle = stack.back();
        stack.pop_back();
    });
}

CUresult release_primary(const char* function, CUdevice device) {
    return initialized(function, [&](Driver& driver) {
        require_device(device);
        require(driver.primary != nullptr, CUDA_ERROR_INVALID_CONTEXT);
        if (--driver.primary_users == 0) driver.destroy_context(driver.primary);
    });
}

CUresult reset_primary(const char* function, CUdevice device) {
    return initialized(function, [&](Driver& driver) {
        require_device(device);
        if (driver.primary) driver.destroy_context(std::shared_ptr<Context>(driver.primary));
    });
}

CUresult set_primary_flags(const char* function, CUdevice device, unsigned flags) {
    return initialized(function, [&](Driver& driver) {
        require_device(device);
        require((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
        driver.primary_flags = flags;
        if (driver.primary) driver.primary->flags = flags;
    });
}

/// Limits with a value of their own until the program sets one.
const std::map<int, std::uint64_t>& default_limits() {
    static const std::map<int, std::uint64_t> limits{{CU_LIMIT_STACK_SIZE, 1024},
                                                     {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
                                                     {CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20},
                                                     {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
                                                     {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                                                     {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
                                                     {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
    return limits;
}

}  // namespace

GRADGUARD_DRIVER_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    return initialized(__func__, [&](Driver& driver) {
        require(context != nullptr);
        require_device(device);
        if (!driver.primary) driver.primary = driver.create_context(driver.primary_flags);
        ++driver.primary_users;
        *context = driver.primary->handle;
    });
}

GRADGUARD_DRIVER_API cuDevicePrimaryCtxRelease(CUdevice device) { return release_primary(__func__, device); }
GRADGUARD_DRIVER_API cuDevicePrimaryCtxRelease_v2(CUdevice device) { return release_primary(__func__, device); }
GRADGUARD_DRIVER_API cuDevicePrimaryCtxReset(CUdevice device) { return reset_primary(__func__, device); }
GRADGUARD_DRIVER_API cuDevicePrimaryCtxReset_v2(CUdevice device) { return reset_primary(__func__, device); }
GRADGUARD_DRIVER_API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
    return set_primary_flags(__func__, device, flags);
}
GRADGUARD_DRIVER_API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    return set_primary_flags(__func__, device, flags);
}

GRADGUARD_DRIVER_API cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    return initialized(__func__, [&](Driver& driver) {
        require(flags != nullptr && active != nullptr);
        require_device(device);
        *flags = driver.primary_flags;
        *active = driver.primary != nullptr ? 1 : 0;
    });
}

GRADGUARD_DRIVER_API cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
    return create(__func__, context, flags, device);
}
GRADGUARD_DRIVER_API cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
    return create(__func__, context, flags, device);
}
GRADGUARD_DRIVER_API cuCtxCreate_v3(CUcontext* context, void*, int affinities, unsigned flags, CUdevice device) {
    if (affinities != 0) return initialized(__func__, [](Driver&) { return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY; });
    return create(__func__, context, flags, device);
}
GRADGUARD_DRIVER_API cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags,
                                    CUdevice device) {
    if (parameters != nullptr && (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr))
        return initialized(__func__, [](Driver&) { return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY; });
    return create(__func__, context, flags, device);
}

GRADGUARD_DRIVER_API cuCtxDestroy(CUcontext context) { return destroy(__func__, context); }
GRADGUARD_DRIVER_API cuCtxDestroy_v2(CUcontext context) { return destroy(__func__, context); }
/// Deprecated counting of users; PyCUDA still ends its contexts so.
GRADGUARD_DRIVER_API cuCtxAttach(CUcontext* context, unsigned flags) {
    return initialized(__func__, [&](Driver& driver) {
        require(context != nullptr && flags == 0);
        const std::shared_ptr<Context> current = driver.current();
        ++current->users;
        *context = current->handle;
    });
}
GRADGUARD_DRIVER_API cuCtxDetach(CUcontext handle) {
    return initialized(__func__, [&](Driver& driver) {
        const std::shared_ptr<Context> context = driver.context(handle);
        require(context == driver.current() && context != driver.primary, CUDA_ERROR_INVALID_CONTEXT);
        if (--context->users != 0) return;
        context_stack().pop_back();
        driver.destroy_context(context);
    });
}

GRADGUARD_DRIVER_API cuCtxPushCurrent(CUcontext context) { return push(__func__, context); }
GRADGUARD_DRIVER_API cuCtxPushCurrent_v2(CUcontext context) { return push(__func__, context); }
GRADGUARD_DRIVER_API cuCtxPopCurrent(CUcontext* context) { return pop(__func__, context); }
GRADGUARD_DRIVER_API cuCtxPopCurrent_v2(CUcontext* context) { return pop(__func__, context); }

GRADGUARD_DRIVER_API cuCtxSetCurrent(CUcontext handle) {
    return initialized(__func__, [&](Driver& driver) {
        std::vector<CUcontext>& stack = context_stack();
        if (handle != nullptr) driver.context(handle);
        if (!stack.empty()) stack.pop_back();
        if (handle != nullptr) stack.push_back(handle);
    });
}

GRADGUARD_DRIVER_API cuCtxGetCurrent(CUcontext* handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(handle != nullptr);
        const std::vector<CUcontext>& stack = context_stack();
        *handle = !stack.empty() && driver.contexts.find(stack.back()) ? stack.back() : nullptr;
    });
}

GRADGUARD_DRIVER_API cuCtxGetDevice(CUdevice* device) {
    return initialized(__func__, [&](Driver& driver) {
        require(device != nullptr);
        driver.current();
        *device = 0;
    });
}

GRADGUARD_DRIVER_API cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    return initialized(__func__, [&](Driver& driver) {
        require(device != nullptr);
        if (handle == nullptr) {
            driver.current();
        } else {
            driver.context(handle);
        }
        *device = 0;
    });
}

GRADGUARD_DRIVER_API cuCtxSynchronize() {
    return in_context(__func__, [](Context& context) { context.synchronize(); });
}

GRADGUARD_DRIVER_API cuCtxSynchronize_v2(CUcontext handle) {
    return initialized(__func__, [&](Driver& driver) {
        const std::shared_ptr<Context> context = handle == nullptr ? driver.current() : driver.context(handle);
        context->synchronize();
    });
}

GRADGUARD_DRIVER_API cuCtxGetId(CUcontext handle, unsigned long long* id) {
    return initialized(__func__, [&](Driver& driver) {
        require(id != nullptr);
        *id = (handle == nullptr ? driver.current() : driver.context(handle))->id;
    });
}

GRADGUARD_DRIVER_API cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
    return initialized(__func__, [&](Driver& driver) {
        require(version != nullptr);
        if (handle != nullptr) driver.context(handle);
        *version = kApiVersion;
    });
}

GRADGUARD_DRIVER_API cuCtxGetFlags(unsigned* flags) {
    return in_context(__func__, [&](Context& context) {
        require(flags != nullptr);
        *flags = context.flags;
    });
}

GRADGUARD_DRIVER_API cuCtxSetFlags(unsigned flags) {
    return in_context(__func__, [&](Context& context) {
        require((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
        context.flags = flags;
    });
}

GRADGUARD_DRIVER_API cuCtxGetLimit(std::size_t* value, int limit) {
    return in_context(__func__, [&](Context& context) {
        require(value != nullptr);
        const auto known = default_limits().find(limit);
        require(known != default_limits().end(), CUDA_ERROR_UNSUPPORTED_LIMIT);
        const auto chosen = context.limits.find(limit);
        *value = chosen == context.limits.end() ? known->second : chosen->second;
    });
}

GRADGUARD_DRIVER_API cuCtxSetLimit(int limit, std::size_t value) {
    return in_context(__func__, [&](Context& context) {
        require(default_limits().contains(limit), CUDA_ERROR_UNSUPPORTED_LIMIT);
        context.limits[limit] = value;
    });
}

GRADGUARD_DRIVER_API cuCtxGetCacheConfig(int* config) {
    return in_context(__func__, [&](Context& context) {
        require(config != nullptr);
        *config = context.cache_config;
    });
}

GRADGUARD_DRIVER_API cuCtxSetCacheConfig(int config) {
    return in_context(__func__, [&](Context& context) {
        require(config >= 0 && config <= 3);
        context.cache_config = config;
    });
}

GRADGUARD_DRIVER_API cuCtxGetSharedMemConfig(int* config) {
    return in_context(__func__, [&](Context& context) {
        require(config != nullptr);
        *config = context.shared_config;
    });
}

GRADGUARD_DRIVER_API cuCtxSetSharedMemConfig(int config) {
    return in_context(__func__, [&](Context& context) {
        require(config >= 0 && config <= 2);
        context.shared_config = config;
    });
}

GRADGUARD_DRIVER_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return in_context(__func__, [&](Context&) {
        if (least != nullptr) *least = 0;
        if (greatest != nullptr) *greatest = -5;
    });
}

GRADGUARD_DRIVER_API cuCtxResetPersistingL2Cache() {
    return in_context(__func__, [](Context&) {});
}

GRADGUARD_DRIVER_API cuCtxEnablePeerAccess(CUcontext, unsigned) {
    return in_context(__func__, [](Context&) { return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED; });
}

GRADGUARD_DRIVER_API cuCtxDisablePeerAccess(CUcontext) {
    return in_context(__func__, [](Context&) { return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED; });
}
