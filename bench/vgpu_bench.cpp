// SPDX-License-Identifier: Apache-2.0
#include "bench/vgpu_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/native_loops.h"
#include "harness/vgpu/machine.h"
#include "kernels/device/params.h"
#include "kernels/host/launch_plan.h"
#include "kernels/ptx/embedded.h"

namespace gradguard::bench {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kManyBlocks = 1U << 30;
using Floats = std::vector<float>;

double cpu_seconds() {
    std::timespec now{};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
        throw std::runtime_error("bench: no CPU clock for this thread");
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const std::function<void()>& work) {
    const double start = cpu_seconds();
    work();
    return cpu_seconds() - start;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Both sides `samples` times, after one round to warm up.
nlohmann::json compare(const VgpuBenchOptions& options, const std::function<std::uint64_t()>& on_vgpu,
                       const std::function<void()>& natively) {
    std::uint64_t lane_instructions = on_vgpu();
    natively();
    std::vector<double> vgpu, native;
    for (std::uint32_t i = 0; i < options.samples; ++i) {
        if (i % 2 == 0) vgpu.push_back(seconds_of([&] { lane_instructions = on_vgpu(); }));
        native.push_back(seconds_of(natively));
        if (i % 2 != 0) vgpu.push_back(seconds_of([&] { lane_instructions = on_vgpu(); }));
    }
    const double seconds = median(vgpu);
    return {{"elements_per_second", options.elements / seconds},
            {"lane_instructions_per_second", static_cast<double>(lane_instructions) / seconds},
            {"native_ratio", seconds / median(native)}};
}

/// Ordinary values: magnitudes spread over a few powers of two, both signs.
Floats ordinary_values(std::uint32_t count, std::uint64_t seed, float size) {
    Floats values(count);
    std::uint64_t state = seed;
    for (float& value : values) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        value = size * static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31F;
    }
    return values;
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

void require_equal(const Floats& native, const vgpu::Machine& machine, vgpu::Address address, const char* what) {
    Floats other(native.size());
    machine.read(address, other.data(), other.size() * sizeof(float));
    if (std::memcmp(native.data(), other.data(), native.size() * sizeof(float)) != 0) {
        throw std::runtime_error(std::string("bench: virtual GPU and native loop differ in ") + what);
    }
}

class Bench {
  public:
    explicit Bench(const VgpuBenchOptions& options)
        : options_(options), gradients_(ordinary_values(options.elements, 1, 0.01F)) {
        device_gradients_ = upload(gradients_);
    }

    nlohmann::json scan() {
        const std::uint32_t blocks = kernels::reduction_blocks(options_.elements, kManyBlocks);
        const vgpu::Address triples = machine_.allocate(12 * std::uint64_t{blocks});
        const kernels::StatisticsArguments arguments{device_gradients_, triples, options_.elements, 1.0F / 128};
        const auto module = load("statistics");
        Floats native(3 * std::size_t{blocks});
        nlohmann::json result = compare(
            options_, [&] { return launch(*module, "gradient_statistics_f32", blocks, bytes_of(arguments)); },
            [&] {
                native_scan(gradients_.data(), options_.elements, arguments.reciprocal_scale, blocks, native.data());
            });
        require_equal(native, machine_, triples, "the scan");
        return result;
    }

    nlohmann::json update() {
        Floats parameters = ordinary_values(options_.elements, 2, 1),
               first = ordinary_values(options_.elements, 3, 1e-3F);
        Floats second = ordinary_values(options_.elements, 4, 1e-5F);
        for (float& value : second) value = std::fabs(value);
        Floats new_parameters(options_.elements), new_first(options_.elements), new_second(options_.elements);
        NativeUpdate native{parameters.data(),
                            gradients_.data(),
                            first.data(),
                            second.data(),
                            new_parameters.data(),
                            new_first.data(),
                            new_second.data(),
                            options_.elements,
                            1.0F / 128,
                            0.75F,
                            1,
                            0.9F,
                            1 - 0.9F,
                            0.999F,
                            1 - 0.999F,
                            1.25F,
                            20,
                            1e-5F,
                            1e-3F,
                            1 - 1e-7F};
        const kernels::UpdateArguments arguments = device_arguments(native);
        const auto module = load("update");
        const std::uint32_t blocks = kernels::update_blocks(options_.elements, kManyBlocks);
        nlohmann::json result = compare(
            options_, [&] { return launch(*module, "adamw_f32_clipped", blocks, bytes_of(arguments)); },
            [&] { native_update(native); });
        require_equal(new_parameters, machine_, arguments.new_parameters, "the new parameters");
        require_equal(new_first, machine_, arguments.new_first_moment, "the new first moment");
        require_equal(new_second, machine_, arguments.new_second_moment, "the new second moment");
        return result;
    }

  private:
    static std::shared_ptr<const vgpu::Module> load(const char* module) {
        return vgpu::Module::load(kernels::embedded_ptx(module, "nofmad"), std::string(module) + ".nofmad.ptx");
    }

    vgpu::Address upload(const Floats& values) {
        const vgpu::Address address = machine_.allocate(values.size() * sizeof(float));
        machine_.write(address, values.data(), values.size() * sizeof(float));
        return address;
    }

    std::uint64_t launch(const vgpu::Module& module, const char* entry, std::uint32_t blocks,
                         std::span<const std::byte> arguments) {
        return machine_.launch(module, entry, {{blocks}, {kThreads}}, arguments).counters.lane_instructions;
    }

    kernels::UpdateArguments device_arguments(const NativeUpdate& native) {
        const std::uint64_t bytes = std::uint64_t{4} * options_.elements;
        const auto copy = [&](const float* values) { return upload(Floats(values, values + options_.elements)); };
        kernels::UpdateArguments arguments{};
        arguments.parameters = copy(native.parameters);
        arguments.gradients = device_gradients_;
        arguments.first_moment = copy(native.first_moment);
        arguments.second_moment = copy(native.second_moment);
        arguments.new_parameters = machine_.allocate(bytes);
        arguments.new_first_moment = machine_.allocate(bytes);
        arguments.new_second_moment = machine_.allocate(bytes);
        arguments.elements = native.elements;
        arguments.reciprocal_scale = native.reciprocal_scale;
        arguments.clip = native.clip;
        arguments.direction = native.direction;
        arguments.beta1 = native.beta1;
        arguments.one_minus_beta1 = native.one_minus_beta1;
        arguments.beta2 = native.beta2;
        arguments.one_minus_beta2 = native.one_minus_beta2;
        arguments.inverse_bias1 = native.inverse_bias1;
        arguments.inverse_bias2 = native.inverse_bias2;
        arguments.epsilon = native.epsilon;
        arguments.learning_rate = native.learning_rate;
        arguments.decay = native.decay;
        return arguments;
    }

    const VgpuBenchOptions options_;
    vgpu::Machine machine_;
    Floats gradients_;
    vgpu::Address device_gradients_ = 0;
};

}  // namespace

nlohmann::json measure_vgpu(const VgpuBenchOptions& options) {
    if (options.elements == 0 || options.samples == 0) throw std::runtime_error("bench: nothing to measure");
    Bench bench(options);
    nlohmann::json result;
    result["scan"] = bench.scan();
    result["update"] = bench.update();
    return result;
}

int run_vgpu_bench(bool json) {
    const nlohmann::json result = measure_vgpu();
    if (json) {
        std::cout << result.dump() << '\n';
        return 0;
    }
    for (const char* part : {"scan", "update"}) {
        const nlohmann::json& figures = result[part];
        std::printf(
            "%-7s %7.1f million elements/s  %6.2f billion lane instructions/s  %5.2f times the native loop's time\n",
            part, figures["elements_per_second"].get<double>() / 1e6,
            figures["lane_instructions_per_second"].get<double>() / 1e9, figures["native_ratio"].get<double>());
    }
    return 0;
}

}  // namespace gradguard::bench
