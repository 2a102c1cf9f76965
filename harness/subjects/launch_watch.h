// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/devices/hooked_device.h"
#include "kernels/host/device.h"
#include "reference/fp64/coefficients.h"

namespace gradguard::harness {

/// Counts the calls of a device and reads the coefficients out of the launches of update kernels.
class LaunchWatch : public DeviceHook {
  public:
    void before(const CallRecord& record) override;

    void clear();
    /// Calls so far, the loading of modules not counted: they are loaded once and kept.
    std::uint64_t calls() const { return calls_; }
    std::uint64_t update_launches() const { return updates_.size(); }
    /// What the update that writes its new parameters to this address was given; nothing when there was none.
    std::optional<reference::UpdateCoefficients> coefficients(DeviceAddress new_parameters) const;

  private:
    struct Update {
        DeviceAddress new_parameters = 0;
        reference::UpdateCoefficients coefficients;
    };
    std::uint64_t calls_ = 0;
    std::vector<Update> updates_;
};

}  // namespace gradguard::harness
