// SPDX-License-Identifier: Apache-2.0
#include "harness/devices/hooked_device.h"

#include <algorithm>
#include <utility>

#include "reference/contract/error.h"

namespace gradguard::harness {
namespace {

struct HookedKernel : Kernel {
    HookedKernel(std::shared_ptr<const Kernel> kernel, std::string entry)
        : inner(std::move(kernel)), name(std::move(entry)) {}
    std::shared_ptr<const Kernel> inner;
    std::string name;
};

struct HookedModule : Module {
    explicit HookedModule(std::shared_ptr<Module> module) : inner(std::move(module)) {}
    std::shared_ptr<const Kernel> kernel(std::string_view entry) override {
        return std::make_shared<HookedKernel>(inner->kernel(entry), std::string(entry));
    }
    std::shared_ptr<Module> inner;
};

class HookedDevice;

class HookedReadback : public Readback {
  public:
    HookedReadback(std::shared_ptr<HookedDevice> device, std::unique_ptr<Readback> inner)
        : device_(std::move(device)), inner_(std::move(inner)) {}
    std::vector<std::vector<std::byte>> wait() override;

  private:
    std::shared_ptr<HookedDevice> device_;
    std::unique_ptr<Readback> inner_;
};

class HookedQueue : public Queue {
  public:
    HookedQueue(std::shared_ptr<HookedDevice> device, std::shared_ptr<Queue> inner)
        : device_(std::move(device)), inner_(std::move(inner)) {}
    Device& device() const override;
    void launch(const std::shared_ptr<const Kernel>& kernel, LaunchShape shape, std::span<const std::byte> arguments,
                std::vector<Buffer> retained) override;
    void copy_to_device(const BufferRange& destination, std::span<const std::byte> source) override;
    void copy_to_host(std::span<std::byte> destination, const BufferRange& source) override;
    std::unique_ptr<Readback> readback(std::vector<BufferRange> ranges) override;
    void synchronize() override;
    Queue& inner() { return *inner_; }

  private:
    std::shared_ptr<HookedDevice> device_;
    std::shared_ptr<Queue> inner_;
};

class HookedDevice : public Device, public std::enable_shared_from_this<HookedDevice> {
  public:
    HookedDevice(std::shared_ptr<Device> inner, std::vector<std::shared_ptr<DeviceHook>> hooks,
                 std::optional<DeviceProperties> properties)
        : inner_(std::move(inner)),
          hooks_(std::move(hooks)),
          properties_(std::move(properties).value_or(inner_->properties())) {
        set_kernel_source(inner_->kernel_source());
    }

    const DeviceProperties& properties() const override { return properties_; }
    std::shared_ptr<Queue> create_queue() override {
        return std::make_shared<HookedQueue>(shared_from_this(), inner_->create_queue());
    }
    Buffer allocate(std::uint64_t bytes, Queue& queue) override {
        before({.call = DeviceCall::kAllocate, .bytes = bytes});
        return inner_->allocate(bytes, static_cast<HookedQueue&>(queue).inner());
    }
    std::shared_ptr<Module> load_module(std::string_view name, std::string_view ptx) override {
        before({.call = DeviceCall::kLoadModule, .detail = std::string(name), .bytes = ptx.size()});
        return std::make_shared<HookedModule>(inner_->load_module(name, ptx));
    }

    void before(const CallRecord& record) const {
        for (const auto& hook : hooks_) hook->before(record);
    }
    void before_launch(CallRecord& record) const {
        for (const auto& hook : hooks_) {
            hook->change_arguments(record.detail, record.arguments);
            hook->before(record);
        }
    }
    void after_readback(std::vector<std::vector<std::byte>>& payload) const {
        for (const auto& hook : hooks_) hook->after_readback(payload);
    }

  private:
    std::shared_ptr<Device> inner_;
    std::vector<std::shared_ptr<DeviceHook>> hooks_;
    DeviceProperties properties_;
};

std::vector<std::vector<std::byte>> HookedReadback::wait() {
    device_->before({.call = DeviceCall::kReadbackWait});
    auto payload = inner_->wait();
    device_->after_readback(payload);
    return payload;
}

Device& HookedQueue::device() const { return *device_; }

void HookedQueue::launch(const std::shared_ptr<const Kernel>& kernel, LaunchShape shape,
                         std::span<const std::byte> arguments, std::vector<Buffer> retained) {
    const auto& hooked = static_cast<const HookedKernel&>(*kernel);
    CallRecord record = {.call = DeviceCall::kLaunch,
                         .detail = hooked.name,
                         .shape = shape,
                         .arguments = {arguments.begin(), arguments.end()}};
    device_->before_launch(record);
    inner_->launch(hooked.inner, shape, record.arguments, std::move(retained));
}

void HookedQueue::copy_to_device(const BufferRange& destination, std::span<const std::byte> source) {
    device_->before({.call = DeviceCall::kCopyToDevice, .bytes = source.size()});
    inner_->copy_to_device(destination, source);
}

void HookedQueue::copy_to_host(std::span<std::byte> destination, const BufferRange& source) {
    device_->before({.call = DeviceCall::kCopyToHost, .bytes = destination.size()});
    inner_->copy_to_host(destination, source);
}

std::unique_ptr<Readback> HookedQueue::readback(std::vector<BufferRange> ranges) {
    std::uint64_t bytes = 0;
    for (const BufferRange& range : ranges) bytes += range.bytes;
    device_->before({.call = DeviceCall::kReadback, .bytes = bytes});
    return std::make_unique<HookedReadback>(device_, inner_->readback(std::move(ranges)));
}

void HookedQueue::synchronize() {
    device_->before({.call = DeviceCall::kSynchronize});
    inner_->synchronize();
}

}  // namespace

std::string_view to_string(DeviceCall call) {
    switch (call) {
        case DeviceCall::kAllocate:
            return "allocate";
        case DeviceCall::kLoadModule:
            return "load_module";
        case DeviceCall::kLaunch:
            return "launch";
        case DeviceCall::kCopyToDevice:
            return "copy_to_device";
        case DeviceCall::kCopyToHost:
            return "copy_to_host";
        case DeviceCall::kReadback:
            return "readback";
        case DeviceCall::kReadbackWait:
            return "readback_wait";
        case DeviceCall::kSynchronize:
            return "synchronize";
    }
    return "?";
}

std::size_t CallLog::count(DeviceCall call) const {
    return static_cast<std::size_t>(
        std::count_if(calls.begin(), calls.end(), [call](const CallRecord& record) { return record.call == call; }));
}

std::uint64_t CallLog::bytes(DeviceCall call) const {
    std::uint64_t sum = 0;
    for (const CallRecord& record : calls) sum += record.call == call ? record.bytes : 0;
    return sum;
}

void FailNthCall::before(const CallRecord& record) {
    if (done_ || record.call != call_) return;
    if (remaining_ > 0) {
        --remaining_;
        return;
    }
    done_ = true;
    fail_call(record);
}

void fail_call(const CallRecord& record) {
    const std::string name(to_string(record.call));
    throw Error(ErrorKind::kDeviceFailure, {.operand = name}, name + " failed: injected fault");
}

void FaultPlan::arm(std::size_t n, Fault fault) {
    remaining_ = n;
    fault_ = std::move(fault);
}

void FaultPlan::before(const CallRecord& record) {
    if (!fault_) return;
    if (remaining_ > 0) {
        --remaining_;
        return;
    }
    const Fault fault = std::exchange(fault_, nullptr);
    fault(record);
}

std::shared_ptr<Device> hook_device(std::shared_ptr<Device> inner, std::vector<std::shared_ptr<DeviceHook>> hooks,
                                    std::optional<DeviceProperties> properties) {
    return std::make_shared<HookedDevice>(std::move(inner), std::move(hooks), std::move(properties));
}

}  // namespace gradguard::harness
