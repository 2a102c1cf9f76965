// SPDX-License-Identifier: Apache-2.0
#include "harness/devices/registry.h"

#include "harness/devices/virtual_device.h"
#include "harness/devices/virtual_driver.h"
#include "kernels/cuda/cuda_device.h"
#include "reference/contract/error.h"

namespace gradguard::harness {
namespace {

std::shared_ptr<Device> open_virtual_gpu(const DeviceRequest& request) {
    VirtualDeviceOptions options;
    options.machine.seed = request.schedule_seed;
    options.observers = request.observers;
    options.count = request.count;
    return VirtualDevice::create(options);
}

std::shared_ptr<cuda::CudaDevice> open_gpu() {
    try {
        cuda::CudaDeviceOptions options;
        options.driver = cuda::Driver::open();
        if (!options.driver->hardware()) {
            throw DeviceUnavailable(options.driver->library() +
                                    " is the virtual driver here, which is no hardware; it is the device vdriver");
        }
        return cuda::CudaDevice::open(options);
    } catch (const Error& error) {
        throw DeviceUnavailable(error.message());
    }
}

std::shared_ptr<Device> open_known(const DeviceRequest& request) {
    if (request.name == "vgpu") return open_virtual_gpu(request);
    if (request.name == "cuda") return open_gpu();
    if (request.name == "vdriver") return open_virtual_driver(request);
    throw DeviceUnavailable("no device has this name; want vgpu, cuda, vdriver or auto");
}

DeviceStatus status_of(const std::string& name) {
    try {
        open_known({.name = name});
        return {name, true, ""};
    } catch (const DeviceUnavailable& error) {
        return {name, false, error.what()};
    }
}

}  // namespace

std::vector<DeviceStatus> list_devices() { return {{"vgpu", true, ""}, status_of("cuda"), status_of("vdriver")}; }

std::string best_device() {
    try {
        return open_gpu()->why_not_loadable(KernelSource::embedded(true).ptx("update")) ? "vgpu" : "cuda";
    } catch (const DeviceUnavailable&) {  // the reason is for whoever asks for "cuda"
        return "vgpu";
    }
}

std::shared_ptr<Device> open_device(const DeviceRequest& request) {
    try {
        DeviceRequest known = request;
        if (known.name == "auto") known.name = best_device();
        return open_known(known);
    } catch (const DeviceUnavailable& error) {
        throw DeviceUnavailable("device '" + request.name + "': " + error.what());
    }
}

std::vector<std::string> device_findings(const Device& device) {
    if (const auto* gpu = dynamic_cast<const cuda::CudaDevice*>(&device); gpu != nullptr) {
        return gpu->driver().hardware() ? std::vector<std::string>() : virtual_driver_findings();
    }
    const auto* virtual_device = dynamic_cast<const VirtualDevice*>(&device);
    if (virtual_device == nullptr) return {};
    std::vector<std::string> lines;
    for (const vgpu::Finding& finding : virtual_device->findings()) lines.push_back(finding.message());
    return lines;
}

std::optional<cuda::CudaRelease> newest_cuda(const Device& device) {
    const auto* gpu = dynamic_cast<const cuda::CudaDevice*>(&device);
    if (gpu == nullptr) return std::nullopt;
    return cuda::CudaRelease::of_driver(gpu->driver().version());
}

}  // namespace gradguard::harness
