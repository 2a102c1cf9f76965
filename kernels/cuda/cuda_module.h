// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/ptx_version.h"
#include "kernels/host/device.h"

namespace gradguard::cuda {

/// What one kernel takes, as the driver compiled it for this device.
struct KernelResources {
    int registers = 0;              ///< Of 32 bits, for each thread.
    int local_bytes = 0;            ///< Spilled registers and local arrays, for each thread.
    int shared_bytes = 0;           ///< Static, for each block.
    int max_threads_per_block = 0;  ///< Of this kernel on this device.
    int ptx_version = 0;            ///< Architecture that the PTX was made for: 80 for sm_80.
    int binary_version = 0;         ///< Architecture that the machine code is for: 90 on an H200.
};

class CudaModule;

/// A kernel of a CudaModule, which it keeps loaded.
class CudaKernel : public Kernel {
  public:
    CudaKernel(std::shared_ptr<CudaModule> module, CUfunction function, std::string name)
        : module_(std::move(module)), function_(function), name_(std::move(name)) {}

    CUfunction function() const { return function_; }
    const std::string& name() const { return name_; }
    const CudaModule& module() const { return *module_; }
    /// Throws Error{DeviceFailure}.
    KernelResources resources() const;

  private:
    std::shared_ptr<CudaModule> module_;
    CUfunction function_;
    std::string name_;
};

/// A module in a context; unloaded with its last kernel.
class CudaModule : public Module, public std::enable_shared_from_this<CudaModule> {
  public:
    /// Throws Error{DeviceFailure}: when the driver cannot take this PTX (why_not_loadable()), with that reason; when
    /// it does not compile, with the compiler's messages.
    static std::shared_ptr<CudaModule> load(const std::shared_ptr<Context>& context, ComputeCapability device,
                                            std::string_view name, std::string_view ptx);
    ~CudaModule() override;
    std::shared_ptr<const Kernel> kernel(std::string_view entry) override;
    const std::shared_ptr<Context>& context() const { return context_; }

  private:
    CudaModule(std::shared_ptr<Context> context, std::string name, CUmodule handle);

    std::shared_ptr<Context> context_;
    std::string name_;
    CUmodule handle_;
};

}  // namespace gradguard::cuda
