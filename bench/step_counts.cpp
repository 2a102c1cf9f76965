// SPDX-License-Identifier: Apache-2.0
#include "bench/step_counts.h"

#include "harness/devices/hooked_device.h"
#include "harness/devices/virtual_device.h"

namespace gradguard::bench {
namespace {

/// The same buffers as operands of another queue.
Entries on_queue(const std::shared_ptr<Queue>& queue, Entries entries) {
    for (AdamWEntry& entry : entries) {
        entry.parameters.queue = entry.gradients.queue = queue;
        if (!entry.state) continue;
        entry.state->first_moment.queue = entry.state->second_moment.queue = queue;
        if (entry.state->max_second_moment) entry.state->max_second_moment->queue = queue;
    }
    return entries;
}

}  // namespace

CallCounts count_calls(const std::shared_ptr<Device>& device, const Entries& start, const StepPath& path) {
    using harness::DeviceCall;
    const auto log = std::make_shared<harness::CallLog>();
    start.front().parameters.queue->synchronize();
    const auto queue = harness::hook_device(device, {log})->create_queue();
    const Submitted submitted = path.submit(on_queue(queue, start));
    queue->synchronize();
    return {log->count(DeviceCall::kLaunch), log->count(DeviceCall::kAllocate), log->bytes(DeviceCall::kAllocate),
            log->count(DeviceCall::kReadback), log->bytes(DeviceCall::kReadback)};
}

std::map<std::string, observers::Totals> count_work(const KernelSource& source, const Entries& start,
                                                    const StepPath& path) {
    harness::VirtualDeviceOptions options;
    options.count = true;
    const auto device = harness::VirtualDevice::create(options);
    device->set_kernel_source(source);
    const auto queue = device->create_queue();
    const Submitted submitted = path.submit(copied_to(queue, start));
    queue->synchronize();
    std::map<std::string, observers::Totals> totals;
    for (const auto& [kernel, counts] : device->counts()->by_kernel()) totals.emplace(kernel, counts.totals());
    return totals;
}

}  // namespace gradguard::bench
