// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "bench/device/embedded.h"
#include "bench/step_bench.h"
#include "harness/devices/virtual_device.h"

namespace gradguard::testing {

inline bench::StepBenchOptions small_options(bool contracted = false) {
    bench::StepBenchOptions options;
    options.elements = 70;
    options.tensors = 3;
    options.iterations = 2;
    options.samples = 3;
    options.warmup = 1;
    options.contracted = contracted;
    return options;
}

/// A virtual GPU under all observers with the kernels that `options` ask for, and a group on it.
struct BenchDevice {
    explicit BenchDevice(const bench::StepBenchOptions& asked)
        : options(asked),
          device(
              harness::VirtualDevice::create({.machine = {}, .hold_back = true, .observers = "all", .count = false})) {
        use_kernels(options.contracted);
        queue = device->create_queue();
        start = bench::make_group(queue, options);
    }

    void use_kernels(bool contracted) const {
        device->set_kernel_source(bench::with_bench_kernels(KernelSource::embedded(contracted), contracted));
    }

    bench::StepMeasurement measure(const std::vector<bench::StepPath>& paths) const {
        return bench::measure_steps(start, options, paths);
    }
    bench::StepMeasurement measure() const { return measure(bench::step_paths(options)); }

    /// What a measurement of the guarded path beside `other` fails with; "" when it does not.
    std::string failure_beside(const bench::StepPath& other) const {
        try {
            measure({bench::guarded_path(options), other});
            return "";
        } catch (const bench::BenchFailure& failure) {
            return failure.what();
        }
    }

    bench::StepBenchOptions options;
    std::shared_ptr<harness::VirtualDevice> device;
    std::shared_ptr<Queue> queue;
    bench::Entries start;
};

}  // namespace gradguard::testing
