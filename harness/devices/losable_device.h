// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/host/device.h"

namespace gradguard::harness {

/// What became of the submitted work that nobody had waited for when the device was lost.
enum class Fate : std::uint8_t {
    kDropped,   ///< None of it ran.
    kHalfDone,  ///< The first half ran.
    kDone       ///< All of it ran, and nobody was told.
};

std::string_view to_string(Fate fate);

/// A device that can be lost, as a real one by a reset or a fallen link: from then on every call fails with
/// DeviceFailure. Until somebody waits it holds all submitted work back, so that the loss finds it unfinished.
class LosableDevice : public Device, public std::enable_shared_from_this<LosableDevice> {
  public:
    static std::shared_ptr<LosableDevice> create(std::shared_ptr<Device> inner, Fate fate);

    /// Loses the device; work under way meets its fate. Waits for what still runs.
    void lose();
    bool lost() const { return lost_; }

    const DeviceProperties& properties() const override { return inner_->properties(); }
    std::shared_ptr<Queue> create_queue() override;
    Buffer allocate(std::uint64_t bytes, Queue& queue) override;
    std::shared_ptr<Module> load_module(std::string_view name, std::string_view ptx) override;

  private:
    friend class LosableQueue;
    LosableDevice(std::shared_ptr<Device> inner, Fate fate);
    /// Throws DeviceFailure of this call when the device is lost.
    void check(const char* call) const;

    std::shared_ptr<Device> inner_;
    Fate fate_;
    bool lost_ = false;
    std::vector<std::weak_ptr<class LosableQueue>> queues_;
};

}  // namespace gradguard::harness
