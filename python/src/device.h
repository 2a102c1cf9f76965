// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "harness/devices/virtual_device.h"
#include "kernels/host/tensor.h"

namespace gradguard::python {

/// A virtual GPU that Python calls from any thread: one call at a time, each complete when it returns, so that between
/// calls nothing is queued. Holds no Python object.
class SharedDevice : public std::enable_shared_from_this<SharedDevice> {
  public:
    /// Throws DeviceUnavailable, std::invalid_argument for an unknown observer.
    static std::shared_ptr<SharedDevice> open(const std::string& name, std::uint64_t seed, const std::string& observers,
                                              bool fmad);
    /// The one that calls use which name none; opened at its first use.
    static std::shared_ptr<SharedDevice> standard();

    /// For the time of one call. The thread must not hold the interpreter's lock while it waits.
    class Use {
      public:
        Use(SharedDevice& device, std::uint64_t tensors);
        ~Use();
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

        const std::shared_ptr<Queue>& queue() const { return device_.queue_; }
        harness::VirtualDevice& gpu() const { return *device_.gpu_; }

      private:
        SharedDevice& device_;
        std::unique_lock<std::mutex> lock_;
    };

    /// Lets go of a result's memory: now, or when the call that runs just now is over. Never waits.
    void release(Buffer buffer);

    std::vector<std::string> findings(bool final);
    std::uint64_t live_allocations();
    /// A new device in the old one's place, after a failure that stays.
    void reset();

    const std::string& name() const { return name_; }
    std::uint64_t seed() const { return seed_; }
    const std::string& observers() const { return observers_; }
    bool fmad() const { return fmad_; }

  private:
    SharedDevice() = default;
    void renew();
    void bury();

    std::string name_, observers_;
    std::uint64_t seed_ = 0, generation_ = 0, tensors_ = 0;
    bool fmad_ = true;
    std::mutex mutex_;  ///< Of everything below.
    std::shared_ptr<harness::VirtualDevice> gpu_;
    std::shared_ptr<Queue> queue_;
    std::vector<std::string> earlier_findings_;
    std::mutex released_mutex_;
    std::vector<Buffer> released_;
};

/// Device memory that a NumPy array shows; goes back to its device with the array.
struct ResultMemory {
    std::shared_ptr<SharedDevice> device;
    Buffer buffer;
    void* host = nullptr;

    ResultMemory(std::shared_ptr<SharedDevice> owner, Buffer memory, void* pointer)
        : device(std::move(owner)), buffer(std::move(memory)), host(pointer) {}
    ~ResultMemory() { device->release(std::move(buffer)); }
    ResultMemory(const ResultMemory&) = delete;
    ResultMemory& operator=(const ResultMemory&) = delete;
};

}  // namespace gradguard::python
