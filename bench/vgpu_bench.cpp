// SPDX-License-Identifier: Apache-2.0
#include "bench/vgpu_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/native_loops.h"
#include "harness/observers/registry.h"
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

struct Work {
    std::function<std::uint64_t()> on_vgpu;   ///< Returns the lane instructions.
    std::function<std::uint64_t()> observed;  ///< The same under observers; may be empty.
    std::function<void()> natively;
};

/// All sides `samples` times, forwards and backwards in turn, after one round to warm up.
nlohmann::json compare(const VgpuBenchOptions& options, const Work& work) {
    std::uint64_t lane_instructions = 0;
    std::vector<std::function<void()>> sides{[&] { lane_instructions = work.on_vgpu(); }, work.natively};
    if (work.observed) sides.emplace_back([&] { work.observed(); });
    std::vector<std::vector<double>> seconds(sides.size());
    for (const auto& side : sides) side();
    for (std::uint32_t sample = 0; sample < options.samples; ++sample) {
        for (std::size_t i = 0; i < sides.size(); ++i) {
            const std::size_t side = sample % 2 == 0 ? i : sides.size() - 1 - i;
            seconds[side].push_back(seconds_of(sides[side]));
        }
    }
    const double plain = median(seconds[0]);
    nlohmann::json result{{"elements_per_second", options.elements / plain},
                          {"lane_instructions_per_second", static_cast<double>(lane_instructions) / plain},
                          {"native_ratio", plain / median(seconds[1])}};
    if (work.observed) {
        const double observed = median(seconds[2]);
        result["observer_ratio"] = observed / plain;
        result["observed_elements_per_second"] = options.elements / observed;
    }
    return result;
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

/// The host side of the update: what goes in, and where the native loop's results go.
struct UpdateData {
    explicit UpdateData(std::uint32_t count)
        : parameters(ordinary_values(count, 2, 1)),
          first(ordinary_values(count, 3, 1e-3F)),
          second(ordinary_values(count, 4, 1e-5F)),
          new_parameters(count),
          new_first(count),
          new_second(count) {
        for (float& value : second) value = std::fabs(value);
    }

    NativeUpdate native(const Floats& gradients) {
        NativeUpdate update{};
        update.parameters = parameters.data();
        update.gradients = gradients.data();
        update.first_moment = first.data();
        update.second_moment = second.data();
        update.new_parameters = new_parameters.data();
        update.new_first_moment = new_first.data();
        update.new_second_moment = new_second.data();
        update.elements = static_cast<std::uint32_t>(parameters.size());
        update.reciprocal_scale = 1.0F / 128;
        update.clip = 0.75F;
        update.direction = 1;
        update.beta1 = 0.9F;
        update.one_minus_beta1 = 1 - 0.9F;
        update.beta2 = 0.999F;
        update.one_minus_beta2 = 1 - 0.999F;
        update.inverse_bias1 = 1.25F;
        update.inverse_bias2 = 20;
        update.epsilon = 1e-5F;
        update.learning_rate = 1e-3F;
        update.decay = 1 - 1e-7F;
        return update;
    }

    Floats parameters, first, second, new_parameters, new_first, new_second;
};

/// A machine with the kernels' operands in its memory, and perhaps observers around it.
class Side {
  public:
    Side(const Floats& gradients, const std::string& observers) : observers_(machine_, observers) {
        device_gradients_ = upload(gradients);
        elements_ = static_cast<std::uint32_t>(gradients.size());
    }

    /// Returns what runs one scan.
    std::function<std::uint64_t()> scan(float reciprocal_scale) {
        const std::uint32_t blocks = kernels::reduction_blocks(elements_, kManyBlocks);
        triples_ = machine_.allocate(12 * std::uint64_t{blocks});
        const kernels::StatisticsArguments arguments{device_gradients_, triples_, elements_, reciprocal_scale};
        return launch("statistics", "gradient_statistics_f32", blocks, arguments);
    }

    void check_scan(const Floats& native) const {
        require_equal(native, machine_, triples_, "the scan");
        require_clean();
    }

    std::function<std::uint64_t()> update(const NativeUpdate& native) {
        update_ = device_arguments(native);
        return launch("update", "adamw_f32_clipped", kernels::update_blocks(elements_, kManyBlocks), update_);
    }

    void check_update(const UpdateData& native) const {
        require_equal(native.new_parameters, machine_, update_.new_parameters, "the new parameters");
        require_equal(native.new_first, machine_, update_.new_first_moment, "the new first moment");
        require_equal(native.new_second, machine_, update_.new_second_moment, "the new second moment");
        require_clean();
    }

  private:
    void require_clean() const {
        if (machine_.findings().empty()) return;
        throw std::runtime_error("bench: a finding against a kernel: " + machine_.findings().front().message());
    }

    /// An input: no kernel may write to it.
    vgpu::Address upload(const Floats& values) {
        const vgpu::Address address = machine_.allocate(values.size() * sizeof(float));
        machine_.write(address, values.data(), values.size() * sizeof(float));
        if (observers_.inputs()) observers_.inputs()->mark_read_only(address, values.size() * sizeof(float));
        return address;
    }

    template <class Arguments>
    std::function<std::uint64_t()> launch(const char* module, const char* entry, std::uint32_t blocks,
                                          const Arguments& arguments) {
        auto loaded = vgpu::Module::load(kernels::embedded_ptx(module, "nofmad"), std::string(module) + ".nofmad.ptx");
        return [this, loaded, entry, blocks, arguments] {
            return machine_.launch(*loaded, entry, {{blocks}, {kThreads}}, bytes_of(arguments))
                .counters.lane_instructions;
        };
    }

    kernels::UpdateArguments device_arguments(const NativeUpdate& native) {
        const std::uint64_t bytes = std::uint64_t{4} * elements_;
        const auto copy = [&](const float* values) { return upload(Floats(values, values + elements_)); };
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

    vgpu::Machine machine_;
    observers::ObserverSet observers_;
    vgpu::Address device_gradients_ = 0;
    vgpu::Address triples_ = 0;
    kernels::UpdateArguments update_{};
    std::uint32_t elements_ = 0;
};

class Bench {
  public:
    explicit Bench(const VgpuBenchOptions& options)
        : options_(options), gradients_(ordinary_values(options.elements, 1, 0.01F)), plain_(gradients_, "none") {
        if (options.observers != "none") observed_.emplace(gradients_, options.observers);
    }

    nlohmann::json scan() {
        constexpr float kReciprocalScale = 1.0F / 128;
        const std::uint32_t blocks = kernels::reduction_blocks(options_.elements, kManyBlocks);
        Floats native(3 * std::size_t{blocks});
        const Work work{plain_.scan(kReciprocalScale), observed_ ? observed_->scan(kReciprocalScale) : nullptr, [&] {
                            native_scan(gradients_.data(), options_.elements, kReciprocalScale, blocks, native.data());
                        }};
        nlohmann::json result = compare(options_, work);
        plain_.check_scan(native);
        if (observed_) observed_->check_scan(native);
        return result;
    }

    nlohmann::json update() {
        UpdateData data(options_.elements);
        const NativeUpdate native = data.native(gradients_);
        const Work work{plain_.update(native), observed_ ? observed_->update(native) : nullptr,
                        [&] { native_update(native); }};
        nlohmann::json result = compare(options_, work);
        plain_.check_update(data);
        if (observed_) observed_->check_update(data);
        return result;
    }

  private:
    const VgpuBenchOptions options_;
    Floats gradients_;
    Side plain_;
    std::optional<Side> observed_;
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

int run_vgpu_bench(bool json, const std::string& observers) {
    VgpuBenchOptions options;
    options.observers = observers;
    const nlohmann::json result = measure_vgpu(options);
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
        if (!figures.contains("observer_ratio")) continue;
        std::printf("%-7s %7.1f million elements/s  %5.2f times the time, observed by %s\n", part,
                    figures["observed_elements_per_second"].get<double>() / 1e6,
                    figures["observer_ratio"].get<double>(), observers.c_str());
    }
    return 0;
}

}  // namespace gradguard::bench
