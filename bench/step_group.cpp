// SPDX-License-Identifier: Apache-2.0
#include "bench/step_group.h"

#include <cstring>
#include <span>
#include <string>

#include "harness/generators/float_format.h"
#include "harness/generators/random.h"
#include "kernels/host/guarded_adamw.h"

namespace gradguard::bench {
namespace {

/// Magnitudes in [2^exponent, 2^(exponent + 2)), both signs.
template <class Word>
std::vector<std::byte> values(std::uint64_t count, const harness::FloatFormat& format, int exponent,
                              harness::Random& random) {
    std::vector<std::byte> bytes(count * sizeof(Word));
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto draw = static_cast<std::uint32_t>(random.next());
        const std::uint32_t magnitude =
            harness::encode(format, exponent + static_cast<int>(draw >> 30U & 1U), draw & 0x007FFFFFU);
        const auto word = static_cast<Word>(magnitude | (draw >> 31U) * format.sign());
        std::memcpy(bytes.data() + i * sizeof(Word), &word, sizeof(Word));
    }
    return bytes;
}

Tensor uploaded(const std::shared_ptr<Queue>& queue, DType dtype, const std::vector<std::uint64_t>& shape,
                const std::vector<std::byte>& bytes) {
    Tensor tensor = Tensor::allocate(queue, dtype, shape);
    tensor.upload(bytes);
    return tensor;
}

Tensor drawn(const std::shared_ptr<Queue>& queue, DType dtype, std::uint64_t elements, int exponent,
             harness::Random& random) {
    const harness::FloatFormat& format = harness::format_of(dtype);
    const std::vector<std::byte> bytes = dtype == DType::kF32
                                             ? values<std::uint32_t>(elements, format, exponent, random)
                                             : values<std::uint16_t>(elements, format, exponent, random);
    return uploaded(queue, dtype, {elements}, bytes);
}

}  // namespace

void require_valid(const StepBenchOptions& options) {
    const auto require = [](const char* what, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
        if (value >= least && value <= most) return;
        throw std::invalid_argument(std::string("bench step: want ") + what + " in " + std::to_string(least) + ".." +
                                    std::to_string(most) + ", got " + std::to_string(value));
    };
    require("elements", options.elements, 1, kMostElements);
    require("tensors", options.tensors, 1, kMostTensors);
    require("samples", options.samples, kLeastSamples, UINT64_MAX);
    require("iterations", options.iterations, 1, UINT64_MAX);
    require("warmup", options.warmup, 1, UINT64_MAX);
}

Entries make_group(const std::shared_ptr<Queue>& queue, const StepBenchOptions& options) {
    // The loss scale is 2^7, so gradients of [2^7, 2^9) are [1, 4) unscaled.
    constexpr int kGradientExponent = 7;
    constexpr int kParameterExponent = -5;
    harness::Random random(1);
    Entries entries;
    for (std::uint64_t i = 0; i < options.tensors; ++i) {
        Tensor parameters = drawn(queue, DType::kF32, options.elements, kParameterExponent, random);
        Tensor gradients = drawn(queue, options.dtype, options.elements, kGradientExponent, random);
        entries.push_back({std::move(parameters), std::move(gradients), std::nullopt});
    }
    const GuardedAdamWUpdate first = guarded_adamw_step(entries, options.adamw(), options.control(), options.guard());
    first.wait();
    if (first.skip_reason)
        throw BenchFailure("the first step was skipped: " + std::string(to_string(*first.skip_reason)));
    for (std::size_t i = 0; i < entries.size(); ++i) {
        entries[i].parameters = first.entries[i].parameters;
        entries[i].state = first.entries[i].state;
    }
    return entries;
}

Entries copied_to(const std::shared_ptr<Queue>& queue, const Entries& entries) {
    const auto copied = [&](const Tensor& tensor) {
        return uploaded(queue, tensor.layout.dtype, tensor.layout.shape, downloaded(tensor));
    };
    Entries copies;
    for (const AdamWEntry& entry : entries) {
        AdamWEntry copy{copied(entry.parameters), copied(entry.gradients), std::nullopt};
        if (entry.state) {
            const AdamWState& state = *entry.state;
            copy.state = AdamWState{state.step, copied(state.first_moment), copied(state.second_moment), std::nullopt};
            if (state.max_second_moment) copy.state->max_second_moment = copied(*state.max_second_moment);
        }
        copies.push_back(std::move(copy));
    }
    queue->synchronize();
    return copies;
}

std::vector<std::byte> downloaded(const Tensor& tensor) {
    std::vector<std::byte> bytes(tensor.bytes());
    tensor.download(bytes);
    tensor.queue->synchronize();
    return bytes;
}

std::vector<float> downloaded_floats(const Tensor& tensor) {
    std::vector<float> floats(tensor.elements());
    tensor.download(std::as_writable_bytes(std::span(floats)));
    tensor.queue->synchronize();
    return floats;
}

}  // namespace gradguard::bench
