// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/devices/kernel_counts.h"
#include "harness/observers/registry.h"
#include "harness/vgpu/machine.h"
#include "harness/vgpu/random.h"
#include "kernels/host/device.h"

namespace gradguard::harness {

struct VirtualDeviceOptions {
    vgpu::MachineOptions machine;
    /// Whether submitted work may be held back until somebody waits. The seed chooses for each call; off runs all at
    /// once.
    bool hold_back = true;
    /// Who watches: "all", "none", or names with commas between (observers::observer_names()).
    std::string observers = "none";
    /// Keeps dynamic counts for each kernel, instructions by kind among them.
    bool count = false;
};

/// The virtual GPU as a device. Queues are really asynchronous: submitted work is a list of closures, run early or at
/// the synchronisation by the seed's choice, and the destination of a copy to the host holds poison until then. A fault
/// in a kernel is sticky: every later call on the device fails with it.
class VirtualDevice : public Device, public std::enable_shared_from_this<VirtualDevice> {
  public:
    /// Throws std::invalid_argument for an unknown observer.
    static std::shared_ptr<VirtualDevice> create(const VirtualDeviceOptions& options = {});

    const DeviceProperties& properties() const override { return properties_; }
    std::shared_ptr<Queue> create_queue() override;
    Buffer allocate(std::uint64_t bytes, Queue& queue) override;
    std::shared_ptr<Module> load_module(std::string_view name, std::string_view ptx) override;

    /// Host memory as device memory: no copy, not owned; unmapped when the last copy of the buffer is gone.
    Buffer map(void* memory, std::uint64_t bytes);

    /// No kernel may write to this range as long as the handle lives; the "inputs" observer reports it. Null when that
    /// observer is not attached. Let it go only when the work that uses the range is done.
    [[nodiscard]] std::shared_ptr<const void> mark_read_only(const BufferRange& range);

    /// What each attached observer has looked at so far.
    std::vector<observers::Checked> checked() const { return observers_->checked(); }
    /// Everything found so far: by the machine and by observers that watch launches.
    std::vector<vgpu::Finding> findings() const;
    /// The same and what only the end shows: buffers that are still allocated. Ask when all owners should be gone and
    /// the queues are synchronised.
    std::vector<vgpu::Finding> final_findings() const;
    /// Null unless VirtualDeviceOptions::count.
    const KernelCounts* counts() const { return counts_ ? &*counts_ : nullptr; }

    /// Everything but the loaded modules starts anew, as on a new device with this schedule seed: memory, observers,
    /// findings, failure. What ran before makes no difference to what comes. No work may be queued and no handle of
    /// mark_read_only() alive; buffers and queues from before may only be let go.
    void renew(std::uint64_t schedule_seed);

    vgpu::Machine& machine() { return *machine_; }
    const vgpu::Machine& machine() const { return *machine_; }

    /// Byte that fills the destination of a copy to the host until the copy is complete.
    static constexpr unsigned char kPoison = 0xDB;

    ~VirtualDevice() override;

  private:
    friend class VirtualQueue;
    explicit VirtualDevice(const VirtualDeviceOptions& options);
    Buffer own(vgpu::Address address, std::uint64_t bytes) const;
    /// Throws the sticky failure, if there is one, as that of `call`.
    void check(const char* call) const;

    std::shared_ptr<vgpu::ProgramCache> programs_;
    std::shared_ptr<vgpu::Machine> machine_;
    std::unique_ptr<observers::ObserverSet> observers_;  // after the machine: detached before that goes
    std::optional<KernelCounts> counts_;
    VirtualDeviceOptions options_;
    DeviceProperties properties_;
    std::optional<std::string> failure_;
    vgpu::Random random_;
};

}  // namespace gradguard::harness
