// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/cuda/driver.h"

namespace gradguard::cuda {

/// A CUDA context that everything of one device shares and keeps alive: queues, modules, buffers. It is the primary
/// context of the device, retained with the flags that it has, or the caller's own, which is never destroyed.
class Context {
  public:
    /// Retains the primary context. Throws Error{DeviceFailure}.
    static std::shared_ptr<Context> of_device(std::shared_ptr<const Driver> driver, int ordinal);
    /// The caller's context, which must live as long as anything of this device. Throws Error{DeviceFailure}.
    static std::shared_ptr<Context> of_caller(std::shared_ptr<const Driver> driver, CUcontext context);

    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    const Driver& driver() const { return *driver_; }
    CUcontext handle() const { return handle_; }
    CUdevice device() const { return device_; }

    /// Throws Error{DeviceFailure}, with `operation` as its operand, unless the result is success. An error that stays
    /// (stays()) is remembered: require_alive() throws it from then on.
    void check(CUresult result, const char* function, const std::string& operation, const std::string& detail);
    void require_alive(const std::string& operation) const;
    bool lost() const;

    /// A call of a destructor, with the context current. Nobody can be told of a failure then, so a call that fails is
    /// made once more: an error of the call itself means that it did nothing, and on a lost context both do nothing.
    /// One that fails again is kept for throw_failed_release().
    template <typename Function, typename... Arguments>
    void release(const DriverFunction<Function>& function, Arguments... arguments) noexcept {
        const bool pushed = push_to_release();
        CUresult result = function.call(arguments...);
        if (result != CUDA_SUCCESS) result = function.call(arguments...);
        note_release(result, function.name);
        if (pushed) pop();
    }
    /// Throws the first failure of release() since the last call, if there is one.
    void throw_failed_release(const std::string& operation);

  private:
    friend class Current;
    Context(std::shared_ptr<const Driver> driver, CUcontext handle, CUdevice device, bool primary);
    void pop() noexcept;
    bool push_to_release() noexcept;
    void note_release(CUresult result, const char* function) noexcept;
    void remember(CUresult result, const std::string& what);

    std::shared_ptr<const Driver> driver_;
    CUcontext handle_;
    CUdevice device_;
    bool primary_;
    mutable std::mutex mutex_;                   // queues of several threads share the context
    std::optional<std::string> lost_;            // the first error that stays
    std::optional<std::string> failed_release_;  // the first failure of a destructor
};

/// Makes the context current for the calling thread, for one operation of a device or a queue; the context that was
/// current before is so again at the end.
class Current {
  public:
    /// `operation` is the error's operand: "launch". `detail` is added to its message. Throws Error{DeviceFailure} when
    /// the context is lost.
    Current(std::shared_ptr<Context> context, std::string operation, std::string detail = {});
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    template <typename Function, typename... Arguments>
    void call(const DriverFunction<Function>& function, Arguments... arguments) const {
        context_->check(function.call(arguments...), function.name, operation_, detail_);
    }

    const DriverFunctions& driver() const { return context_->driver().functions(); }

  private:
    std::shared_ptr<Context> context_;
    std::string operation_;
    std::string detail_;
};

[[noreturn]] void fail(const std::string& operation, const std::string& reason);

}  // namespace gradguard::cuda
