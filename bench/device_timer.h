// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "kernels/cuda/cuda_queue.h"

namespace gradguard::bench {

/// The device's own clock around a stretch of a queue's work; of a queue without one it does nothing.
class DeviceTimer {
  public:
    explicit DeviceTimer(const std::shared_ptr<Queue>& queue) {
        if (const auto cuda_queue = std::dynamic_pointer_cast<cuda::CudaQueue>(queue)) timer_.emplace(cuda_queue);
    }

    /// Marks the place behind everything submitted so far. Throw Error{DeviceFailure}.
    void start() const {
        if (timer_) timer_->start();
    }
    void stop() const {
        if (timer_) timer_->stop();
    }
    /// From the last start() to the last stop(); waits for the latter. Throws Error{DeviceFailure}.
    std::optional<double> seconds() const {
        if (!timer_) return std::nullopt;
        return 1e-3 * static_cast<double>(timer_->milliseconds());
    }

  private:
    std::optional<cuda::CudaTimer> timer_;
};

}  // namespace gradguard::bench
