// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "harness/vdriver/copy.h"
#include "harness/vdriver/driver.h"

/// Work that a program asks for, checked and with everything that must be read before the call returns: to be submitted
/// at once, or by each launch of a graph.
namespace gradguard::vdriver {

struct LaunchRequest {
    std::shared_ptr<Function> kernel;
    vgpu::LaunchConfig config;
    std::vector<std::byte> arguments;
};
/// Throws Failure.
LaunchRequest launch_request(Driver& driver, cuda::CUfunction function, const vgpu::LaunchConfig& config,
                             void** parameters, void** extra);
/// The stream must be of the kernel's context; throws Failure INVALID_HANDLE.
void submit(const StreamOf& stream, LaunchRequest request);

struct CopyRequest {
    Rows target;
    Rows source;
    Extent extent;  ///< Empty: nothing to do, and target and source are not set.
};
/// Throws Failure.
CopyRequest copy_request(Driver& driver, const cuda::CUDA_MEMCPY3D& copy);
void submit(const StreamOf& stream, const CopyRequest& request, bool synchronous);

struct SetRequest {
    Place place;
    std::uint64_t pitch = 0;
    std::uint32_t value = 0;
    std::uint32_t element_bytes = 1;  ///< 1, 2 or 4: as many low bytes of `value`.
    std::uint64_t width = 0;          ///< Elements.
    std::uint64_t height = 0;
};
/// Throws Failure.
SetRequest set_request(Driver& driver, cuda::CUdeviceptr address, std::uint64_t pitch, std::uint32_t value,
                       std::uint32_t element_bytes, std::uint64_t width, std::uint64_t height);
Point submit(const StreamOf& stream, const SetRequest& request);

}  // namespace gradguard::vdriver
