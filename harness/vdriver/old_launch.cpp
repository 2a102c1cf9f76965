// SPDX-License-Identifier: Apache-2.0
// Launches as programs made them before CUDA 4.0: block, shared memory and arguments are set on the function, then it
// is launched. Deprecated, and still what PyCUDA's arrays use.
#include <cstring>

#include "harness/vdriver/export.h"
#include "harness/vdriver/functions.h"
#include "harness/vdriver/requests.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

/// More than any kernel takes (PTX ISA, "Kernel Function Parameters").
constexpr std::int64_t kMostArgumentBytes = 32764;

CUresult set_argument(const char* name, CUfunction handle, int offset, const void* value, std::size_t bytes) {
    return initialized(name, [&](Driver& driver) {
        require(offset >= 0 && offset <= kMostArgumentBytes && value != nullptr);
        require(bytes <= static_cast<std::size_t>(kMostArgumentBytes - offset));
        std::vector<std::byte>& arguments = function(driver, handle)->old_launch.arguments;
        const std::size_t end = static_cast<std::size_t>(offset) + bytes;
        if (arguments.size() < end) arguments.resize(end);
        std::memcpy(arguments.data() + offset, value, bytes);
    });
}

CUresult launch(const char* name, CUfunction handle, int width, int height, CUstream stream) {
    return initialized(name, [&](Driver& driver) {
        require(width > 0 && height > 0);
        auto& old = function(driver, handle)->old_launch;
        std::size_t size = old.arguments.size();
        void* extra[] = {reinterpret_cast<void*>(kLaunchParamBufferPointer), old.arguments.data(),
                         reinterpret_cast<void*>(kLaunchParamBufferSize), &size,
                         reinterpret_cast<void*>(kLaunchParamEnd)};
        const gradguard::vgpu::LaunchConfig config{
            {static_cast<unsigned>(width), static_cast<unsigned>(height), 1}, old.block, old.shared_bytes};
        submit(driver.stream(stream), launch_request(driver, handle, config, nullptr, extra));
    });
}

}  // namespace

GRADGUARD_DRIVER_API cuFuncSetBlockShape(CUfunction handle, int x, int y, int z) {
    return initialized(__func__, [&](Driver& driver) {
        require(x > 0 && y > 0 && z > 0);
        function(driver, handle)->old_launch.block = {static_cast<unsigned>(x), static_cast<unsigned>(y),
                                                      static_cast<unsigned>(z)};
    });
}
GRADGUARD_DRIVER_API cuFuncSetSharedSize(CUfunction handle, unsigned bytes) {
    return initialized(__func__, [&](Driver& driver) { function(driver, handle)->old_launch.shared_bytes = bytes; });
}
GRADGUARD_DRIVER_API cuParamSetSize(CUfunction handle, unsigned bytes) {
    return initialized(__func__, [&](Driver& driver) {
        require(bytes <= kMostArgumentBytes);
        function(driver, handle)->old_launch.arguments.resize(bytes);
    });
}
GRADGUARD_DRIVER_API cuParamSeti(CUfunction handle, int offset, unsigned value) {
    return set_argument(__func__, handle, offset, &value, sizeof(value));
}
GRADGUARD_DRIVER_API cuParamSetf(CUfunction handle, int offset, float value) {
    return set_argument(__func__, handle, offset, &value, sizeof(value));
}
GRADGUARD_DRIVER_API cuParamSetv(CUfunction handle, int offset, void* value, unsigned bytes) {
    return set_argument(__func__, handle, offset, value, bytes);
}
GRADGUARD_DRIVER_API cuLaunch(CUfunction handle) { return launch(__func__, handle, 1, 1, nullptr); }
GRADGUARD_DRIVER_API cuLaunchGrid(CUfunction handle, int width, int height) {
    return launch(__func__, handle, width, height, nullptr);
}
GRADGUARD_DRIVER_API cuLaunchGridAsync(CUfunction handle, int width, int height, CUstream stream) {
    return launch(__func__, handle, width, height, stream);
}
