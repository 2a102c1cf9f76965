// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradguard {

/// An address in the memory of a device. Arithmetic on it is ordinary; it means nothing to the host.
using DeviceAddress = std::uint64_t;

/// A piece of device memory. Copies share it: the last owner gone, it is freed (by the device, in its own order).
struct Buffer {
    std::shared_ptr<const void> owner;  ///< Null for foreign memory, which the caller keeps alive.
    DeviceAddress address = 0;
    std::uint64_t bytes = 0;

    /// Somebody else's memory: never freed, never copied.
    static Buffer borrowed(DeviceAddress address, std::uint64_t bytes) { return {nullptr, address, bytes}; }
};

/// Part of a buffer.
struct BufferRange {
    Buffer buffer;
    std::uint64_t byte_offset = 0;
    std::uint64_t bytes = 0;
};

/// What the library needs to know of a device (contract section 3, device limits). Reading it is no device call.
struct DeviceProperties {
    std::string name;
    std::uint32_t max_threads_per_block = 0;
    std::uint32_t max_threads_in_x = 0;
    std::uint32_t max_blocks_in_x = 0;
    std::uint64_t max_shared_bytes_per_block = 0;
};

/// A kernel of a loaded module, as its device knows it.
class Kernel {
  public:
    virtual ~Kernel() = default;
};

/// A loaded module.
class Module {
  public:
    virtual ~Module() = default;
    /// Throws Error{DeviceFailure} when the module has no such entry.
    virtual std::shared_ptr<const Kernel> kernel(std::string_view entry) = 0;
};

/// A one-dimensional launch; our kernels use nothing else.
struct LaunchShape {
    std::uint32_t blocks = 1;
    std::uint32_t threads = 1;
};

/// A batched readback under way.
class Readback {
  public:
    virtual ~Readback() = default;
    /// Waits for it; one byte string for each range asked for, in that order. Throws Error{DeviceFailure}.
    virtual std::vector<std::vector<std::byte>> wait() = 0;
};

class Device;

/// Work in order on one device. Everything but wait() and synchronize() is asynchronous: it may run any time until
/// then. All calls throw Error{DeviceFailure} with the call's name in `operand`; a failure of submitted work shows in a
/// later call, at the latest in synchronize(), and stays. Not for use from several threads at once.
class Queue {
  public:
    virtual ~Queue() = default;
    virtual Device& device() const = 0;

    /// `arguments` is the kernel's one by-value struct (copied before the call returns). `retained` is kept alive until
    /// the kernel has completed.
    virtual void launch(const std::shared_ptr<const Kernel>& kernel, LaunchShape shape,
                        std::span<const std::byte> arguments, std::vector<Buffer> retained) = 0;

    /// The source is copied before the call returns.
    virtual void copy_to_device(const BufferRange& destination, std::span<const std::byte> source) = 0;

    /// `destination` holds the data only after synchronize(), and must live until then.
    virtual void copy_to_host(std::span<std::byte> destination, const BufferRange& source) = 0;

    /// One call for many ranges.
    virtual std::unique_ptr<Readback> readback(std::vector<BufferRange> ranges) = 0;

    /// Waits for everything submitted so far.
    virtual void synchronize() = 0;
};

/// Where the text of a kernel module comes from. `module` is "statistics" or "update".
struct KernelSource {
    std::string name;  ///< For messages: "fmad", "nofmad", the name of a planted fault, ...
    std::function<std::string(std::string_view module)> ptx;

    /// The kernels compiled ahead of time, with or without contraction (contract section 6).
    static KernelSource embedded(bool contracted);
};

/// A device that runs the kernels. Implementations throw Error{DeviceFailure} with the call's name in `operand`.
class Device {
  public:
    Device() : kernel_source_(KernelSource::embedded(true)) {}
    virtual ~Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    virtual const DeviceProperties& properties() const = 0;
    virtual std::shared_ptr<Queue> create_queue() = 0;
    /// `bytes` > 0; contents undefined. `queue` orders the freeing where a device allocates in stream order.
    virtual Buffer allocate(std::uint64_t bytes, Queue& queue) = 0;
    virtual std::shared_ptr<Module> load_module(std::string_view name, std::string_view ptx) = 0;

    /// Which compiled kernels the operations below use on this device; modules are loaded at first use and kept.
    void set_kernel_source(KernelSource source);
    const KernelSource& kernel_source() const { return kernel_source_; }
    /// Loads the module if need be.
    std::shared_ptr<const Kernel> kernel(std::string_view module, const std::string& entry);

  private:
    KernelSource kernel_source_;
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Module>, std::less<>> modules_;
    std::map<std::string, std::shared_ptr<const Kernel>, std::less<>> kernels_;
};

}  // namespace gradguard
