// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/open_device.h"

#include "harness/devices/kernel_folder.h"
#include "harness/devices/registry.h"
#include "harness/devices/virtual_device.h"
#include "kernels/cuda/nvrtc_source.h"

namespace gradguard::tools {
namespace {

/// Throws UsageError, cuda::NvrtcUnavailable.
KernelSource chosen_kernels(const ScanRequest& request, const Device& device) {
    if (request.kernels) {
        if (request.compiler.by_nvrtc()) throw UsageError("--kernels: they are compiled; --compiler nvrtc is for ours");
        return harness::kernels_from_folder(*request.kernels, request.contracted);
    }
    if (!request.compiler.by_nvrtc()) return KernelSource::embedded(request.contracted);
    cuda::NvrtcOptions options;
    options.contracted = request.contracted;
    options.library = request.compiler.nvrtc;
    options.newest = harness::newest_cuda(device);
    options.note = print_note;
    return cuda::nvrtc_source(options);
}

}  // namespace

OpenDevice::OpenDevice(const ScanRequest& request)
    : device_(harness::open_device({.name = request.device,
                                    .schedule_seed = request.schedule_seed,
                                    .observers = request.observers,
                                    .count = request.count})),
      virtual_(std::dynamic_pointer_cast<harness::VirtualDevice>(device_)) {
    name_ = virtual_ ? "vgpu" : device_->properties().name;
    if (!virtual_ && (request.observers != "none" || request.count)) {
        throw harness::DeviceUnavailable("--observe and --count need the virtual GPU, and this is " + name_);
    }
    try {
        device_->set_kernel_source(chosen_kernels(request, *device_));
    } catch (const std::invalid_argument& error) {
        throw UsageError(std::string("--kernels: ") + error.what());
    }
    queue_ = device_->create_queue();
}

Tensor OpenDevice::upload(const harness::SafetensorsFile& file, const harness::SafetensorsTensor& tensor) const {
    const DType dtype = *harness::contract_dtype(tensor.dtype);
    const ElementCount count = count_elements(tensor.shape);
    if (count.problem || count.count == 0) return Tensor::over(queue_, dtype, tensor.shape, {});
    Tensor uploaded = Tensor::allocate(queue_, dtype, tensor.shape);
    uploaded.upload(file.data(tensor));
    return uploaded;
}

Tensor OpenDevice::placeholder(const harness::SafetensorsTensor& tensor) const {
    return Tensor::over(queue_, *harness::contract_dtype(tensor.dtype), tensor.shape,
                        Buffer::borrowed(0, tensor.end - tensor.begin));
}

void OpenDevice::mark_read_only(const Tensor& tensor, ReadOnly& handles) const {
    if (virtual_) handles.push_back(virtual_->mark_read_only({tensor.storage, 0, tensor.storage.bytes}));
}

Observations OpenDevice::observations() const {
    if (!virtual_) return {};
    Observations observations{virtual_->checked(), virtual_->findings(), {}};
    if (virtual_->counts() == nullptr) return observations;
    for (const auto& [kernel, counts] : virtual_->counts()->by_kernel()) {
        observations.kernels.emplace(kernel, counts.totals());
    }
    return observations;
}

void OpenDevice::require_no_findings() const {
    Observations now = observations();
    if (!now.findings.empty()) throw DeviceFinding(std::move(now));
}

void OpenDevice::require_no_findings_at_end() const {
    if (!virtual_) return;
    queue_->synchronize();
    Observations now = observations();
    now.findings = virtual_->final_findings();
    if (!now.findings.empty()) throw DeviceFinding(std::move(now));
}

}  // namespace gradguard::tools
