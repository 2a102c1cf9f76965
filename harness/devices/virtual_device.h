// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "harness/vgpu/machine.h"
#include "kernels/host/device.h"

namespace gradguard::harness {

struct VirtualDeviceOptions {
    vgpu::MachineOptions machine;
    /// Whether submitted work may be held back until somebody waits. The seed chooses for each call; off runs all at
    /// once.
    bool hold_back = true;
};

/// The virtual GPU as a device. Queues are really asynchronous: submitted work is a list of closures, run early or at
/// the synchronisation by the seed's choice, and the destination of a copy to the host holds poison until then. A fault
/// in a kernel is sticky: every later call on the device fails with it.
class VirtualDevice : public Device, public std::enable_shared_from_this<VirtualDevice> {
  public:
    static std::shared_ptr<VirtualDevice> create(VirtualDeviceOptions options = {});

    const DeviceProperties& properties() const override { return properties_; }
    std::shared_ptr<Queue> create_queue() override;
    Buffer allocate(std::uint64_t bytes, Queue& queue) override;
    std::shared_ptr<Module> load_module(std::string_view name, std::string_view ptx) override;

    /// Host memory as device memory: no copy, not owned; unmapped when the last copy of the buffer is gone.
    Buffer map(void* memory, std::uint64_t bytes);

    vgpu::Machine& machine() { return *machine_; }
    const vgpu::Machine& machine() const { return *machine_; }

    /// Byte that fills the destination of a copy to the host until the copy is complete.
    static constexpr unsigned char kPoison = 0xDB;

  private:
    friend class VirtualQueue;
    explicit VirtualDevice(VirtualDeviceOptions options);
    Buffer own(vgpu::Address address, std::uint64_t bytes) const;
    /// Throws the sticky failure, if there is one, as that of `call`.
    void check(const char* call) const;

    std::shared_ptr<vgpu::Machine> machine_;
    VirtualDeviceOptions options_;
    DeviceProperties properties_;
    std::optional<std::string> failure_;
    std::uint64_t random_state_;
};

}  // namespace gradguard::harness
