// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "harness/vdriver/copy.h"
#include "harness/vdriver/export.h"
#include "harness/vdriver/requests.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

template <class Value>
CUresult set(const char* function, CUdeviceptr address, std::size_t pitch, Value value, std::size_t width,
             std::size_t height, CUstream handle, bool synchronous) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        const StreamOf stream = driver.stream(handle);
        const SetRequest request = set_request(driver, address, pitch, value, sizeof(Value), width, height);
        const Point point = submit(stream, request);
        if (synchronous && request.place.on_host() && point.stream != nullptr) {
            stream.context->queues().run_to(point);
            stream.context->check();
        }
    });
}

}  // namespace

namespace gradguard::vdriver {

SetRequest set_request(Driver& driver, CUdeviceptr address, std::uint64_t pitch, std::uint32_t value,
                       std::uint32_t element_bytes, std::uint64_t width, std::uint64_t height) {
    require(element_bytes == 1 || element_bytes == 2 || element_bytes == 4);
    require(address % element_bytes == 0 && (height == 1 || pitch % element_bytes == 0));
    if (width == 0 || height == 0) return {};
    require(width <= UINT64_MAX / element_bytes);
    const std::uint64_t row = width * element_bytes;
    require(height == 1 || pitch >= row);
    require(height == 1 || pitch <= (UINT64_MAX - row) / (height - 1));
    return {device_place(driver, address, (height - 1) * pitch + row), pitch, value, element_bytes, width, height};
}

Point submit(const StreamOf& stream, const SetRequest& request) {
    if (request.width == 0) return {};
    Context& context = *stream.context;
    return context.submit(stream.stream, [&context, request] {
        const std::uint64_t row = request.width * request.element_bytes;
        for (std::uint64_t y = 0; y < request.height; ++y) {
            std::byte* const target = request.place.writable(y * request.pitch, row);
            for (std::uint64_t x = 0; x < row; x += request.element_bytes)
                std::memcpy(target + x, &request.value, request.element_bytes);  // the low bytes come first
        }
        context.queues().nanoseconds += static_cast<double>(row * request.height) * kNanosecondsPerByte;
    });
}

}  // namespace gradguard::vdriver

GRADGUARD_DRIVER_API cuMemsetD8_v2(CUdeviceptr address, unsigned char value, std::size_t count) {
    return set(__func__, address, 0, value, count, 1, nullptr, true);
}
GRADGUARD_DRIVER_API cuMemsetD16_v2(CUdeviceptr address, unsigned short value, std::size_t count) {
    return set(__func__, address, 0, value, count, 1, nullptr, true);
}
GRADGUARD_DRIVER_API cuMemsetD32_v2(CUdeviceptr address, unsigned value, std::size_t count) {
    return set(__func__, address, 0, value, count, 1, nullptr, true);
}
GRADGUARD_DRIVER_API cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t count, CUstream stream) {
    return set(__func__, address, 0, value, count, 1, stream, false);
}
GRADGUARD_DRIVER_API cuMemsetD16Async(CUdeviceptr address, unsigned short value, std::size_t count, CUstream stream) {
    return set(__func__, address, 0, value, count, 1, stream, false);
}
GRADGUARD_DRIVER_API cuMemsetD32Async(CUdeviceptr address, unsigned value, std::size_t count, CUstream stream) {
    return set(__func__, address, 0, value, count, 1, stream, false);
}
GRADGUARD_DRIVER_API cuMemsetD2D8_v2(CUdeviceptr address, std::size_t pitch, unsigned char value, std::size_t width,
                                     std::size_t height) {
    return set(__func__, address, pitch, value, width, height, nullptr, true);
}
GRADGUARD_DRIVER_API cuMemsetD2D16_v2(CUdeviceptr address, std::size_t pitch, unsigned short value, std::size_t width,
                                      std::size_t height) {
    return set(__func__, address, pitch, value, width, height, nullptr, true);
}
GRADGUARD_DRIVER_API cuMemsetD2D32_v2(CUdeviceptr address, std::size_t pitch, unsigned value, std::size_t width,
                                      std::size_t height) {
    return set(__func__, address, pitch, value, width, height, nullptr, true);
}
GRADGUARD_DRIVER_API cuMemsetD2D8Async(CUdeviceptr address, std::size_t pitch, unsigned char value, std::size_t width,
                                       std::size_t height, CUstream stream) {
    return set(__func__, address, pitch, value, width, height, stream, false);
}
GRADGUARD_DRIVER_API cuMemsetD2D16Async(CUdeviceptr address, std::size_t pitch, unsigned short value, std::size_t width,
                                        std::size_t height, CUstream stream) {
    return set(__func__, address, pitch, value, width, height, stream, false);
}
GRADGUARD_DRIVER_API cuMemsetD2D32Async(CUdeviceptr address, std::size_t pitch, unsigned value, std::size_t width,
                                        std::size_t height, CUstream stream) {
    return set(__func__, address, pitch, value, width, height, stream, false);
}
