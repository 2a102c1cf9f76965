// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/devices/hooked_device.h"
#include "harness/devices/losable_device.h"
#include "harness/devices/virtual_device.h"
#include "kernels/host/guarded_adamw.h"
#include "reference/contract/error.h"
#include "reference/model/guarded_step.h"

namespace gradguard::testing {

/// A group on the host and what it is stepped with.
struct Group {
    std::string name;
    std::vector<reference::HostEntry> hosts;
    AdamWOptions options;
    StepControl control;
    GradientGuardOptions guard;
    bool bad = false;  ///< Some gradient is not finite.

    /// Elements of each non-empty entry.
    std::vector<std::uint64_t> live_sizes() const;
};

/// Groups that take every path through a step: dtypes, empty entries, one and two launches, first and later updates,
/// AMSGrad, clipping, a bad value under both policies, a skipped step.
const std::vector<Group>& groups();
const Group& group_named(const std::string& name);
std::vector<std::string> group_names();

struct BenchOptions {
    std::optional<harness::Fate> fate = std::nullopt;  ///< Makes a device that can be lost.
    harness::TamperReadback::Tamper tamper = nullptr;  ///< Changes what is read back.
    bool bare = false;  ///< The virtual GPU alone: nobody observes, nothing is recorded, nothing can be made to fail.
};

/// A group on a virtual GPU under all observers. Every call is recorded, and any of them can be made to fail.
class FaultBench {
  public:
    explicit FaultBench(const Group& group, const BenchOptions& options = {});

    const Group& group() const { return group_; }
    Device& device() const { return *device_; }
    const std::shared_ptr<Queue>& queue() const { return queue_; }
    harness::CallLog& log() const { return *log_; }
    harness::FaultPlan& plan() const { return *plan_; }
    harness::LosableDevice& losable() const { return *losable_; }
    std::vector<AdamWEntry>& entries() { return entries_; }
    std::vector<Tensor> gradients() const;

    /// Writes the gradients anew, one copy for each non-empty entry, as whoever computes them does.
    void upload_gradients() const;

    /// Reads tensors back, and waits when there are any. After an error settle() lets go of the memory.
    std::vector<std::vector<std::byte>> download(const std::vector<const Tensor*>& tensors);

    /// Waits for all that was submitted; false when the device has failed for good.
    bool settle();

    /// Everything that the caller has committed: values as they lie in device memory, read past the device's calls, and
    /// how the entries refer to them.
    std::vector<std::byte> committed() const;

    std::uint64_t launches() const { return virtual_->machine().counters().launches; }
    std::uint64_t live_allocations() const { return virtual_->machine().live_allocations(); }

    /// Lets everything go, and tells what ought not to be: memory that is still allocated, findings of the observers.
    std::vector<std::string> close();

  private:
    Tensor tensor(const std::vector<std::byte>& bytes, DType dtype);

    Group group_;
    std::shared_ptr<harness::VirtualDevice> virtual_;
    std::shared_ptr<harness::LosableDevice> losable_;  // null unless it can be lost
    std::shared_ptr<harness::CallLog> log_ = std::make_shared<harness::CallLog>();
    std::shared_ptr<harness::FaultPlan> plan_ = std::make_shared<harness::FaultPlan>();
    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
    std::vector<AdamWEntry> entries_;
    std::vector<std::shared_ptr<const void>> read_only_;
    /// Where copies to the host go. They must live until somebody has waited, and the first who waits may fail.
    std::vector<std::vector<std::vector<std::byte>>> host_memory_;
};

}  // namespace gradguard::testing
