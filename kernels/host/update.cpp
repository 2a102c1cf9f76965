// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/update.h"

#include <string>
#include <utility>

#include "kernels/host/launch_plan.h"

namespace gradguard::kernels {
namespace {

std::string update_entry_name(DType gradients, bool first, bool amsgrad, bool clipped) {
    std::string name = gradients == DType::kF32 ? "adamw_f32" : gradients == DType::kF16 ? "adamw_f16" : "adamw_bf16";
    if (first) name += "_first";
    if (amsgrad) name += "_amsgrad";
    if (clipped) name += "_clipped";
    return name;
}

/// beta^t by the bits of t from the lowest, in FP64 (contract section 6).
double power(float beta, std::uint64_t t) {
    double value = 1.0;
    double base = beta;
    for (; t != 0; t >>= 1U) {
        if ((t & 1U) != 0) value *= base;
        base *= base;
    }
    return value;
}

}  // namespace

float inverse_bias_correction(float beta, std::uint64_t t) { return static_cast<float>(1.0 / (1.0 - power(beta, t))); }

UpdateArguments update_coefficients(const AdamWOptions& options, float gradient_scale, float clip, std::uint64_t t) {
    UpdateArguments c = {};
    c.reciprocal_scale = 1.0F / gradient_scale;
    c.clip = clip;
    c.direction = options.maximize ? -1.0F : 1.0F;
    c.beta1 = options.beta1;
    c.one_minus_beta1 = 1.0F - options.beta1;
    c.beta2 = options.beta2;
    c.one_minus_beta2 = 1.0F - options.beta2;
    c.inverse_bias1 = inverse_bias_correction(options.beta1, t);
    c.inverse_bias2 = inverse_bias_correction(options.beta2, t);
    c.epsilon = options.epsilon;
    c.learning_rate = options.learning_rate;
    const float product = options.learning_rate * options.weight_decay;
    c.decay = 1.0F - product;
    return c;
}

UpdateOutputs allocate_outputs(const AdamWEntry& entry, bool amsgrad) {
    const auto fresh = [&] {
        return Tensor::allocate(entry.parameters.queue, DType::kF32, entry.parameters.layout.shape);
    };
    UpdateOutputs outputs;
    outputs.parameters = fresh();
    outputs.state.step = (entry.state ? entry.state->step : 0) + 1;
    outputs.state.first_moment = fresh();
    outputs.state.second_moment = fresh();
    if (amsgrad) outputs.state.max_second_moment = fresh();
    return outputs;
}

AdamWUpdate submit_update(const AdamWEntry& entry, UpdateOutputs outputs, const AdamWOptions& options,
                          float gradient_scale, float clip) {
    UpdateArguments arguments = update_coefficients(options, gradient_scale, clip, outputs.state.step);
    std::vector<Buffer> retained;
    const auto use = [&](const Tensor& tensor) {
        retained.push_back(tensor.storage);
        return tensor.data();
    };
    arguments.elements = static_cast<unsigned int>(entry.parameters.elements());
    arguments.parameters = use(entry.parameters);
    arguments.gradients = use(entry.gradients);
    if (entry.state) {
        arguments.first_moment = use(entry.state->first_moment);
        arguments.second_moment = use(entry.state->second_moment);
        if (options.amsgrad) arguments.max_second_moment = use(*entry.state->max_second_moment);
    }
    arguments.new_parameters = use(outputs.parameters);
    arguments.new_first_moment = use(outputs.state.first_moment);
    arguments.new_second_moment = use(outputs.state.second_moment);
    if (options.amsgrad) arguments.new_max_second_moment = use(*outputs.state.max_second_moment);

    Queue& queue = *entry.parameters.queue;
    Device& device = queue.device();
    const std::string name =
        update_entry_name(entry.gradients.layout.dtype, !entry.state, options.amsgrad, clip != 1.0F);
    const LaunchShape shape = {update_blocks(arguments.elements, device.properties().max_blocks_in_x),
                               kThreadsPerBlock};
    queue.launch(device.kernel("update", name), shape, std::as_bytes(std::span(&arguments, 1)), std::move(retained));
    return {std::move(outputs.parameters), std::move(outputs.state), true};
}

AdamWUpdate unchanged(const AdamWEntry& entry) { return {entry.parameters, entry.state, false}; }

std::vector<AdamWUpdate> submit_updates(std::span<const AdamWEntry> entries, const AdamWOptions& options,
                                        float gradient_scale, float clip) {
    std::vector<std::optional<UpdateOutputs>> outputs(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!entries[i].parameters.empty()) outputs[i] = allocate_outputs(entries[i], options.amsgrad);
    }
    std::vector<AdamWUpdate> updates;
    updates.reserve(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        updates.push_back(outputs[i] ? submit_update(entries[i], std::move(*outputs[i]), options, gradient_scale, clip)
                                     : unchanged(entries[i]));
    }
    return updates;
}

}  // namespace gradguard::kernels
