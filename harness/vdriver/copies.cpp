// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/copy.h"
#include "harness/vdriver/export.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

using Resolve = Place (*)(Driver&, CUdeviceptr, std::uint64_t);

Place host_argument(Driver& driver, CUdeviceptr address, std::uint64_t bytes) {
    return host_place(driver, reinterpret_cast<const void*>(address), bytes);
}
CUdeviceptr number(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

CUresult copy_bytes(const char* function, Resolve resolve_target, CUdeviceptr target, Resolve resolve_source,
                    CUdeviceptr source, std::size_t bytes, CUstream handle, bool synchronous) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const StreamOf stream = driver.stream(handle);
        if (bytes == 0) return;
        const Rows to{resolve_target(driver, target, bytes), 0, 0, 0};
        const Rows from{resolve_source(driver, source, bytes), 0, 0, 0};
        copy(stream, to, from, {bytes, 1, 1}, synchronous);
    });
}

CUresult copy_peer(const char* function, CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                   CUcontext source_context, std::size_t bytes, CUstream handle) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const StreamOf stream = driver.stream(handle);
        const auto resolve = [&](CUdeviceptr address, CUcontext of) {
            const std::shared_ptr<Context> context = driver.context(of);
            const Memory* const memory = context->find(address);
            require(memory != nullptr && bytes <= memory->bytes - (address - memory->address));
            if (memory->on_host()) return Place{nullptr, address, memory->host + (address - memory->address), true};
            return Place{context, address, nullptr, false};
        };
        if (bytes == 0) return;
        // Order between the contexts: what is queued in the other one goes first.
        for (const CUcontext of : {target_context, source_context}) {
            if (driver.context(of) != stream.context) driver.context(of)->synchronize();
        }
        copy(stream, {resolve(target, target_context), 0, 0, 0}, {resolve(source, source_context), 0, 0, 0},
             {bytes, 1, 1}, false);
    });
}

}  // namespace

GRADGUARD_DRIVER_API cuMemcpy(CUdeviceptr target, CUdeviceptr source, std::size_t bytes) {
    return copy_bytes(__func__, any_place, target, any_place, source, bytes, nullptr, true);
}

GRADGUARD_DRIVER_API cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, std::size_t bytes, CUstream stream) {
    return copy_bytes(__func__, any_place, target, any_place, source, bytes, stream, false);
}

GRADGUARD_DRIVER_API cuMemcpyHtoD_v2(CUdeviceptr target, const void* source, std::size_t bytes) {
    return copy_bytes(__func__, device_place, target, host_argument, number(source), bytes, nullptr, true);
}

GRADGUARD_DRIVER_API cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void* source, std::size_t bytes, CUstream stream) {
    return copy_bytes(__func__, device_place, target, host_argument, number(source), bytes, stream, false);
}

GRADGUARD_DRIVER_API cuMemcpyDtoH_v2(void* target, CUdeviceptr source, std::size_t bytes) {
    return copy_bytes(__func__, host_argument, number(target), device_place, source, bytes, nullptr, true);
}

GRADGUARD_DRIVER_API cuMemcpyDtoHAsync_v2(void* target, CUdeviceptr source, std::size_t bytes, CUstream stream) {
    return copy_bytes(__func__, host_argument, number(target), device_place, source, bytes, stream, false);
}

GRADGUARD_DRIVER_API cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, std::size_t bytes) {
    return copy_bytes(__func__, device_place, target, device_place, source, bytes, nullptr, true);
}

GRADGUARD_DRIVER_API cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, std::size_t bytes, CUstream stream) {
    return copy_bytes(__func__, device_place, target, device_place, source, bytes, stream, false);
}

GRADGUARD_DRIVER_API cuMemcpyPeer(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                                  CUcontext source_context, std::size_t bytes) {
    return copy_peer(__func__, target, target_context, source, source_context, bytes, nullptr);
}

GRADGUARD_DRIVER_API cuMemcpyPeerAsync(CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                                       CUcontext source_context, std::size_t bytes, CUstream stream) {
    return copy_peer(__func__, target, target_context, source, source_context, bytes, stream);
}
