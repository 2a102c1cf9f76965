// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "kernels/cuda/cuda_resources.h"
#include "kernels/host/device.h"

namespace gradguard::cuda {

class CudaDevice;
class CudaKernel;

/// Pinned memory that uploads go through, so that the source may change as soon as the call returns, whatever memory it
/// is: the driver copies a pageable source before it returns (after it has waited for the stream), a pinned one not.
/// Two halves: one is filled while the device reads the other.
class Staging {
  public:
    static constexpr std::size_t kHalfBytes = std::size_t{2} << 20U;

    Staging(const std::shared_ptr<Context>& context, const std::string& operation);
    /// Memory for the next piece of at most `bytes` bytes, at least one. Waits when both halves are in use.
    std::span<std::byte> next(const Current& current, CUstream stream, std::size_t bytes);
    /// Everything submitted is done.
    void all_done();

  private:
    struct Half {
        PinnedMemory memory;
        Event read;  ///< The device has read all of it.
        std::size_t used = 0;
        bool submitted = false;  ///< `read` is recorded, and nobody has waited for it.
    };
    std::array<Half, 2> halves_;
    std::size_t filling_ = 0;
};

/// Work in order in a CUDA stream. Errors of kernels and copies show in a later call, at the latest in synchronize(),
/// and stay. The destructor waits for the work.
class CudaQueue : public Queue, public std::enable_shared_from_this<CudaQueue> {
  public:
    CudaQueue(std::shared_ptr<CudaDevice> device, std::shared_ptr<Context> context, std::shared_ptr<Stream> stream);
    ~CudaQueue() override;

    Device& device() const override;
    void launch(const std::shared_ptr<const Kernel>& kernel, LaunchShape shape, std::span<const std::byte> arguments,
                std::vector<Buffer> retained) override;
    void copy_to_device(const BufferRange& destination, std::span<const std::byte> source) override;
    /// Returns before or after the data has come, as the driver likes.
    void copy_to_host(std::span<std::byte> destination, const BufferRange& source) override;
    std::unique_ptr<Readback> readback(std::vector<BufferRange> ranges) override;
    void synchronize() override;

    /// Within the device's memory. The ranges must be as long as each other, and not overlap.
    void copy_on_device(const BufferRange& destination, const BufferRange& source);

    /// Memory that is freed in this queue's order; `bytes` > 0.
    Buffer allocate(std::uint64_t bytes) const { return stream_->allocate(stream_, bytes); }
    CUstream stream() const { return stream_->handle(); }
    const std::shared_ptr<Context>& context() const { return context_; }

  private:
    friend class CudaReadback;
    /// Pinned memory of one readback, and the point at which it is filled.
    struct ReadbackBlock {
        std::unique_ptr<PinnedMemory> memory;
        std::unique_ptr<Event> filled;
    };
    /// Buffers of other queues or owners, which are kept until a kernel has run.
    struct Held {
        std::vector<Buffer> buffers;
        std::unique_ptr<Event> done;  ///< Null: until synchronize().
    };

    ReadbackBlock take_block(std::size_t bytes);
    void let_go_of_what_is_done();
    std::unique_ptr<Event> take_event(const std::string& operation);

    std::shared_ptr<CudaDevice> device_;
    std::shared_ptr<Context> context_;
    std::shared_ptr<Stream> stream_;
    std::unique_ptr<Staging> staging_;
    std::vector<ReadbackBlock> blocks_;           // free ones
    std::vector<std::unique_ptr<Event>> events_;  // free ones
    std::deque<Held> held_;
    std::set<std::shared_ptr<const CudaKernel>> running_;  // kept loaded; since the last synchronize()
};

/// Time that the device takes between two points of a queue's work, by its own clock.
class CudaTimer {
  public:
    explicit CudaTimer(std::shared_ptr<CudaQueue> queue);
    void start() const;
    void stop() const;
    /// Between the last start() and stop(); waits for the latter. Throws Error{DeviceFailure}.
    float milliseconds() const;

  private:
    std::shared_ptr<CudaQueue> queue_;
    Event start_;
    Event stop_;
};

}  // namespace gradguard::cuda
