// SPDX-License-Identifier: Apache-2.0
#include "harness/subjects/device_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reference/contract/error.h"

namespace gradguard::harness {
namespace {

/// Where tensors without values lie: no allocation has this address, so touching one ends the launch.
constexpr DeviceAddress kNowhere = DeviceAddress{1} << 35;
/// An allocation may be described as larger than it is; more than this behind the tensor is not really there.
constexpr std::uint64_t kMostSlackBytes = std::uint64_t{1} << 20;
/// Around the values, where a device would leave what was there before: no zeros, and NaN as any dtype.
constexpr std::byte kSlack{0xFF};

}  // namespace

DeviceGroup::DeviceGroup(std::shared_ptr<Device> device, std::shared_ptr<Device> outer)
    : device_(std::move(device)),
      virtual_(std::dynamic_pointer_cast<VirtualDevice>(device_)),
      outer_(std::move(outer)),
      placing_queue_(device_->create_queue()) {}

const std::shared_ptr<Queue>& DeviceGroup::queue(std::uint32_t number) {
    std::shared_ptr<Queue>& known = queues_[number];
    if (!known) known = outer_->create_queue();
    return known;
}

Tensor DeviceGroup::make(const CaseTensor& tensor, const std::vector<std::byte>& values) {
    Buffer storage = Buffer::borrowed(kNowhere, tensor.storage_bytes);
    if (!values.empty()) {
        const std::uint64_t end = tensor.layout.byte_offset + values.size();
        storage = device_->allocate(std::min(tensor.storage_bytes, end + kMostSlackBytes), *placing_queue_);
        if (virtual_) {
            virtual_->machine().write(storage.address + tensor.layout.byte_offset, values.data(), values.size());
        } else {
            std::vector<std::byte> all(storage.bytes, kSlack);
            std::copy(values.begin(), values.end(),
                      all.begin() + static_cast<std::ptrdiff_t>(tensor.layout.byte_offset));
            placing_queue_->copy_to_device({storage, 0, storage.bytes}, all);
        }
        storage.bytes = tensor.storage_bytes;
    }
    return {tensor.layout, std::move(storage), queue(tensor.queue)};
}

void DeviceGroup::place(const Case& c) {
    entries_.reserve(c.entries.size());
    for (const CaseEntry& entry : c.entries) {
        AdamWEntry placed = {make(entry.parameters), make(entry.gradients), std::nullopt};
        if (entry.state) {
            placed.state = {entry.state->step, make(entry.state->first_moment), make(entry.state->second_moment),
                            std::nullopt};
            if (entry.state->max_second_moment) placed.state->max_second_moment = make(*entry.state->max_second_moment);
        }
        entries_.push_back(std::move(placed));
    }
    if (!virtual_) placing_queue_->synchronize();
}

void DeviceGroup::place_gradients(const Case& c, const std::vector<std::vector<std::byte>>& values) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        static const std::vector<std::byte> none;
        entries_[i].gradients = make(c.entries[i].gradients, i < values.size() ? values[i] : none);
    }
    if (!virtual_) placing_queue_->synchronize();
}

void DeviceGroup::advance(std::vector<AdamWUpdate> updates) {
    for (std::size_t i = 0; i < updates.size() && i < entries_.size(); ++i) {
        entries_[i].parameters = std::move(updates[i].parameters);
        entries_[i].state = std::move(updates[i].state);
    }
}

std::vector<Tensor> DeviceGroup::gradients() const {
    std::vector<Tensor> gradients;
    gradients.reserve(entries_.size());
    for (const AdamWEntry& entry : entries_) gradients.push_back(entry.gradients);
    return gradients;
}

void DeviceGroup::watch(std::size_t entry, const char* operand, const Tensor& tensor) {
    if (tensor.storage.owner.use_count() == 0) return;
    const std::uint64_t end = tensor.layout.byte_offset + tensor.bytes();
    const BufferRange range = {tensor.storage, 0, std::min(tensor.storage.bytes, end + kMostSlackBytes)};
    const std::size_t at = snapshots_.size();
    snapshots_.resize(at + range.bytes);
    read_bytes(range, snapshots_.data() + at);
    watched_.push_back({entry, operand, range, virtual_ ? virtual_->mark_read_only(range) : nullptr, at});
}

void DeviceGroup::read_bytes(const BufferRange& range, std::byte* destination) const {
    if (virtual_) {
        std::as_const(virtual_->machine()).read(range.buffer.address + range.byte_offset, destination, range.bytes);
        return;
    }
    placing_queue_->copy_to_host({destination, range.bytes}, range);
    placing_queue_->synchronize();
}

void DeviceGroup::guard_inputs() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        watch(i, "parameters", entries_[i].parameters);
        watch(i, "gradients", entries_[i].gradients);
        if (!entries_[i].state) continue;
        watch(i, "first_moment", entries_[i].state->first_moment);
        watch(i, "second_moment", entries_[i].state->second_moment);
        if (entries_[i].state->max_second_moment) {
            watch(i, "max_second_moment", *entries_[i].state->max_second_moment);
        }
    }
}

bool DeviceGroup::is_as_it_was(const Watched& one) const {
    const std::byte* const before = snapshots_.data() + one.snapshot_begin;
    if (virtual_) {
        const vgpu::Machine& machine = virtual_->machine();
        return std::memcmp(machine.host_pointer(one.storage.buffer.address, one.storage.bytes), before,
                           one.storage.bytes) == 0;
    }
    std::vector<std::byte> now(one.storage.bytes);
    try {
        read_bytes(one.storage, now.data());
    } catch (const Error&) {
        return true;  // the device is lost, and the step's own error says why
    }
    return std::memcmp(now.data(), before, now.size()) == 0;
}

std::vector<std::string> DeviceGroup::changed_inputs() {
    std::vector<std::string> changed;
    for (const Watched& one : watched_) {
        if (!is_as_it_was(one)) changed.push_back("entry " + std::to_string(one.entry) + " " + one.operand);
    }
    watched_.clear();
    snapshots_.clear();
    return changed;
}

void DeviceGroup::synchronize() {
    for (const auto& [number, queue] : queues_) queue->synchronize();
}

std::vector<float> DeviceGroup::read(const Tensor& tensor) const {
    if (tensor.storage.owner.use_count() == 0) return {};
    std::vector<float> values(tensor.elements());
    if (!values.empty()) {
        read_bytes({tensor.storage, tensor.layout.byte_offset, tensor.bytes()},
                   reinterpret_cast<std::byte*>(values.data()));
    }
    return values;
}

}  // namespace gradguard::harness
