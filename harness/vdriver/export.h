// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "harness/vdriver/driver.h"

/// What every exported function is made of: lock, count, planned failure, what must be there, and no exception gets
/// out.
#define GRADGUARD_DRIVER_API extern "C" __attribute__((visibility("default"))) ::gradguard::cuda::CUresult

namespace gradguard::vdriver {

enum class Needs : std::uint8_t { kNothing, kInit };

/// What a call ends with before it does anything: the planned failure, NOT_INITIALIZED, NOT_PERMITTED.
cuda::CUresult begin_call(Driver& driver, Needs needs);
/// The code for the exception that is being handled.
cuda::CUresult result_of_exception(Driver& driver, const char* function) noexcept;

template <class Body>
cuda::CUresult call(const char* function, Needs needs, Body&& body) noexcept {
    Driver& driver = Driver::get();
    const std::lock_guard guard(driver.lock);
    if (const cuda::CUresult early = begin_call(driver, needs); early != cuda::CUDA_SUCCESS) return early;
    try {
        if constexpr (std::is_void_v<decltype(body(driver))>) {
            body(driver);
            return cuda::CUDA_SUCCESS;
        } else {
            return body(driver);
        }
    } catch (...) {
        return result_of_exception(driver, function);
    }
}

/// Before cuInit() too. The body takes Driver&; it returns nothing, or the result.
template <class Body>
cuda::CUresult anytime(const char* function, Body&& body) noexcept {
    return call(function, Needs::kNothing, std::forward<Body>(body));
}

template <class Body>
cuda::CUresult initialized(const char* function, Body&& body) noexcept {
    return call(function, Needs::kInit, std::forward<Body>(body));
}

/// With a current context that no failure has stopped; the body takes Context&.
template <class Body>
cuda::CUresult in_context(const char* function, Body&& body) noexcept {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<Context> context = driver.current();
        context->check();
        return body(*context);
    });
}

/// With the stream of a handle, whose context no failure has stopped; the body takes Context&, const
/// std::shared_ptr<Stream>&.
template <class Body>
cuda::CUresult in_stream(const char* function, cuda::CUstream handle, Body&& body) noexcept {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const StreamOf stream = driver.stream(handle);
        return body(*stream.context, stream.stream);
    });
}

}  // namespace gradguard::vdriver
