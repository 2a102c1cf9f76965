// SPDX-License-Identifier: Apache-2.0
#include "python/src/device.h"

#include <utility>

#include "harness/devices/registry.h"

namespace gradguard::python {
namespace {

/// Addresses are never used again, and the machine keeps a row for each: it is renewed after so many.
constexpr std::uint64_t kTensorsPerMachine = std::uint64_t{1} << 16;

}  // namespace

std::shared_ptr<SharedDevice> SharedDevice::open(const std::string& name, std::uint64_t seed,
                                                 const std::string& observers, bool fmad) {
    harness::DeviceRequest request;
    request.name = name;
    request.schedule_seed = seed;
    request.observers = observers;
    std::shared_ptr<SharedDevice> device(new SharedDevice);
    device->gpu_ = std::dynamic_pointer_cast<harness::VirtualDevice>(harness::open_device(request));
    if (device->gpu_ == nullptr) throw harness::DeviceUnavailable("device '" + name + "' maps no host memory");
    device->gpu_->set_kernel_source(KernelSource::embedded(fmad));
    device->queue_ = device->gpu_->create_queue();
    device->name_ = name;
    device->seed_ = seed;
    device->observers_ = observers;
    device->fmad_ = fmad;
    return device;
}

std::shared_ptr<SharedDevice> SharedDevice::standard() {
    static const std::shared_ptr<SharedDevice> device = open("vgpu", 0, "none", true);
    return device;
}

SharedDevice::Use::Use(SharedDevice& device, std::uint64_t tensors) : device_(device), lock_(device.mutex_) {
    device_.bury();
    if (device_.tensors_ > kTensorsPerMachine) device_.renew();
    device_.tensors_ += tensors;
}

SharedDevice::Use::~Use() { device_.bury(); }

void SharedDevice::bury() {
    std::vector<Buffer> buffers;
    const std::lock_guard lock(released_mutex_);
    buffers.swap(released_);
}

void SharedDevice::release(Buffer buffer) {
    {
        const std::lock_guard lock(released_mutex_);
        released_.push_back(std::move(buffer));
    }
    // Whoever runs a call buries when it ends.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) bury();
}

void SharedDevice::renew() {
    for (const vgpu::Finding& finding : gpu_->findings()) earlier_findings_.push_back(finding.message());
    queue_.reset();
    gpu_->renew(seed_ + ++generation_);
    queue_ = gpu_->create_queue();
    tensors_ = 0;
}

std::vector<std::string> SharedDevice::findings(bool final) {
    const std::lock_guard lock(mutex_);
    bury();
    std::vector<std::string> lines = earlier_findings_;
    for (const vgpu::Finding& finding : final ? gpu_->final_findings() : gpu_->findings()) {
        lines.push_back(finding.message());
    }
    return lines;
}

std::uint64_t SharedDevice::live_allocations() {
    const std::lock_guard lock(mutex_);
    bury();
    return gpu_->machine().live_allocations();
}

void SharedDevice::reset() {
    const std::lock_guard lock(mutex_);
    bury();
    renew();
}

}  // namespace gradguard::python
