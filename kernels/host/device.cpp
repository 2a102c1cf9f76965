// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/device.h"

#include "kernels/ptx/embedded.h"

namespace gradguard {

KernelSource KernelSource::embedded(bool contracted) {
    const std::string build = contracted ? "fmad" : "nofmad";
    return {build, [build](std::string_view module) { return std::string(kernels::embedded_ptx(module, build)); }};
}

void Device::set_kernel_source(KernelSource source) {
    const std::lock_guard lock(mutex_);
    kernel_source_ = std::move(source);
    modules_.clear();
    kernels_.clear();
}

std::shared_ptr<const Kernel> Device::kernel(std::string_view module, const std::string& entry) {
    const std::lock_guard lock(mutex_);
    if (const auto known = kernels_.find(entry); known != kernels_.end()) return known->second;
    auto loaded = modules_.find(module);
    if (loaded == modules_.end()) {
        loaded = modules_.emplace(module, load_module(module, kernel_source_.ptx(module))).first;
    }
    const auto kernel = loaded->second->kernel(entry);
    kernels_.emplace(entry, kernel);
    return kernel;
}

}  // namespace gradguard
