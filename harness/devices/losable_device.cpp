// SPDX-License-Identifier: Apache-2.0
#include "harness/devices/losable_device.h"

#include <deque>
#include <functional>
#include <utility>

#include "reference/contract/error.h"

namespace gradguard::harness {

using Payload = std::vector<std::vector<std::byte>>;

/// Keeps what was submitted until somebody waits, and only then passes it on.
class LosableQueue : public Queue, public std::enable_shared_from_this<LosableQueue> {
  public:
    LosableQueue(std::shared_ptr<LosableDevice> device, std::shared_ptr<Queue> inner)
        : device_(std::move(device)), inner_(std::move(inner)) {}

    /// As every queue: submitted work is finished, though nobody waits for it.
    ~LosableQueue() override {
        try {
            pass_on(held_.size());
        } catch (const std::exception&) {
            held_.clear();
        }
    }

    Device& device() const override { return *device_; }
    Queue& inner() { return *inner_; }

    void launch(const std::shared_ptr<const Kernel>& kernel, LaunchShape shape, std::span<const std::byte> arguments,
                std::vector<Buffer> retained) override {
        device_->check("launch");
        held_.emplace_back([this, kernel, shape, bytes = std::vector(arguments.begin(), arguments.end()),
                            keep = std::move(retained)] { inner_->launch(kernel, shape, bytes, keep); });
    }

    void copy_to_device(const BufferRange& destination, std::span<const std::byte> source) override {
        device_->check("copy_to_device");
        held_.emplace_back([this, destination, bytes = std::vector(source.begin(), source.end())] {
            inner_->copy_to_device(destination, bytes);
        });
    }

    void copy_to_host(std::span<std::byte> destination, const BufferRange& source) override {
        device_->check("copy_to_host");
        held_.emplace_back([this, destination, source] { inner_->copy_to_host(destination, source); });
    }

    std::unique_ptr<Readback> readback(std::vector<BufferRange> ranges) override;

    void synchronize() override {
        device_->check("synchronize");
        pass_on(held_.size());
        inner_->synchronize();
    }

    /// The first `count` of what is held back go to the device.
    void pass_on(std::size_t count) {
        for (; count > 0; --count) {
            const std::function<void()> work = std::move(held_.front());
            held_.pop_front();
            work();
        }
    }

    void meet(Fate fate) {
        const std::size_t all = held_.size();
        pass_on(fate == Fate::kDropped ? 0 : fate == Fate::kHalfDone ? (all + 1) / 2 : all);
        inner_->synchronize();
        held_.clear();
    }

    void check(const char* call) const { device_->check(call); }

  private:
    std::shared_ptr<LosableDevice> device_;
    std::shared_ptr<Queue> inner_;
    std::deque<std::function<void()>> held_;
};

namespace {

class LosableReadback : public Readback {
  public:
    LosableReadback(std::shared_ptr<LosableQueue> queue, std::shared_ptr<std::unique_ptr<Readback>> inner)
        : queue_(std::move(queue)), inner_(std::move(inner)) {}

    Payload wait() override {
        queue_->check("readback");
        queue_->synchronize();
        return (*inner_)->wait();
    }

  private:
    std::shared_ptr<LosableQueue> queue_;
    std::shared_ptr<std::unique_ptr<Readback>> inner_;  // there once the queue has passed it on
};

}  // namespace

std::unique_ptr<Readback> LosableQueue::readback(std::vector<BufferRange> ranges) {
    device_->check("readback");
    auto inner = std::make_shared<std::unique_ptr<Readback>>();
    held_.emplace_back([this, ranges = std::move(ranges), inner] { *inner = inner_->readback(ranges); });
    return std::make_unique<LosableReadback>(shared_from_this(), inner);
}

std::string_view to_string(Fate fate) {
    switch (fate) {
        case Fate::kDropped:
            return "dropped";
        case Fate::kHalfDone:
            return "half done";
        case Fate::kDone:
            return "done";
    }
    return "?";
}

LosableDevice::LosableDevice(std::shared_ptr<Device> inner, Fate fate) : inner_(std::move(inner)), fate_(fate) {
    set_kernel_source(inner_->kernel_source());
}

std::shared_ptr<LosableDevice> LosableDevice::create(std::shared_ptr<Device> inner, Fate fate) {
    return std::shared_ptr<LosableDevice>(new LosableDevice(std::move(inner), fate));
}

void LosableDevice::lose() {
    if (std::exchange(lost_, true)) return;
    for (const auto& weak : queues_) {
        if (const auto queue = weak.lock()) queue->meet(fate_);
    }
}

void LosableDevice::check(const char* call) const {
    if (lost_) throw Error(ErrorKind::kDeviceFailure, {.operand = call}, std::string(call) + " failed: device lost");
}

std::shared_ptr<Queue> LosableDevice::create_queue() {
    check("create_queue");
    auto queue = std::make_shared<LosableQueue>(shared_from_this(), inner_->create_queue());
    queues_.push_back(queue);
    return queue;
}

Buffer LosableDevice::allocate(std::uint64_t bytes, Queue& queue) {
    check("allocate");
    return inner_->allocate(bytes, static_cast<LosableQueue&>(queue).inner());
}

std::shared_ptr<Module> LosableDevice::load_module(std::string_view name, std::string_view ptx) {
    check("load_module");
    return inner_->load_module(name, ptx);
}

}  // namespace gradguard::harness
