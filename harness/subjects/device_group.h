// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/devices/virtual_device.h"
#include "kernels/host/adamw.h"

namespace gradguard::harness {

/// A case's group on a device: places its tensors, marks them read-only where the device can, and tells afterwards
/// whether any is not what it was. `device` allocates; `outer` is what the library is to see, the same or a decorator
/// of it. The virtual device's memory is written and read directly, so that nothing of the schedule depends on it; any
/// other is copied to and from in a queue of its own, between the steps.
class DeviceGroup {
  public:
    DeviceGroup(std::shared_ptr<Device> device, std::shared_ptr<Device> outer);

    /// The tensors of the case's first step.
    void place(const Case& c);
    /// The gradients of a later step: `values[i]` in the layout that entry i's had.
    void place_gradients(const Case& c, const std::vector<std::vector<std::byte>>& values);
    /// Takes over what a step left as the parameters and states of the next.
    void advance(std::vector<AdamWUpdate> updates);

    const std::vector<AdamWEntry>& entries() const { return entries_; }
    std::vector<Tensor> gradients() const;

    /// From here on no kernel may write to the inputs.
    void guard_inputs();
    /// "entry 2 gradients" for each input that is not what it was at guard_inputs(), storage around it included;
    /// nothing from a device that is lost. Releases them.
    std::vector<std::string> changed_inputs();

    /// Waits for all work on the group's queues. Throws Error{DeviceFailure}.
    void synchronize();
    /// [n] F32. Of a tensor that has no storage of its own: nothing.
    std::vector<float> read(const Tensor& tensor) const;

  private:
    struct Watched {
        std::size_t entry;
        const char* operand;
        BufferRange storage;
        std::shared_ptr<const void> mark;
        std::size_t snapshot_begin;  ///< In snapshots_.
    };

    Tensor make(const CaseTensor& tensor, const std::vector<std::byte>& values);
    Tensor make(const CaseTensor& tensor) { return make(tensor, tensor.values); }
    const std::shared_ptr<Queue>& queue(std::uint32_t number);
    void watch(std::size_t entry, const char* operand, const Tensor& tensor);
    bool is_as_it_was(const Watched& one) const;
    /// Device memory as it is now; all work must be done.
    void read_bytes(const BufferRange& range, std::byte* destination) const;

    std::shared_ptr<Device> device_;
    std::shared_ptr<VirtualDevice> virtual_;  ///< The same; null for any other device.
    std::shared_ptr<Device> outer_;
    std::shared_ptr<Queue> placing_queue_;  ///< Of the device itself, so that nobody counts what is done on it.
    std::map<std::uint32_t, std::shared_ptr<Queue>> queues_;  ///< Of the case: a number may be any.
    std::vector<AdamWEntry> entries_;
    std::vector<Watched> watched_;
    std::vector<std::byte> snapshots_;
};

}  // namespace gradguard::harness
