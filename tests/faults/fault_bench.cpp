// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/fault_bench.h"

#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "tests/support/group_values.h"

namespace gradguard::testing {
namespace {

using reference::HostEntry;

/// One tensor of each dtype, of which two take two launches each, with empty ones before, between and after.
std::vector<HostEntry> mixed(std::uint64_t step, bool amsgrad) {
    return {host_entry(0, DType::kF32, 1, step, amsgrad),     host_entry(1500, DType::kF32, 2, step, amsgrad),
            host_entry(0, DType::kF16, 3, 0, amsgrad),        host_entry(40, DType::kF16, 4, 0, amsgrad),
            host_entry(2050, DType::kBF16, 5, step, amsgrad), host_entry(0, DType::kBF16, 6, 0, amsgrad)};
}

/// The same with a NaN in the half-precision entry.
std::vector<HostEntry> with_nan(std::uint64_t step, bool amsgrad) {
    std::vector<HostEntry> hosts = mixed(step, amsgrad);
    const auto nan = stored({std::numeric_limits<float>::quiet_NaN()}, DType::kF16);
    std::memcpy(hosts[3].gradients.data() + 2 * 7, nan.data(), nan.size());
    return hosts;
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
}

template <class Value>
void append(std::vector<std::byte>& to, const Value& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::vector<std::uint64_t> Group::live_sizes() const {
    std::vector<std::uint64_t> sizes;
    for (const HostEntry& host : hosts) {
        if (!host.parameters.empty()) sizes.push_back(host.parameters.size());
    }
    return sizes;
}

const std::vector<Group>& groups() {
    static const std::vector<Group> all = {
        {"first", mixed(0, false), {}, {}, {}},
        {"first_amsgrad", mixed(0, true), {.amsgrad = true}, {}, {}},
        {"later", mixed(3, false), {.maximize = true}, {.gradient_scale = 128.0F}, {.max_norm = std::nullopt}},
        {"later_amsgrad", mixed(7, true), {.amsgrad = true}, {.gradient_scale = 0.5F}, {.max_norm = 0.25F}},
        {"bad_skip", with_nan(3, false), {}, {}, {}, true},
        {"bad_error", with_nan(3, true), {.amsgrad = true}, {}, {.nonfinite = NonFinitePolicy::kError}, true},
        {"one_element", {host_entry(1, DType::kF32, 1, 0, false)}, {}, {}, {}},
        {"small",
         {host_entry(1025, DType::kBF16, 1, 0, false), host_entry(0, DType::kF32, 2, 0, false),
          host_entry(3, DType::kF32, 3, 2, false)},
         {},
         {},
         {.max_norm = 0.5F}},
        {"empty", {host_entry(0, DType::kF32, 1, 2, false), host_entry(0, DType::kF16, 2, 0, false)}, {}, {}, {}},
        {"skipped", mixed(3, false), {}, {.skip_update = true}, {}}};
    return all;
}

const Group& group_named(const std::string& name) {
    for (const Group& group : groups()) {
        if (group.name == name) return group;
    }
    throw std::invalid_argument("no group " + name);
}

std::vector<std::string> group_names() {
    std::vector<std::string> names;
    for (const Group& group : groups()) names.push_back(group.name);
    return names;
}

FaultBench::FaultBench(const Group& group, const BenchOptions& options) : group_(group) {
    harness::VirtualDeviceOptions virtual_options;
    virtual_options.machine.seed = 1;
    if (!options.bare) virtual_options.observers = "all";
    virtual_ = harness::VirtualDevice::create(virtual_options);
    device_ = virtual_;
    if (options.fate) device_ = losable_ = harness::LosableDevice::create(virtual_, *options.fate);
    if (!options.bare) {
        std::vector<std::shared_ptr<harness::DeviceHook>> hooks = {log_, plan_};
        if (options.tamper) hooks.push_back(std::make_shared<harness::TamperReadback>(options.tamper));
        device_ = harness::hook_device(device_, hooks);
    }
    queue_ = device_->create_queue();
    for (const HostEntry& host : group_.hosts) {
        AdamWEntry& entry = entries_.emplace_back();
        entry.parameters = tensor(bytes_of(host.parameters), DType::kF32);
        entry.gradients = tensor(host.gradients, host.gradient_dtype);
        if (!host.state) continue;
        AdamWState& state = entry.state.emplace();
        state.step = host.state->step;
        state.first_moment = tensor(bytes_of(host.state->first_moment), DType::kF32);
        state.second_moment = tensor(bytes_of(host.state->second_moment), DType::kF32);
        if (host.state->max_second_moment) {
            state.max_second_moment = tensor(bytes_of(*host.state->max_second_moment), DType::kF32);
        }
    }
    queue_->synchronize();
    log_->calls.clear();
}

Tensor FaultBench::tensor(const std::vector<std::byte>& bytes, DType dtype) {
    Tensor made = Tensor::allocate(queue_, dtype, {bytes.size() / element_bytes(dtype)});
    made.upload(bytes);
    read_only_.push_back(virtual_->mark_read_only({made.storage, 0, made.storage.bytes}));
    return made;
}

std::vector<Tensor> FaultBench::gradients() const {
    std::vector<Tensor> all;
    for (const AdamWEntry& entry : entries_) all.push_back(entry.gradients);
    return all;
}

void FaultBench::upload_gradients() const {
    for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].gradients.upload(group_.hosts[i].gradients);
}

std::vector<std::vector<std::byte>> FaultBench::download(const std::vector<const Tensor*>& tensors) {
    std::vector<std::vector<std::byte>> memory;
    for (const Tensor* tensor : tensors) memory.emplace_back(tensor->bytes());
    const std::size_t at = host_memory_.size();
    host_memory_.push_back(std::move(memory));
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i]->download(host_memory_[at][i]);
    if (!tensors.empty()) queue_->synchronize();
    memory = std::move(host_memory_[at]);
    host_memory_.pop_back();
    return memory;
}

bool FaultBench::settle() {
    bool works = true;
    try {
        queue_->synchronize();
    } catch (const Error&) {
        works = false;
    }
    host_memory_.clear();
    return works;
}

std::vector<std::byte> FaultBench::committed() const {
    std::vector<std::byte> all;
    const auto add = [&](const Tensor& tensor) {
        append(all, tensor.storage.address);
        append(all, tensor.layout.byte_offset);
        append(all, tensor.elements());
        const std::size_t at = all.size();
        all.resize(at + tensor.bytes());
        if (!tensor.empty()) virtual_->machine().read(tensor.data(), all.data() + at, tensor.bytes());
    };
    for (const AdamWEntry& entry : entries_) {
        add(entry.parameters);
        add(entry.gradients);
        append(all, entry.state.has_value());
        if (!entry.state) continue;
        append(all, entry.state->step);
        add(entry.state->first_moment);
        add(entry.state->second_moment);
        if (entry.state->max_second_moment) add(*entry.state->max_second_moment);
    }
    return all;
}

std::vector<std::string> FaultBench::close() {
    std::vector<std::string> problems;
    plan_->disarm();
    settle();
    read_only_.clear();
    entries_.clear();
    queue_.reset();
    if (live_allocations() != 0) problems.push_back(std::to_string(live_allocations()) + " allocations are left");
    for (const vgpu::Finding& finding : virtual_->final_findings()) problems.push_back(finding.message());
    return problems;
}

}  // namespace gradguard::testing
