// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/nvrtc.h"
#include "kernels/host/device.h"

namespace gradguard::harness {

/// Which device to open and how.
struct DeviceRequest {
    /// "vgpu", the virtual GPU; "cuda", a real one; "vdriver", the virtual GPU behind the CUDA device and a virtual
    /// driver; "auto", a real one where it takes the kernels of this binary, else the virtual one.
    std::string name = "vgpu";
    std::uint64_t schedule_seed = 0;  ///< For the virtual GPU, also behind the virtual driver.
    std::string observers = "none";   ///< Who watches the virtual GPU; see VirtualDeviceOptions.
    bool count = false;               ///< Whether the virtual GPU keeps counts for each kernel.
};

/// An absent device carries its reason.
class DeviceUnavailable : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A device by name.
struct DeviceStatus {
    std::string name;
    bool available = false;
    std::string reason;  ///< Why not; empty when available.
};

/// Every device this program knows of.
std::vector<DeviceStatus> list_devices();

/// What "auto" stands for here: "cuda" or "vgpu".
std::string best_device();

/// Throws DeviceUnavailable; std::invalid_argument for an unknown observer.
std::shared_ptr<Device> open_device(const DeviceRequest& request);

/// What the device has against the kernels that ran on it, a line each; a real GPU reports none, and the virtual driver
/// what its kernels did in this process.
std::vector<std::string> device_findings(const Device& device);

/// The newest release of CUDA whose PTX the device's driver takes; nothing for a device that takes all.
std::optional<cuda::CudaRelease> newest_cuda(const Device& device);

}  // namespace gradguard::harness
