// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/host/device.h"

namespace gradguard::harness {

/// Kinds of device call, for recording and for injecting faults. Reading properties is none.
enum class DeviceCall : std::uint8_t {
    kAllocate,
    kLoadModule,
    kLaunch,
    kCopyToDevice,
    kCopyToHost,
    kReadback,      ///< Its submission.
    kReadbackWait,  ///< Waiting for it.
    kSynchronize
};

std::string_view to_string(DeviceCall call);

/// One call as a hook sees it, before it is passed on.
struct CallRecord {
    DeviceCall call = DeviceCall::kAllocate;
    std::string detail = {};                ///< Module or kernel name; else empty.
    std::uint64_t bytes = 0;                ///< Allocated, copied or read back.
    LaunchShape shape = {0, 0};             ///< Of a launch.
    std::vector<std::byte> arguments = {};  ///< Of a launch.
};

/// What to do around the calls of a device. The default does nothing.
class DeviceHook {
  public:
    virtual ~DeviceHook() = default;
    /// May throw instead of letting the call through.
    virtual void before(const CallRecord& record) { (void)record; }
    /// May change what a launch is given; hooks run in order, each before its before().
    virtual void change_arguments(const std::string& kernel, std::span<std::byte> arguments) {
        (void)kernel;
        (void)arguments;
    }
    /// May change what a readback returns.
    virtual void after_readback(std::vector<std::vector<std::byte>>& payload) { (void)payload; }
};

/// Records every call.
class CallLog : public DeviceHook {
  public:
    void before(const CallRecord& record) override { calls.push_back(record); }
    std::size_t count(DeviceCall call) const;
    std::uint64_t bytes(DeviceCall call) const;

    std::vector<CallRecord> calls;
};

/// Throws what a device throws whose call failed: DeviceFailure with the call's name.
[[noreturn]] void fail_call(const CallRecord& record);

/// Fails the n-th call (from 0) of a kind with DeviceFailure, and only that one.
class FailNthCall : public DeviceHook {
  public:
    FailNthCall(DeviceCall call, std::size_t n) : call_(call), remaining_(n) {}
    void before(const CallRecord& record) override;

  private:
    DeviceCall call_;
    std::size_t remaining_;
    bool done_ = false;
};

/// Lets one call go wrong, whatever its kind: calls are counted together from arm() on, so that every call of a step
/// can be made to fail in turn.
class FaultPlan : public DeviceHook {
  public:
    using Fault = std::function<void(const CallRecord&)>;
    /// The n-th call from now (0 is the next one) does `fault` first. When that returns, the call is passed on.
    void arm(std::size_t n, Fault fault = fail_call);
    void disarm() { fault_ = nullptr; }
    void before(const CallRecord& record) override;

  private:
    std::size_t remaining_ = 0;
    Fault fault_;
};

/// Changes the payload of every readback.
class TamperReadback : public DeviceHook {
  public:
    using Tamper = std::function<void(std::vector<std::vector<std::byte>>&)>;
    explicit TamperReadback(Tamper tamper) : tamper_(std::move(tamper)) {}
    void after_readback(std::vector<std::vector<std::byte>>& payload) override { tamper_(payload); }

  private:
    Tamper tamper_;
};

/// A device that passes every call on to `inner`, hooks around it. `properties`, if given, replaces the inner device's.
std::shared_ptr<Device> hook_device(std::shared_ptr<Device> inner, std::vector<std::shared_ptr<DeviceHook>> hooks,
                                    std::optional<DeviceProperties> properties = std::nullopt);

}  // namespace gradguard::harness
