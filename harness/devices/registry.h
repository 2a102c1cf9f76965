// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/host/device.h"

namespace gradguard::harness {

/// Which device to open and how.
struct DeviceRequest {
    std::string name = "vgpu";  ///< "vgpu", or "auto": a real GPU where this binary can use one, else the virtual one.
    std::uint64_t schedule_seed = 0;  ///< For the virtual GPU.
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

/// Throws DeviceUnavailable; std::invalid_argument for an unknown observer.
std::shared_ptr<Device> open_device(const DeviceRequest& request);

/// What the device has against the kernels that ran on it, a line each; a real GPU reports none.
std::vector<std::string> device_findings(const Device& device);

}  // namespace gradguard::harness
