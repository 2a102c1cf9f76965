// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver.h"

#include <utility>

#include "kernels/cuda/dynamic_library.h"
#include "reference/contract/error.h"

namespace gradguard::cuda {
namespace {

[[noreturn]] void fail(const std::string& reason) {
    throw Error(ErrorKind::kDeviceFailure, {.operand = "open"}, "open failed: " + reason);
}

DynamicLibrary load(const std::string& name) {
    try {
        return DynamicLibrary::open(name);
    } catch (const LibraryError& error) {
        fail(std::string("no CUDA driver: ") + error.what());
    }
}

/// Resolves one function; adds its name to `missing` when the library has none.
template <typename Function>
void resolve(const DynamicLibrary& library, DriverFunction<Function>& function, std::string& missing) {
    function.call = reinterpret_cast<Function*>(library.find(function.name));
    if (function.call == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(function.name);
}

DriverFunctions resolve_all(const DynamicLibrary& library) {
    DriverFunctions functions;
    std::string missing;
#define GRADGUARD_CUDA_RESOLVE(name, parameters) resolve(library, functions.name, missing);
    GRADGUARD_CUDA_FUNCTIONS(GRADGUARD_CUDA_RESOLVE)
#undef GRADGUARD_CUDA_RESOLVE
    if (missing.empty()) return functions;
    int version = 0;
    const bool known =
        functions.cuDriverGetVersion.call != nullptr && functions.cuDriverGetVersion.call(&version) == CUDA_SUCCESS;
    fail("the driver " + library.name() + (known ? " (CUDA " + cuda_version_text(version) + ")" : "") +
         " is too old, want CUDA 11.2 or later: it lacks " + missing);
}

}  // namespace

std::shared_ptr<const Driver> Driver::open(const std::string& library) {
    const DynamicLibrary loaded = load(library);
    // What harness/vdriver exports besides the driver's functions.
    return of(resolve_all(loaded), library, loaded.find("gradguard_vdriver_configure") == nullptr);
}

std::shared_ptr<const Driver> Driver::of(const DriverFunctions& functions, const std::string& name, bool hardware) {
    return std::shared_ptr<const Driver>(new Driver(functions, name, hardware));
}

Driver::Driver(const DriverFunctions& functions, std::string library, bool hardware)
    : functions_(functions), library_(std::move(library)), hardware_(hardware) {
    const auto require = [&](CUresult result, const char* call) {
        if (result != CUDA_SUCCESS) fail("the driver " + library_ + ": " + call + ": " + describe(result));
    };
    require(functions_.cuInit.call(0), functions_.cuInit.name);
    require(functions_.cuDriverGetVersion.call(&version_), functions_.cuDriverGetVersion.name);
}

std::string Driver::describe(CUresult result) const {
    const char* name = nullptr;
    const char* text = nullptr;
    if (functions_.cuGetErrorName.call(result, &name) != CUDA_SUCCESS || name == nullptr) {
        switch (result) {
#define GRADGUARD_CUDA_NAME(code, number) \
    case code:                            \
        name = #code;                     \
        break;
            GRADGUARD_CUDA_RESULTS(GRADGUARD_CUDA_NAME)
#undef GRADGUARD_CUDA_NAME
        }
    }
    const std::string known = name == nullptr ? "error " + std::to_string(static_cast<int>(result)) : name;
    if (functions_.cuGetErrorString.call(result, &text) != CUDA_SUCCESS || text == nullptr) return known;
    return known + " (" + text + ")";
}

std::string cuda_version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

bool stays(CUresult result) {
    switch (result) {
        case CUDA_ERROR_DEINITIALIZED:
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        case CUDA_ERROR_CONTAINED:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
        case CUDA_ERROR_TENSOR_MEMORY_LEAK:
        case CUDA_ERROR_MPS_CLIENT_TERMINATED:
        case CUDA_ERROR_EXTERNAL_DEVICE:
            return true;
        default:
            return false;
    }
}

}  // namespace gradguard::cuda
