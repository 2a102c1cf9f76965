// SPDX-License-Identifier: Apache-2.0
#include "harness/devices/virtual_device.h"

#include <cstring>
#include <deque>
#include <functional>
#include <utility>

#include "harness/vgpu/decode/program_cache.h"
#include "harness/vgpu/module.h"
#include "reference/contract/error.h"

namespace gradguard::harness {
namespace {

[[noreturn]] void fail(const char* call, const std::string& reason) {
    throw Error(ErrorKind::kDeviceFailure, {.operand = call}, std::string(call) + " failed: " + reason);
}

struct VirtualKernel : Kernel {
    VirtualKernel(std::shared_ptr<const vgpu::Module> loaded, std::string name)
        : module(std::move(loaded)), entry(std::move(name)) {}
    std::shared_ptr<const vgpu::Module> module;
    std::string entry;
};

struct VirtualModule : Module {
    explicit VirtualModule(std::shared_ptr<const vgpu::Module> loaded) : module(std::move(loaded)) {}
    std::shared_ptr<const Kernel> kernel(std::string_view entry) override {
        if (module->find(entry) == nullptr) fail("load_module", "no entry '" + std::string(entry) + "' in the module");
        return std::make_shared<VirtualKernel>(module, std::string(entry));
    }
    std::shared_ptr<const vgpu::Module> module;
};

vgpu::MachineOptions machine_options(const VirtualDeviceOptions& options) {
    vgpu::MachineOptions machine = options.machine;
    machine.count_by_kind = machine.count_by_kind || options.count;
    return machine;
}

}  // namespace

/// In-order work as closures. What runs them decides when: the seed at submission, or whoever waits.
class VirtualQueue : public Queue, public std::enable_shared_from_this<VirtualQueue> {
  public:
    explicit VirtualQueue(std::shared_ptr<VirtualDevice> device) : device_(std::move(device)) {}

    /// Submitted work is finished, as on a GPU; whoever wanted to know of a failure has waited before.
    ~VirtualQueue() override {
        try {
            run_all();
        } catch (const std::exception&) {
            work_.clear();
        }
    }

    Device& device() const override { return *device_; }

    void launch(const std::shared_ptr<const Kernel>& kernel, LaunchShape shape, std::span<const std::byte> arguments,
                std::vector<Buffer> retained) override {
        device_->check("launch");
        const auto virtual_kernel = std::dynamic_pointer_cast<const VirtualKernel>(kernel);
        if (virtual_kernel == nullptr) fail("launch", "the kernel was loaded by another device");
        submit([this, virtual_kernel, shape, bytes = std::vector(arguments.begin(), arguments.end()),
                keep = std::move(retained)] {
            vgpu::LaunchConfig config;
            config.grid.x = shape.blocks;
            config.block.x = shape.threads;
            device_->machine_->launch(*virtual_kernel->module, virtual_kernel->entry, config, bytes);
        });
    }

    void copy_to_device(const BufferRange& destination, std::span<const std::byte> source) override {
        device_->check("copy_to_device");
        submit([this, destination, bytes = std::vector(source.begin(), source.end())] {
            device_->machine_->write(destination.buffer.address + destination.byte_offset, bytes.data(), bytes.size());
        });
    }

    void copy_to_host(std::span<std::byte> destination, const BufferRange& source) override {
        device_->check("copy_to_host");
        std::memset(destination.data(), VirtualDevice::kPoison, destination.size());
        // Complete only when somebody waits, whatever the seed says about the work before it.
        ++host_copies_;
        enqueue([this, destination, source] {
            device_->machine_->read(source.buffer.address + source.byte_offset, destination.data(), destination.size());
        });
    }

    std::unique_ptr<Readback> readback(std::vector<BufferRange> ranges) override;

    void synchronize() override {
        run_all();
        device_->check("synchronize");
    }

  private:
    void enqueue(std::function<void()> work) { work_.push_back(std::move(work)); }

    void submit(std::function<void()> work) {
        enqueue(std::move(work));
        if (host_copies_ == 0 && run_now()) run_quietly();
    }

    bool run_now() { return !device_->options_.hold_back || device_->random_.coin(); }

    /// A failure of submitted work is remembered by the device and shows in a later call.
    void run_quietly() {
        while (!work_.empty() && !device_->failure_) {
            const std::function<void()> work = std::move(work_.front());
            work_.pop_front();
            try {
                work();
            } catch (const std::exception& error) {
                device_->failure_ = error.what();
            }
        }
        if (device_->failure_) work_.clear();
    }

    void run_all() {
        run_quietly();
        host_copies_ = 0;
    }

    std::shared_ptr<VirtualDevice> device_;
    std::deque<std::function<void()>> work_;
    std::size_t host_copies_ = 0;  ///< Waiting; such a copy never completes early, and nothing overtakes it.
};

using Payload = std::vector<std::vector<std::byte>>;

class VirtualReadback : public Readback {
  public:
    VirtualReadback(std::shared_ptr<VirtualQueue> queue, std::shared_ptr<Payload> payload)
        : queue_(std::move(queue)), payload_(std::move(payload)) {}

    Payload wait() override {
        queue_->synchronize();
        return std::move(*payload_);
    }

  private:
    std::shared_ptr<VirtualQueue> queue_;
    std::shared_ptr<Payload> payload_;  // shared with the queued work, which may outlive an abandoned readback
};

std::unique_ptr<Readback> VirtualQueue::readback(std::vector<BufferRange> ranges) {
    device_->check("readback");
    auto payload = std::make_shared<Payload>();
    for (const BufferRange& range : ranges) payload->emplace_back(range.bytes);
    ++host_copies_;
    enqueue([this, ranges = std::move(ranges), payload] {
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            device_->machine_->read(ranges[i].buffer.address + ranges[i].byte_offset, (*payload)[i].data(),
                                    ranges[i].bytes);
        }
    });
    return std::make_unique<VirtualReadback>(shared_from_this(), payload);
}

std::shared_ptr<VirtualDevice> VirtualDevice::create(const VirtualDeviceOptions& options) {
    return std::shared_ptr<VirtualDevice>(new VirtualDevice(options));
}

VirtualDevice::VirtualDevice(const VirtualDeviceOptions& options)
    : programs_(std::make_shared<vgpu::ProgramCache>()),
      machine_(std::make_shared<vgpu::Machine>(machine_options(options), programs_)),
      observers_(std::make_unique<observers::ObserverSet>(*machine_, options.observers)),
      options_(options),
      random_(options.machine.seed) {
    if (options.count) machine_->attach(&counts_.emplace());
    const vgpu::Limits& limits = options.machine.limits;
    properties_.name = "virtual GPU";
    properties_.max_threads_per_block = limits.max_threads_per_block;
    properties_.max_threads_in_x = limits.max_block.x;
    properties_.max_blocks_in_x = limits.max_grid.x;
    properties_.max_shared_bytes_per_block = limits.max_shared_bytes_per_block;
}

void VirtualDevice::renew(std::uint64_t schedule_seed) {
    if (counts_) machine_->detach(&*counts_);
    observers_.reset();
    options_.machine.seed = schedule_seed;
    machine_ = std::make_shared<vgpu::Machine>(machine_options(options_), programs_);
    observers_ = std::make_unique<observers::ObserverSet>(*machine_, options_.observers);
    if (counts_) machine_->attach(&*counts_);
    random_ = vgpu::Random(schedule_seed);
    failure_.reset();
}

VirtualDevice::~VirtualDevice() {
    // Buffers may outlive the device and with it the counters; the machine lives as long as they do.
    if (counts_) machine_->detach(&*counts_);
}

std::shared_ptr<const void> VirtualDevice::mark_read_only(const BufferRange& range) {
    observers::Inputs* const inputs = observers_->inputs();
    if (inputs == nullptr) return nullptr;
    const vgpu::Address address = range.buffer.address + range.byte_offset;
    inputs->mark_read_only(address, range.bytes);
    // The handle keeps the device, and so the observer.
    return {static_cast<const void*>(inputs), [device = shared_from_this(), inputs, address,
                                               bytes = range.bytes](const void*) { inputs->unmark(address, bytes); }};
}

std::vector<vgpu::Finding> VirtualDevice::findings() const {
    return {machine_->findings().begin(), machine_->findings().end()};
}

std::vector<vgpu::Finding> VirtualDevice::final_findings() const {
    std::vector<vgpu::Finding> all = findings();
    for (vgpu::Finding& finding : observers_->final_findings()) all.push_back(std::move(finding));
    return all;
}

void VirtualDevice::check(const char* call) const {
    if (failure_) fail(call, *failure_);
}

Buffer VirtualDevice::own(vgpu::Address address, std::uint64_t bytes) const {
    std::shared_ptr<const void> owner(static_cast<const void*>(nullptr),
                                      [machine = machine_, address](const void*) { machine->free(address); });
    return {std::move(owner), address, bytes};
}

std::shared_ptr<Queue> VirtualDevice::create_queue() { return std::make_shared<VirtualQueue>(shared_from_this()); }

Buffer VirtualDevice::allocate(std::uint64_t bytes, Queue& queue) {
    check("allocate");
    if (&queue.device() != this) fail("allocate", "the queue belongs to another device");
    try {
        return own(machine_->allocate(bytes), bytes);
    } catch (const std::exception& error) {
        fail("allocate", error.what());
    }
}

Buffer VirtualDevice::map(void* memory, std::uint64_t bytes) { return own(machine_->map(memory, bytes), bytes); }

std::shared_ptr<Module> VirtualDevice::load_module(std::string_view name, std::string_view ptx) {
    check("load_module");
    try {
        return std::make_shared<VirtualModule>(
            vgpu::Module::load(ptx, std::string(name) + "." + kernel_source().name + ".ptx"));
    } catch (const std::exception& error) {
        fail("load_module", error.what());
    }
}

}  // namespace gradguard::harness
