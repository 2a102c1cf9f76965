// SPDX-License-Identifier: Apache-2.0
#include "harness/devices/registry.h"

#include "harness/devices/virtual_device.h"

namespace gradguard::harness {

std::vector<DeviceStatus> list_devices() {
    return {{"vgpu", true, ""}, {"cuda", false, "this version has no CUDA device"}};
}

std::shared_ptr<Device> open_device(const DeviceRequest& request) {
    if (request.name == "vgpu" || request.name == "auto") {
        VirtualDeviceOptions options;
        options.machine.seed = request.schedule_seed;
        options.observers = request.observers;
        options.count = request.count;
        return VirtualDevice::create(options);
    }
    for (const DeviceStatus& status : list_devices()) {
        if (status.name == request.name) throw DeviceUnavailable("device '" + status.name + "': " + status.reason);
    }
    throw DeviceUnavailable("no device is called '" + request.name + "'; want vgpu or auto");
}

std::vector<std::string> device_findings(const Device& device) {
    const auto* virtual_device = dynamic_cast<const VirtualDevice*>(&device);
    if (virtual_device == nullptr) return {};
    std::vector<std::string> lines;
    for (const vgpu::Finding& finding : virtual_device->findings()) lines.push_back(finding.message());
    return lines;
}

}  // namespace gradguard::harness
