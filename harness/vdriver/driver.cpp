// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/driver.h"

#include <cstdlib>
#include <new>

#include "harness/vdriver/export.h"
#include "harness/vgpu/error.h"

namespace gradguard::vdriver {

using namespace cuda;  // NOLINT: the names of the driver API

void fail(CUresult code) { throw Failure(code); }

std::uintptr_t next_handle() {
    // Beyond the first page: nothing that a program takes for a small number.
    static std::uintptr_t last = 0x1000;
    return last += 0x10;
}

std::vector<CUcontext>& context_stack() {
    thread_local std::vector<CUcontext> stack;
    return stack;
}

Driver& Driver::get() {
    static Driver* const driver = new Driver;  // never destroyed, see the class
    return *driver;
}

Driver::Driver() = default;

void Driver::configure() {
    if (configured) return;
    const char* const text = std::getenv("GRADGUARD_VDRIVER");
    try {
        configuration = text == nullptr || *text == 0 ? Configuration{} : parse_configuration(text);
    } catch (const std::exception& error) {
        record.say(std::string("GRADGUARD_VDRIVER: ") + error.what());
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    configured = true;
}

void Driver::initialize() {
    if (initialized) return;
    configure();
    default_pool = current_pool = pools.add(std::make_shared<Pool>());
    initialized = true;
}

void Driver::reset() {
    while (contexts.size() > 0) destroy_context(contexts.begin()->second);
    pinned.clear();
    libraries.clear();
    kernels.clear();
    linkers.clear();
    graphs.clear();
    graph_execs.clear();
    pools.clear();
    default_pool = current_pool = nullptr;
    primary_flags = 0;
    initialized = false;
    configured = false;
    configuration = {};
    calls = 0;
    fail_at = UINT64_MAX;
    record = {};
    context_stack().clear();
}

std::shared_ptr<Context> Driver::create_context(unsigned flags) {
    auto context = std::make_shared<Context>(configuration, flags, lock, record);
    context->handle = contexts.add(context);
    context->id = reinterpret_cast<std::uintptr_t>(context->handle);
    pinned.map_into(*context);
    return context;
}

void Driver::destroy_context(const std::shared_ptr<Context>& given) {
    const std::shared_ptr<Context> context = given;  // which may lie in a table of ours
    context->queues().run_all();
    record.add(*context);
    const auto is_its = [&](const auto& object) { return object.context == context; };
    functions.erase_if(is_its);
    modules.erase_if(is_its);
    events.erase_if(is_its);
    streams.erase_if(is_its);
    for (const auto& [handle, library] : libraries) library->modules.erase(context.get());
    contexts.erase(context->handle);
    if (primary == context) {
        primary.reset();
        primary_users = 0;
    }
}

std::shared_ptr<Context> Driver::current() const {
    const std::vector<CUcontext>& stack = context_stack();
    require(!stack.empty() && stack.back() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    return contexts.get(stack.back(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

StreamOf Driver::stream(CUstream handle) const {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    StreamOf result;
    if (number > kStreamPerThread) {
        result = *streams.get(handle);
    } else {
        result.context = current();
        result.stream =
            number == kStreamPerThread ? result.context->queues().of_thread() : result.context->queues().legacy();
    }
    result.context->check();
    return result;
}

std::shared_ptr<Context> Driver::owner_of(CUdeviceptr address) const {
    const std::vector<CUcontext>& stack = context_stack();
    if (!stack.empty()) {
        const std::shared_ptr<Context> own = contexts.find(stack.back());
        if (own && std::as_const(*own).find(address)) return own;
    }
    for (const auto& [handle, context] : contexts) {
        if (std::as_const(*context).find(address)) return context;
    }
    return nullptr;
}

CUresult begin_call(Driver& driver, Needs needs) {
    // Called from a function of the program that runs in a stream: the driver forbids it.
    if (Queues::in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
    if (driver.calls++ == driver.fail_at) {
        driver.fail_at = UINT64_MAX;
        return driver.fail_with;
    }
    return needs == Needs::kInit && !driver.initialized ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult result_of_exception(Driver& driver, const char* function) noexcept {
    try {
        throw;
    } catch (const Failure& failure) {
        return failure.code;
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        driver.record.failed(std::string(function) + ": " + error.what());
        return CUDA_ERROR_UNKNOWN;
    }
}

}  // namespace gradguard::vdriver
