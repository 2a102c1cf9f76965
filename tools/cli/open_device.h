// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/io/safetensors.h"
#include "kernels/host/tensor.h"
#include "tools/cli/observations.h"
#include "tools/cli/options.h"

namespace gradguard::harness {
class VirtualDevice;
}

namespace gradguard::tools {

/// The device has something against a kernel that ran on it; exit status 4.
class DeviceFinding : public std::runtime_error {
  public:
    /// There must be a finding.
    explicit DeviceFinding(Observations observations)
        : std::runtime_error(summary_of(observations.findings)),
          observations_(std::make_shared<const Observations>(std::move(observations))) {}

    const Observations& observations() const noexcept { return *observations_; }

  private:
    std::shared_ptr<const Observations> observations_;
};

/// An open device with one queue, as a command uses it.
class OpenDevice {
  public:
    /// Throws harness::DeviceUnavailable, Error{DeviceFailure}. Only the virtual GPU has observers.
    explicit OpenDevice(const ScanRequest& request);

    const std::string& name() const { return name_; }  ///< "vgpu", or a real device's own name.
    const DeviceProperties& properties() const { return device_->properties(); }
    const std::shared_ptr<Queue>& queue() const { return queue_; }

    /// The tensor in device memory. Its dtype must be one of the contract's; the rest is the library's to validate, and
    /// nothing is copied for a shape that it will refuse.
    Tensor upload(const harness::SafetensorsFile& file, const harness::SafetensorsTensor& tensor) const;

    /// The same tensor without memory behind it: good for validation and nothing else.
    Tensor placeholder(const harness::SafetensorsTensor& tensor) const;

    /// No kernel may write to these tensors as long as the handles live; only an observer sees whether one does.
    using ReadOnly = std::vector<std::shared_ptr<const void>>;
    void mark_read_only(const Tensor& tensor, ReadOnly& handles) const;

    /// What observers have seen so far.
    Observations observations() const;
    /// Throws DeviceFinding.
    void require_no_findings() const;
    /// The same after the last work, when every buffer should be free again: leaks are findings now.
    void require_no_findings_at_end() const;

  private:
    std::string name_;
    std::shared_ptr<Device> device_;
    std::shared_ptr<harness::VirtualDevice> virtual_;  ///< The same; null for a real device.
    std::shared_ptr<Queue> queue_;
};

}  // namespace gradguard::tools
