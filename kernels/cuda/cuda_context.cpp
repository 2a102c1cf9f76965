// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_context.h"

#include <utility>

#include "reference/contract/error.h"

namespace gradguard::cuda {
namespace {

void require_open(const Driver& driver, CUresult result, const char* function) {
    if (result != CUDA_SUCCESS) fail("open", std::string(function) + ": " + driver.describe(result));
}

}  // namespace

void fail(const std::string& operation, const std::string& reason) {
    throw Error(ErrorKind::kDeviceFailure, {.operand = operation}, operation + " failed: " + reason);
}

std::shared_ptr<Context> Context::of_device(std::shared_ptr<const Driver> driver, int ordinal) {
    const DriverFunctions& functions = driver->functions();
    int count = 0;
    require_open(*driver, functions.cuDeviceGetCount.call(&count), functions.cuDeviceGetCount.name);
    if (ordinal < 0 || ordinal >= count) {
        fail("open", "want a device with number below " + std::to_string(count) + ", got " + std::to_string(ordinal) +
                         (count == 0 ? " (the driver sees no device)" : ""));
    }
    CUdevice device = 0;
    require_open(*driver, functions.cuDeviceGet.call(&device, ordinal), functions.cuDeviceGet.name);
    CUcontext handle = nullptr;
    require_open(*driver, functions.cuDevicePrimaryCtxRetain.call(&handle, device),
                 functions.cuDevicePrimaryCtxRetain.name);
    return std::shared_ptr<Context>(new Context(std::move(driver), handle, device, true));
}

std::shared_ptr<Context> Context::of_caller(std::shared_ptr<const Driver> driver, CUcontext handle) {
    auto context = std::shared_ptr<Context>(new Context(std::move(driver), handle, 0, false));
    const Current current(context, "open");
    current.call(current.driver().cuCtxGetDevice, &context->device_);
    return context;
}

Context::Context(std::shared_ptr<const Driver> driver, CUcontext handle, CUdevice device, bool primary)
    : driver_(std::move(driver)), handle_(handle), device_(device), primary_(primary) {}

Context::~Context() {
    if (!primary_) return;
    const auto& give_back = driver_->functions().cuDevicePrimaryCtxRelease_v2;
    if (give_back.call(device_) != CUDA_SUCCESS) give_back.call(device_);  // as in release(), but nothing is current
}

void Context::check(CUresult result, const char* function, const std::string& operation, const std::string& detail) {
    if (result == CUDA_SUCCESS) return;
    const std::string what = function + (detail.empty() ? "" : " of " + detail) + ": " + driver_->describe(result);
    remember(result, what);
    require_alive(operation);
    fail(operation, what);
}

void Context::require_alive(const std::string& operation) const {
    const std::lock_guard lock(mutex_);
    if (lost_) fail(operation, *lost_);
}

bool Context::lost() const {
    const std::lock_guard lock(mutex_);
    return lost_.has_value();
}

void Context::remember(CUresult result, const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (stays(result) && !lost_) lost_ = what;
}

void Context::throw_failed_release(const std::string& operation) {
    std::optional<std::string> failure;
    {
        const std::lock_guard lock(mutex_);
        failure.swap(failed_release_);
    }
    if (failure) fail(operation, *failure);
}

void Context::pop() noexcept {
    CUcontext popped = nullptr;
    const auto& function = driver_->functions().cuCtxPopCurrent_v2;
    CUresult result = function.call(&popped);
    if (result != CUDA_SUCCESS) result = function.call(&popped);
    note_release(result, function.name);
}

bool Context::push_to_release() noexcept {
    const auto& function = driver_->functions().cuCtxPushCurrent_v2;
    return function.call(handle_) == CUDA_SUCCESS || function.call(handle_) == CUDA_SUCCESS;
}

void Context::note_release(CUresult result, const char* function) noexcept {
    if (result == CUDA_SUCCESS) return;
    try {
        const std::string what = std::string(function) + ": " + driver_->describe(result);
        remember(result, what);
        const std::lock_guard lock(mutex_);
        if (!failed_release_) failed_release_ = what;
    } catch (const std::exception&) {
        return;  // no memory to say it
    }
}

Current::Current(std::shared_ptr<Context> context, std::string operation, std::string detail)
    : context_(std::move(context)), operation_(std::move(operation)), detail_(std::move(detail)) {
    context_->require_alive(operation_);
    call(driver().cuCtxPushCurrent_v2, context_->handle());
}

Current::~Current() { context_->pop(); }

}  // namespace gradguard::cuda
