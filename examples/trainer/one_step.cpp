// SPDX-License-Identifier: Apache-2.0
// One guarded step over one parameter of two elements, gradient (3, 4), on the virtual GPU.
#include <cstdio>
#include <span>
#include <vector>

#include "harness/devices/registry.h"
#include "kernels/host/guarded_adamw.h"

using namespace gradguard;

int main() {
    auto queue = harness::open_device({.name = "vgpu"})->create_queue();
    auto tensor = [&](std::vector<float> values) {
        Tensor on_device = Tensor::allocate(queue, DType::kF32, {values.size()});
        on_device.upload(std::as_bytes(std::span(values)));
        return on_device;
    };
    std::vector<AdamWEntry> group = {{.parameters = tensor({1, 1}), .gradients = tensor({3, 4}), .state = {}}};

    GuardedAdamWUpdate update = guarded_adamw_step(group, AdamWOptions{}, StepControl{.gradient_scale = 1.0F},
                                                   GradientGuardOptions{.max_norm = 1.0F});
    update.wait();  // Only now is it known that the device did not fail, and the results may be committed.
    group[0].parameters = update.entries[0].parameters;
    group[0].state = update.entries[0].state;

    std::vector<float> p(2);
    group[0].parameters.download(std::as_writable_bytes(std::span(p)));
    queue->synchronize();
    std::printf("norm %g, clip %.9g, parameters %.9g %.9g\n", update.report->stats.total_norm,
                static_cast<double>(update.clip_multiplier), static_cast<double>(p[0]), static_cast<double>(p[1]));
}
