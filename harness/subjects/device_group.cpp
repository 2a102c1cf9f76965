// SPDX-License-Identifier: Apache-2.0
#include "harness/subjects/device_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gradguard::harness {
namespace {

/// Where tensors without values lie: no allocation has this address, so touching one ends the launch.
constexpr DeviceAddress kNowhere = DeviceAddress{1} << 35;
/// An allocation may be described as larger than it is; more than this behind the tensor is not really there.
constexpr std::uint64_t kMostSlackBytes = std::uint64_t{1} << 20;

}  // namespace

DeviceGroup::DeviceGroup(std::shared_ptr<VirtualDevice> device, std::shared_ptr<Device> outer)
    : device_(std::move(device)), outer_(std::move(outer)), placing_queue_(device_->create_queue()) {}

const std::shared_ptr<Queue>& DeviceGroup::queue(std::uint32_t number) {
    while (queues_.size() <= number) queues_.push_back(outer_->create_queue());
    return queues_[number];
}

Tensor DeviceGroup::make(const CaseTensor& tensor, const std::vector<std::byte>& values) {
    Buffer storage = Buffer::borrowed(kNowhere, tensor.storage_bytes);
    if (!values.empty()) {
        const std::uint64_t end = tensor.layout.byte_offset + values.size();
        storage = device_->allocate(std::min(tensor.storage_bytes, end + kMostSlackBytes), *placing_queue_);
        storage.bytes = tensor.storage_bytes;
        device_->machine().write(storage.address + tensor.layout.byte_offset, values.data(), values.size());
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
}

void DeviceGroup::place_gradients(const Case& c, const std::vector<std::vector<std::byte>>& values) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        static const std::vector<std::byte> none;
        entries_[i].gradients = make(c.entries[i].gradients, i < values.size() ? values[i] : none);
    }
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
    const DeviceAddress begin = tensor.storage.address;
    const std::uint64_t end = tensor.layout.byte_offset + tensor.bytes();
    const BufferRange range = {tensor.storage, 0, std::min(tensor.storage.bytes, end + kMostSlackBytes)};
    const std::size_t at = snapshots_.size();
    snapshots_.resize(at + range.bytes);
    std::as_const(device_->machine()).read(begin, snapshots_.data() + at, range.bytes);
    watched_.push_back({entry, operand, range, device_->mark_read_only(range), at});
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

std::vector<std::string> DeviceGroup::changed_inputs() {
    std::vector<std::string> changed;
    const vgpu::Machine& machine = device_->machine();
    for (const Watched& one : watched_) {
        const std::byte* const now = machine.host_pointer(one.storage.buffer.address, one.storage.bytes);
        if (std::memcmp(now, snapshots_.data() + one.snapshot_begin, one.storage.bytes) != 0) {
            changed.push_back("entry " + std::to_string(one.entry) + " " + one.operand);
        }
    }
    watched_.clear();
    snapshots_.clear();
    return changed;
}

void DeviceGroup::synchronize() {
    for (const auto& queue : queues_) queue->synchronize();
}

std::vector<float> DeviceGroup::read(const Tensor& tensor) const {
    if (tensor.storage.owner.use_count() == 0) return {};
    std::vector<float> values(tensor.elements());
    if (!values.empty()) device_->machine().read(tensor.data(), values.data(), values.size() * sizeof(float));
    return values;
}

}  // namespace gradguard::harness
