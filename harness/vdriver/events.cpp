// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/export.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

CUresult destroy(const char* function, CUevent handle) {
    return initialized(function, [&](Driver& driver) {
        const std::shared_ptr<Event> event = driver.events.get(handle);
        driver.events.erase(handle);
        event->context->check();
    });
}

CUresult record(const char* function, CUevent handle, CUstream stream_handle, unsigned flags) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<Event> event = driver.events.get(handle);
        const StreamOf stream = driver.stream(stream_handle);
        require(flags <= 1);
        require(event->context == stream.context, CUDA_ERROR_INVALID_HANDLE);
        const auto reached = std::make_shared<double>(0);
        Queues& queues = stream.context->queues();
        event->point = stream.context->submit(stream.stream, [&queues, reached] { *reached = queues.nanoseconds; });
        event->nanoseconds = reached;
        event->recorded = true;
    });
}

CUresult elapsed(const char* function, float* milliseconds, CUevent start_handle, CUevent end_handle) {
    return initialized(function, [&](Driver& driver) {
        const std::shared_ptr<Event> start = driver.events.get(start_handle);
        const std::shared_ptr<Event> end = driver.events.get(end_handle);
        require(milliseconds != nullptr);
        start->context->check();
        for (const Event* event : {start.get(), end.get()}) {
            require(event->recorded && (event->flags & CU_EVENT_DISABLE_TIMING) == 0, CUDA_ERROR_INVALID_HANDLE);
            if (!event->point.stream->complete(event->point.ticket)) return CUDA_ERROR_NOT_READY;
        }
        *milliseconds = static_cast<float>((*end->nanoseconds - *start->nanoseconds) / 1e6);
        return CUDA_SUCCESS;
    });
}

}  // namespace

GRADGUARD_DRIVER_API cuEventCreate(CUevent* handle, unsigned flags) {
    return call(__func__, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<Context> context = driver.current();
        context->check();
        constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
        require(handle != nullptr && (flags & ~known) == 0);
        require((flags & CU_EVENT_INTERPROCESS) == 0, CUDA_ERROR_NOT_SUPPORTED);
        const auto event = std::make_shared<Event>();
        event->context = context;
        event->flags = flags;
        *handle = driver.events.add(event);
    });
}

GRADGUARD_DRIVER_API cuEventDestroy(CUevent event) { return destroy(__func__, event); }
GRADGUARD_DRIVER_API cuEventDestroy_v2(CUevent event) { return destroy(__func__, event); }

GRADGUARD_DRIVER_API cuEventRecord(CUevent event, CUstream stream) { return record(__func__, event, stream, 0); }

GRADGUARD_DRIVER_API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    return record(__func__, event, stream, flags);
}

GRADGUARD_DRIVER_API cuEventSynchronize(CUevent handle) {
    return initialized(__func__, [&](Driver& driver) {
        const std::shared_ptr<Event> event = driver.events.get(handle);
        event->context->check();
        if (event->recorded) event->context->queues().run_to(event->point);
        event->context->check();
    });
}

GRADGUARD_DRIVER_API cuEventQuery(CUevent handle) {
    return initialized(__func__, [&](Driver& driver) {
        const std::shared_ptr<Event> event = driver.events.get(handle);
        event->context->check();
        if (!event->recorded || event->point.stream->complete(event->point.ticket)) return CUDA_SUCCESS;
        event->context->queues().run_one(event->point.stream);
        event->context->check();
        return CUDA_ERROR_NOT_READY;
    });
}

GRADGUARD_DRIVER_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return elapsed(__func__, milliseconds, start, end);
}
GRADGUARD_DRIVER_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    return elapsed(__func__, milliseconds, start, end);
}
