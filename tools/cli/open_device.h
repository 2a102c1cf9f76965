// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "harness/io/safetensors.h"
#include "kernels/host/tensor.h"
#include "tools/cli/options.h"

namespace gradguard::tools {

/// The device has something against a kernel that ran on it; exit status 4.
class DeviceFinding : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// An open device with one queue, as a command uses it.
class OpenDevice {
  public:
    /// Throws harness::DeviceUnavailable, Error{DeviceFailure}.
    explicit OpenDevice(const ScanRequest& request);

    const std::string& name() const { return name_; }  ///< "vgpu", or a real device's own name.
    const DeviceProperties& properties() const { return device_->properties(); }
    const std::shared_ptr<Queue>& queue() const { return queue_; }

    /// The tensor in device memory. Its dtype must be one of the contract's; the rest is the library's to validate, and
    /// nothing is copied for a shape that it will refuse.
    Tensor upload(const harness::SafetensorsFile& file, const harness::SafetensorsTensor& tensor) const;

    /// The same tensor without memory behind it: good for validation and nothing else.
    Tensor placeholder(const harness::SafetensorsTensor& tensor) const;

    /// Throws DeviceFinding.
    void require_no_findings() const;

  private:
    std::string name_;
    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
};

}  // namespace gradguard::tools
