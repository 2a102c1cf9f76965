// SPDX-License-Identifier: Apache-2.0
// A training loop over the guarded step with F16 gradients and a loss scale that grows until a step overflows and then
// backs off. The forward and backward pass run on the host; a real trainer has the gradients on the device already.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/devices/registry.h"
#include "kernels/host/guarded_adamw.h"
#include "loss_scale.h"
#include "network.h"

namespace {

using gradguard::AdamWEntry;
using gradguard::DType;
using gradguard::Tensor;

/// The gradients times the loss scale, rounded to F16 (what overflows becomes an infinity), into device tensors.
void upload_scaled(const Network::Parameters& gradients, float scale, std::vector<AdamWEntry>& group) {
    std::vector<_Float16> half;
    for (std::size_t i = 0; i < group.size(); ++i) {
        half.clear();
        for (const float value : gradients[i]) half.push_back(static_cast<_Float16>(value * scale));
        group[i].gradients.upload(std::as_bytes(std::span(half)));
    }
}

std::vector<AdamWEntry> make_group(const std::shared_ptr<gradguard::Queue>& queue, const Network::Parameters& values) {
    std::vector<AdamWEntry> group;
    for (const std::vector<float>& value : values) {
        AdamWEntry entry{.parameters = Tensor::allocate(queue, DType::kF32, {value.size()}),
                         .gradients = Tensor::allocate(queue, DType::kF16, {value.size()}),
                         .state = std::nullopt};
        entry.parameters.upload(std::as_bytes(std::span(value)));
        group.push_back(entry);
    }
    return group;
}

/// Replaces the committed parameters and state; only after update.wait().
void commit(const gradguard::GuardedAdamWUpdate& update, std::vector<AdamWEntry>& group) {
    for (std::size_t i = 0; i < group.size(); ++i) {
        group[i].parameters = update.entries[i].parameters;
        group[i].state = update.entries[i].state;
    }
}

void download(const std::vector<AdamWEntry>& group, gradguard::Queue& queue, Network::Parameters& values) {
    for (std::size_t i = 0; i < group.size(); ++i) {
        group[i].parameters.download(std::as_writable_bytes(std::span(values[i])));
    }
    queue.synchronize();
}

int train(int steps) {
    const auto device = gradguard::harness::open_device({.name = "auto"});
    const auto queue = device->create_queue();
    Network::Parameters values = Network::initial_parameters();
    Network::Parameters gradients;
    std::vector<AdamWEntry> group = make_group(queue, values);
    LossScale scale(0x1p16F, 10);
    const gradguard::AdamWOptions options{.learning_rate = 0.01F};

    std::printf("training on %s\n", device->properties().name.c_str());
    const float first_loss = Network::loss(values, gradients);
    float loss = first_loss;
    int skipped = 0;
    for (int step = 1; step <= steps; ++step) {
        upload_scaled(gradients, scale.value(), group);
        const auto update = gradguard::guarded_adamw_step(group, options, {.gradient_scale = scale.value()});
        update.wait();
        commit(update, group);
        if (update.skip_reason) {
            ++skipped;
            std::printf("step %3d  skipped: the gradients overflow at loss scale %g\n", step, scale.value());
        } else if (step % 25 == 0) {
            std::printf("step %3d  loss %.5f  norm %.4f  clip %.4f  loss scale %g\n", step, loss,
                        update.report->stats.total_norm, update.clip_multiplier, scale.value());
        }
        scale.after_step(update.skip_reason.has_value());
        download(group, *queue, values);
        loss = Network::loss(values, gradients);
    }
    std::printf("%d steps, %d skipped, loss %.5f -> %.5f, loss scale %g\n", steps, skipped, first_loss, loss,
                scale.value());
    // A loop that learned nothing or never met an overflow shows nothing.
    return loss < first_loss / 10 && skipped > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main() {
    try {
        return train(200);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "trainer: %s\n", error.what());
        return 2;
    }
}
