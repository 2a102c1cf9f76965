// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/open_device.h"

#include "harness/devices/registry.h"
#include "harness/devices/virtual_device.h"

namespace gradguard::tools {

OpenDevice::OpenDevice(const ScanRequest& request)
    : device_(harness::open_device({.name = request.device, .schedule_seed = request.schedule_seed})) {
    const bool is_virtual = dynamic_cast<const harness::VirtualDevice*>(device_.get()) != nullptr;
    name_ = is_virtual ? "vgpu" : device_->properties().name;
    device_->set_kernel_source(KernelSource::embedded(request.contracted));
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

void OpenDevice::require_no_findings() const {
    const std::vector<std::string> findings = harness::device_findings(*device_);
    if (findings.empty()) return;
    std::string text = findings.size() == 1 ? "a finding against a kernel"
                                            : std::to_string(findings.size()) + " findings against the kernels";
    for (const std::string& finding : findings) text += (&finding == &findings.front() ? ": " : "; ") + finding;
    throw DeviceFinding(text);
}

}  // namespace gradguard::tools
