// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/export.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

constexpr int kGreatestPriority = -5;

CUresult create(const char* function, CUstream* stream, unsigned flags, int priority) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<Context> context = driver.current();
        context->check();
        require(stream != nullptr && (flags & ~1U) == 0);
        const auto made = std::make_shared<StreamOf>();
        made->context = context;
        made->stream = context->queues().create(flags, std::clamp(priority, kGreatestPriority, 0));
        *stream = driver.streams.add(made);
    });
}

CUresult destroy(const char* function, CUstream handle) {
    return initialized(function, [&](Driver& driver) {
        const std::shared_ptr<StreamOf> stream = driver.streams.get(handle);
        stream->context->queues().destroy(stream->stream);
        driver.streams.erase(handle);
        stream->context->check();
    });
}

CUresult no_capture(const char* function, CUstream handle, int* status, std::uint64_t* id, CUgraph* graph) {
    return in_stream(function, handle, [&](Context&, const std::shared_ptr<Stream>&) {
        require(status != nullptr);
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (id != nullptr) *id = 0;
        if (graph != nullptr) *graph = nullptr;
    });
}

}  // namespace

GRADGUARD_DRIVER_API cuStreamCreate(CUstream* stream, unsigned flags) { return create(__func__, stream, flags, 0); }

GRADGUARD_DRIVER_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    return create(__func__, stream, flags, priority);
}

GRADGUARD_DRIVER_API cuStreamDestroy(CUstream stream) { return destroy(__func__, stream); }
GRADGUARD_DRIVER_API cuStreamDestroy_v2(CUstream stream) { return destroy(__func__, stream); }

GRADGUARD_DRIVER_API cuStreamSynchronize(CUstream handle) {
    return in_stream(__func__, handle, [](Context& context, const std::shared_ptr<Stream>& stream) {
        if (stream == context.queues().legacy()) {
            // It stands behind all streams that wait for it.
            context.run_synchronously([] {});
        } else {
            context.synchronize(stream);
        }
    });
}

GRADGUARD_DRIVER_API cuStreamQuery(CUstream handle) {
    return in_stream(__func__, handle, [](Context& context, const std::shared_ptr<Stream>& stream) {
        if (context.queues().poll(stream)) return CUDA_SUCCESS;
        context.check();
        return CUDA_ERROR_NOT_READY;
    });
}

GRADGUARD_DRIVER_API cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        const StreamOf stream = driver.stream(handle);
        const std::shared_ptr<Event> event = driver.events.get(event_handle);
        require((flags & ~1U) == 0);
        if (event->recorded) Queues::wait_for(stream.stream, event->point);
    });
}

GRADGUARD_DRIVER_API cuStreamGetPriority(CUstream handle, int* priority) {
    return in_stream(__func__, handle, [&](Context&, const std::shared_ptr<Stream>& stream) {
        require(priority != nullptr);
        *priority = stream->priority;
    });
}

GRADGUARD_DRIVER_API cuStreamGetFlags(CUstream handle, unsigned* flags) {
    return in_stream(__func__, handle, [&](Context&, const std::shared_ptr<Stream>& stream) {
        require(flags != nullptr);
        *flags = stream->flags;
    });
}

GRADGUARD_DRIVER_API cuStreamGetId(CUstream handle, unsigned long long* id) {
    return in_stream(__func__, handle, [&](Context&, const std::shared_ptr<Stream>& stream) {
        require(id != nullptr);
        *id = stream->id;
    });
}

GRADGUARD_DRIVER_API cuStreamGetCtx(CUstream handle, CUcontext* context) {
    return in_stream(__func__, handle, [&](Context& own, const std::shared_ptr<Stream>&) {
        require(context != nullptr);
        *context = own.handle;
    });
}

GRADGUARD_DRIVER_API cuStreamGetCtx_v2(CUstream handle, CUcontext* context, void** green) {
    return in_stream(__func__, handle, [&](Context& own, const std::shared_ptr<Stream>&) {
        require(context != nullptr && green != nullptr);
        *context = own.handle;
        *green = nullptr;
    });
}

GRADGUARD_DRIVER_API cuStreamGetDevice(CUstream handle, CUdevice* device) {
    return in_stream(__func__, handle, [&](Context&, const std::shared_ptr<Stream>&) {
        require(device != nullptr);
        *device = 0;
    });
}

GRADGUARD_DRIVER_API cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, std::size_t, unsigned) {
    return in_stream(__func__, handle, [&](Context& context, const std::shared_ptr<Stream>&) {
        const Memory* const memory = context.find(address);
        require(memory != nullptr && memory->kind == Memory::Kind::kManaged);
    });
}

GRADGUARD_DRIVER_API cuStreamIsCapturing(CUstream handle, int* status) {
    return no_capture(__func__, handle, status, nullptr, nullptr);
}

GRADGUARD_DRIVER_API cuStreamGetCaptureInfo(CUstream handle, int* status, std::uint64_t* id) {
    return no_capture(__func__, handle, status, id, nullptr);
}

GRADGUARD_DRIVER_API cuStreamGetCaptureInfo_v2(CUstream handle, int* status, std::uint64_t* id, CUgraph* graph,
                                               const void** dependencies, std::size_t* count) {
    if (dependencies != nullptr) *dependencies = nullptr;
    if (count != nullptr) *count = 0;
    return no_capture(__func__, handle, status, id, graph);
}

GRADGUARD_DRIVER_API cuStreamGetCaptureInfo_v3(CUstream handle, int* status, std::uint64_t* id, CUgraph* graph,
                                               const void** dependencies, const void** edges, std::size_t* count) {
    if (dependencies != nullptr) *dependencies = nullptr;
    if (edges != nullptr) *edges = nullptr;
    if (count != nullptr) *count = 0;
    return no_capture(__func__, handle, status, id, graph);
}

GRADGUARD_DRIVER_API cuThreadExchangeStreamCaptureMode(int* mode) {
    return initialized(__func__, [&](Driver&) {
        require(mode != nullptr && *mode >= 0 && *mode <= 2);
        thread_local int current = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL
        std::swap(current, *mode);
    });
}

GRADGUARD_DRIVER_API cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
    return in_stream(__func__, handle, [&](Context& context, const std::shared_ptr<Stream>& stream) {
        require(function != nullptr);
        Queues& queues = context.queues();
        context.submit(stream, [&queues, function, data] { queues.call_host([&] { function(data); }); });
    });
}

GRADGUARD_DRIVER_API cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
    return in_stream(__func__, handle, [&](Context& context, const std::shared_ptr<Stream>& stream) {
        require(callback != nullptr && flags == 0);
        Queues& queues = context.queues();
        queues.submit(
            stream,
            [&queues, handle, callback, data] {
                const CUresult status = queues.failure();
                queues.call_host([&] { callback(handle, status, data); });
            },
            true);
    });
}
