// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_module.h"
#include "kernels/cuda/cuda_queue.h"
#include "kernels/cuda/cuda_resources.h"
#include "kernels/cuda/ptx_version.h"
#include "kernels/host/device.h"

namespace gradguard::cuda {

struct CudaDeviceOptions {
    /// File name or path of the driver; any library that exports the driver API does.
    std::string driver_library = Driver::kLibrary;
    /// Number of the device, as CUDA_VISIBLE_DEVICES leaves them; unless `context` is given.
    int ordinal = 0;
    /// The caller's own context; null: the device's primary context, which the CUDA runtime and PyTorch use too.
    CUcontext context = nullptr;
    /// Memory from a stream-ordered pool. False: cuMemAlloc and cuMemFree, each of which may wait for the device; for
    /// devices without pools.
    bool pool = true;
    /// How many bytes of freed memory the pool keeps over a synchronisation. A step allocates as much as the step
    /// before freed; giving it back to the system in between costs far more than the kernels.
    std::uint64_t pool_keeps = std::numeric_limits<std::uint64_t>::max();
    /// A driver that is open already, instead of `driver_library`.
    std::shared_ptr<const Driver> driver = nullptr;
};

/// A GPU through the CUDA driver API. It may share the caller's context and stream: nothing of the caller's is changed
/// or destroyed, and the context that was current before a call is current after it. Queues, buffers, modules and
/// kernels may outlive the device object. Several queues may be used by several threads, each by one at a time.
class CudaDevice : public Device, public std::enable_shared_from_this<CudaDevice> {
  public:
    /// Throws Error{DeviceFailure} with operand "open": no driver, no device, no pools, ...
    static std::shared_ptr<CudaDevice> open(const CudaDeviceOptions& options = {});

    const DeviceProperties& properties() const override { return properties_; }
    /// A stream of its own.
    std::shared_ptr<Queue> create_queue() override;
    /// The caller's stream (CUstream and cudaStream_t are the same), which must live as long as the queue. Work of the
    /// caller in it comes before and after ours as submitted. Throws Error{DeviceFailure} for a stream of another
    /// context.
    std::shared_ptr<CudaQueue> queue_over(CUstream stream);
    Buffer allocate(std::uint64_t bytes, Queue& queue) override;
    std::shared_ptr<Module> load_module(std::string_view name, std::string_view ptx) override;

    /// Somebody else's memory, as Buffer::borrowed(), after asking the driver. Throws Error{InvalidTensor} for an
    /// address that is no device memory or a range that reaches out of its allocation, Error{DifferentExecutionQueue}
    /// for memory of another device.
    Buffer borrow(DeviceAddress address, std::uint64_t bytes) const;

    const Driver& driver() const { return context_->driver(); }
    CUcontext context() const { return context_->handle(); }
    ComputeCapability compute_capability() const { return capability_; }
    /// Why this device cannot load the PTX, in words; nothing when it can or when only trying tells.
    std::optional<std::string> why_not_loadable(std::string_view ptx) const;

  private:
    CudaDevice(std::shared_ptr<Context> context, const CudaDeviceOptions& options);

    std::shared_ptr<Context> context_;
    std::shared_ptr<MemoryPool> pool_;  // null without pools
    DeviceProperties properties_;
    ComputeCapability capability_;
};

}  // namespace gradguard::cuda
