// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/copy.h"
#include "harness/vdriver/export.h"
#include "harness/vdriver/requests.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

/// One side of a copy of rows.
struct Side {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    std::size_t x, y, z;
    std::size_t pitch;
    std::size_t height;  ///< Rows of a slice.
};

/// a * b + c; throws Failure where it does not fit.
std::uint64_t product_and_sum(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    require(b == 0 || a <= (UINT64_MAX - c) / b);
    return a * b + c;
}

Rows rows_of(Driver& driver, const Side& side, const Extent& extent) {
    require(side.type != CU_MEMORYTYPE_ARRAY, CUDA_ERROR_NOT_SUPPORTED);
    const std::uint64_t pitch = side.pitch != 0 ? side.pitch : side.x + extent.width;
    const std::uint64_t height = side.height != 0 ? side.height : side.y + extent.height;
    const bool one_row = extent.height == 1 && extent.depth == 1;
    require(one_row || pitch >= extent.width);
    Rows rows;
    rows.pitch = pitch;
    rows.slice = product_and_sum(pitch, height, 0);
    rows.start = product_and_sum(side.z, rows.slice, product_and_sum(side.y, pitch, side.x));
    const std::uint64_t end = product_and_sum(extent.depth - 1, rows.slice,
                                              product_and_sum(extent.height - 1, pitch, rows.start + extent.width));
    switch (side.type) {
        case CU_MEMORYTYPE_HOST:
            rows.place = host_place(driver, side.host, end);
            return rows;
        case CU_MEMORYTYPE_DEVICE:
            rows.place = device_place(driver, side.device, end);
            return rows;
        case CU_MEMORYTYPE_UNIFIED:
            rows.place = any_place(driver, side.device, end);
            return rows;
        default:
            fail(CUDA_ERROR_INVALID_VALUE);
    }
}

CopyRequest request_of(Driver& driver, const Side& target, const Side& source, const Extent& extent) {
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return {{}, {}, {0, 0, 0}};
    return {rows_of(driver, target, extent), rows_of(driver, source, extent), extent};
}

CUresult copy_2d(const char* function, const CUDA_MEMCPY2D* copy, CUstream stream, bool synchronous) {
    if (copy == nullptr) return initialized(function, [](Driver&) { return CUDA_ERROR_INVALID_VALUE; });
    return call(function, Needs::kInit, [&](Driver& driver) {
        const StreamOf in = driver.stream(stream);
        const Side target{
            copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes, copy->dstY, 0, copy->dstPitch, 0};
        const Side source{
            copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes, copy->srcY, 0, copy->srcPitch, 0};
        submit(in, request_of(driver, target, source, {copy->WidthInBytes, copy->Height, 1}), synchronous);
    });
}

CUresult copy_3d(const char* function, const CUDA_MEMCPY3D* copy, CUstream stream, bool synchronous) {
    return call(function, Needs::kInit, [&](Driver& driver) {
        require(copy != nullptr);
        const StreamOf in = driver.stream(stream);
        submit(in, copy_request(driver, *copy), synchronous);
    });
}

}  // namespace

namespace gradguard::vdriver {

CopyRequest copy_request(Driver& driver, const CUDA_MEMCPY3D& copy) {
    require(copy.srcLOD == 0 && copy.dstLOD == 0);
    const Side target{copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes,
                      copy.dstY,          copy.dstZ,    copy.dstPitch,  copy.dstHeight};
    const Side source{copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes,
                      copy.srcY,          copy.srcZ,    copy.srcPitch,  copy.srcHeight};
    return request_of(driver, target, source, {copy.WidthInBytes, copy.Height, copy.Depth});
}

void submit(const StreamOf& stream, const CopyRequest& request, bool synchronous) {
    if (request.extent.width != 0) copy(stream, request.target, request.source, request.extent, synchronous);
}

}  // namespace gradguard::vdriver

GRADGUARD_DRIVER_API cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return copy_2d(__func__, copy, nullptr, true); }
GRADGUARD_DRIVER_API cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
    return copy_2d(__func__, copy, nullptr, true);
}
GRADGUARD_DRIVER_API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy_2d(__func__, copy, stream, false);
}
GRADGUARD_DRIVER_API cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return copy_3d(__func__, copy, nullptr, true); }
GRADGUARD_DRIVER_API cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
    return copy_3d(__func__, copy, stream, false);
}
