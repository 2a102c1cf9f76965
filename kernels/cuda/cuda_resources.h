// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "kernels/cuda/cuda_context.h"
#include "kernels/host/device.h"

namespace gradguard::cuda {

// Things of the driver that are given back by a destructor. All share the context, so that any may outlive the device.

/// A point in a stream's work.
class Event {
  public:
    /// Throws Error{DeviceFailure} as an error of `operation`, as everything here does.
    Event(std::shared_ptr<Context> context, const std::string& operation, bool timed = false);
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    CUevent handle() const { return handle_; }
    void record(const Current& current, CUstream stream) const;
    void wait(const Current& current) const;
    /// Whether the point is reached; the context must be current. False also when the driver cannot say: whoever waits
    /// is told why.
    bool reached() const;
    /// For destructors: waits, whatever comes of it.
    void settle() const noexcept;

  private:
    std::shared_ptr<Context> context_;
    CUevent handle_ = nullptr;
};

/// Host memory that the device copies from and to by itself.
class PinnedMemory {
  public:
    PinnedMemory(std::shared_ptr<Context> context, std::size_t bytes, const std::string& operation);
    ~PinnedMemory();
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;

    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), bytes_}; }

  private:
    std::shared_ptr<Context> context_;
    void* memory_ = nullptr;
    std::size_t bytes_;
};

/// A pool of device memory of our own, so that the device's default pool, which belongs to the whole process, stays as
/// it is. It keeps `keep` bytes of freed memory over a synchronisation instead of giving them back to the system.
class MemoryPool {
  public:
    MemoryPool(std::shared_ptr<Context> context, std::uint64_t keep);
    ~MemoryPool();
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;

    CUmemoryPool handle() const { return handle_; }

  private:
    std::shared_ptr<Context> context_;
    CUmemoryPool handle_ = nullptr;
};

/// A stream, and the memory that is allocated and freed in its order. Buffers share it; the queue closes it.
class Stream {
  public:
    /// A new stream that does not wait for the default stream. No pool: cuMemAlloc and cuMemFree.
    static std::shared_ptr<Stream> create(std::shared_ptr<Context> context, std::shared_ptr<MemoryPool> pool);
    /// The caller's stream, which must live until close() and is not destroyed. Throws when it is of another context.
    static std::shared_ptr<Stream> over(std::shared_ptr<Context> context, std::shared_ptr<MemoryPool> pool,
                                        CUstream stream);
    ~Stream() { close(); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    CUstream handle() const { return handle_; }
    /// `bytes` > 0.
    Buffer allocate(const std::shared_ptr<Stream>& self, std::uint64_t bytes) const;
    /// Whether this stream's order frees the buffer, so that work submitted to it before is done by then.
    bool frees(const Buffer& buffer) const;

    /// Waits for all work. What is allocated still is freed without any order from then on.
    void close() noexcept;

  private:
    struct Free;
    Stream(std::shared_ptr<Context> context, std::shared_ptr<MemoryPool> pool, CUstream handle, bool owned);
    void free(CUdeviceptr address) noexcept;

    std::shared_ptr<Context> context_;
    std::shared_ptr<MemoryPool> pool_;
    CUstream handle_;
    bool owned_;
    std::mutex mutex_;  // the last owner of a buffer may be of another thread
    bool open_ = true;
};

}  // namespace gradguard::cuda
