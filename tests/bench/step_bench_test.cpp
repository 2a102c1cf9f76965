// SPDX-License-Identifier: Apache-2.0
#include "bench/step_bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bench/copy_bandwidth.h"
#include "harness/devices/registry.h"
#include "kernels/host/guarded_adamw.h"
#include "tests/bench/group.h"

namespace gradguard::bench {
namespace {

using testing::BenchDevice;
using testing::small_options;

/// One step as a path was asked for it.
struct Asked {
    std::string path;
    DeviceAddress parameters = 0;  ///< Where the first entry's are.
    std::uint64_t step = 0;        ///< That it had completed.
};

/// The path, and a record of every step.
StepPath recorded(StepPath path, std::vector<Asked>& log) {
    path.submit = [name = path.name, inner = path.submit, &log](const Entries& entries) {
        log.push_back({name, entries.front().parameters.storage.address, entries.front().state.value().step});
        return inner(entries);
    };
    return path;
}

std::vector<Asked> steps_of_a_measurement(const BenchDevice& device) {
    std::vector<Asked> log;
    device.measure({recorded(guarded_path(device.options), log), recorded(staged_path(device.options), log)});
    return log;
}

/// A guarded step in which `change` has had its way with the options.
template <class Change>
StepPath guarded_with(const StepBenchOptions& options, const std::string& name, Change change) {
    return {name, "", 0, [options, change](const Entries& entries) {
                AdamWOptions adamw = options.adamw();
                StepControl control = options.control();
                GradientGuardOptions guard = options.guard();
                change(adamw, control, guard);
                GuardedAdamWUpdate update = guarded_adamw_step(entries, adamw, control, guard);
                // The clip that was asked for, so that the paths are told apart by what they stored.
                return Submitted{
                    std::move(update.entries),
                    guarded_adamw_step(entries, options.adamw(), options.control(), options.guard()).clip_multiplier};
            }};
}

TEST(StepBench, TheOrderIsReversedFromSampleToSample) {
    const BenchDevice device(small_options());
    std::string order;
    for (const Asked& asked : steps_of_a_measurement(device)) order += asked.path[0];
    EXPECT_EQ(order, std::string("gs") + "ggss" + "ssgg" + "ggss");
}

TEST(StepBench, ThePlaceOfASampleIsItsPlaceInTheOrder) {
    const StepMeasurement measurement = BenchDevice(small_options()).measure();
    std::vector<std::uint64_t> places[2];
    for (const std::size_t path : {0, 1}) {
        for (const StepSample& sample : measurement.paths[path].samples) places[path].push_back(sample.place);
    }
    EXPECT_EQ(places[0], (std::vector<std::uint64_t>{0, 1, 0}));
    EXPECT_EQ(places[1], (std::vector<std::uint64_t>{1, 0, 1}));
}

TEST(StepBench, EveryBatchStartsFromTheStateThatOneGuardedStepLeft) {
    const BenchDevice device(small_options());
    const DeviceAddress start = device.start.front().parameters.storage.address;
    std::size_t batches = 0;
    for (const Asked& asked : steps_of_a_measurement(device)) {
        EXPECT_EQ(asked.parameters == start, asked.step == 1);
        batches += asked.step == 1;
    }
    EXPECT_EQ(batches, 2 + 2 * device.options.samples);
}

TEST(StepBench, ThePathsAreComparedAfterTheWarmUpAndAfterEachSample) {
    const StepMeasurement measurement = BenchDevice(small_options()).measure();
    std::vector<std::string> after;
    for (const ComparisonRecord& record : measurement.comparisons) {
        after.push_back(record.after);
        EXPECT_EQ(record.agreement.values, 3U * 3 * 70);
    }
    EXPECT_EQ(after, (std::vector<std::string>{"warm-up", "sample 0", "sample 1", "sample 2"}));
}

TEST(StepBench, BothPathsAgreeForEveryDtypeWithAndWithoutAmsgradInBothBuilds) {
    for (const DType dtype : kAllDTypes) {
        for (const bool amsgrad : {false, true}) {
            for (const bool contracted : {false, true}) {
                StepBenchOptions options = small_options(contracted);
                options.dtype = dtype;
                options.amsgrad = amsgrad;
                const BenchDevice device(options);
                EXPECT_NO_THROW(device.measure()) << to_string(dtype) << ' ' << amsgrad << ' ' << contracted;
                EXPECT_TRUE(device.device->findings().empty());
            }
        }
    }
}

TEST(StepBench, EveryStepClips) {
    for (const std::uint64_t elements : {1, 4097}) {
        StepBenchOptions options = small_options();
        options.elements = elements;
        options.tensors = 1;
        for (const PathResult& path : BenchDevice(options).measure().paths) {
            EXPECT_LT(path.clip_multiplier, 1.0F);
            EXPECT_GT(path.clip_multiplier, 0.0F);
        }
    }
}

TEST(StepBench, ABaselineWithAWrongUpdateIsFoundInBothBuilds) {
    for (const bool contracted : {false, true}) {
        const BenchDevice device(small_options(contracted));
        const StepPath wrong =
            guarded_with(device.options, "wrong", [](AdamWOptions& adamw, auto&, auto&) { adamw.learning_rate *= 2; });
        EXPECT_NE(device.failure_beside(wrong).find("after the warm-up: "), std::string::npos) << contracted;
        EXPECT_NE(device.failure_beside(wrong).find("entry 0, parameters[0]"), std::string::npos)
            << device.failure_beside(wrong);
    }
}

TEST(StepBench, ABaselineThatScalesByTheNextNumberIsFoundWithoutContraction) {
    const BenchDevice device(small_options());
    const StepPath wrong = guarded_with(device.options, "wrong", [](auto&, StepControl&, GradientGuardOptions& guard) {
        guard.max_norm = std::nextafter(*guard.max_norm, 0.0F);
    });
    EXPECT_NE(device.failure_beside(wrong), "");
}

TEST(StepBench, ABaselineThatScalesByAnotherFactorIsFoundWithContraction) {
    const BenchDevice device(small_options(true));
    const StepPath wrong = guarded_with(device.options, "wrong", [](auto&, StepControl&, GradientGuardOptions& guard) {
        guard.max_norm = *guard.max_norm * (1 - 0x1p-18F);
    });
    EXPECT_NE(device.failure_beside(wrong).find("outside of the enclosure"), std::string::npos)
        << device.failure_beside(wrong);
}

TEST(StepBench, OneWrongElementOfOneMomentIsFound) {
    for (const bool contracted : {false, true}) {
        const BenchDevice device(small_options(contracted));
        StepPath wrong = staged_path(device.options);
        wrong.submit = [inner = wrong.submit](const Entries& entries) {
            Submitted submitted = inner(entries);
            const Tensor& moment = submitted.updates[2].state->second_moment;
            std::vector<float> values = downloaded_floats(moment);
            values[69] *= 1 + 0x1p-18F;
            moment.upload(std::as_bytes(std::span(values)));
            return submitted;
        };
        EXPECT_NE(device.failure_beside(wrong).find("entry 2, second_moment[69]"), std::string::npos)
            << device.failure_beside(wrong);
    }
}

TEST(StepBench, AnotherContractionIsWithinTheEnclosureAndHasNotTheSameBits) {
    const BenchDevice device(small_options(true));
    StepPath uncontracted = guarded_path(device.options);
    uncontracted.name = "uncontracted";
    uncontracted.submit = [inner = uncontracted.submit, &device](const Entries& entries) {
        device.use_kernels(false);
        Submitted submitted = inner(entries);
        device.queue->synchronize();
        device.use_kernels(true);
        return submitted;
    };
    const StepMeasurement measurement = device.measure({guarded_path(device.options), uncontracted});
    for (const ComparisonRecord& record : measurement.comparisons) EXPECT_GT(record.agreement.enclosed, 0U);
}

TEST(StepBench, AnotherClipIsFoundWhateverTheValues) {
    const BenchDevice device(small_options());
    StepPath wrong = guarded_path(device.options);
    wrong.submit = [inner = wrong.submit](const Entries& entries) {
        Submitted submitted = inner(entries);
        submitted.clip_multiplier = 0.5F;
        return submitted;
    };
    EXPECT_NE(device.failure_beside(wrong).find("clip by other factors"), std::string::npos);
}

TEST(StepBench, ASkippedStepOfEitherPathFails) {
    StepBenchOptions options = small_options();
    options.dtype = DType::kF32;
    BenchDevice device(options);
    const Tensor& gradients = device.start[1].gradients;
    std::vector<float> values = downloaded_floats(gradients);
    values[3] = std::numeric_limits<float>::infinity();
    gradients.upload(std::as_bytes(std::span(values)));
    for (const StepPath& path : step_paths(options)) {
        try {
            device.measure({path});
            ADD_FAILURE() << path.name << " went on";
        } catch (const BenchFailure& failure) {
            EXPECT_NE(std::string(failure.what()).find("skipped"), std::string::npos) << failure.what();
        }
    }
}

TEST(StepBench, AnEntryThatAPathDoesNotUpdateFails) {
    const BenchDevice device(small_options());
    StepPath lazy = guarded_path(device.options);
    lazy.submit = [inner = lazy.submit](const Entries& entries) {
        Submitted submitted = inner(entries);
        submitted.updates[1].updated = false;
        return submitted;
    };
    EXPECT_NE(device.failure_beside(lazy).find("skipped entry 1"), std::string::npos);
}

TEST(StepBench, AResultTooFewFails) {
    const BenchDevice device(small_options());
    StepPath lazy = guarded_path(device.options);
    lazy.submit = [inner = lazy.submit](const Entries& entries) {
        Submitted submitted = inner(entries);
        submitted.updates.pop_back();
        return submitted;
    };
    EXPECT_NE(device.failure_beside(lazy).find("2 results for 3 entries"), std::string::npos);
}

TEST(StepBench, TimesAreOfWholeBatches) {
    for (const PathResult& path : BenchDevice(small_options()).measure().paths) {
        ASSERT_EQ(path.samples.size(), 3U);
        for (const StepSample& sample : path.samples) {
            EXPECT_GT(sample.seconds, 0.0);
            EXPECT_FALSE(sample.device_seconds.has_value());  // the virtual GPU has no clock
        }
    }
}

TEST(StepBench, ADeviceWithAClockOfItsOwnGivesItsTimes) {
    const StepBenchOptions options = small_options();
    const auto device = harness::open_device({.name = "vdriver"});
    device->set_kernel_source(with_bench_kernels(KernelSource::embedded(false), false));
    const Entries start = make_group(device->create_queue(), options);
    const std::vector<StepPath> paths = step_paths(options);
    for (const PathResult& path : measure_steps(start, options, paths).paths) {
        for (const StepSample& sample : path.samples) {
            ASSERT_TRUE(sample.device_seconds.has_value());
            EXPECT_GT(*sample.device_seconds, 0.0);
        }
    }
    EXPECT_TRUE(measure_copy(device->create_queue(), 4096, 3).by_device_clock);
}

TEST(StepBench, WhatTheContractRefusesIsRefused) {
    const auto refused = [](auto change) {
        StepBenchOptions options;
        change(options);
        EXPECT_THROW(require_valid(options), std::invalid_argument);
    };
    EXPECT_NO_THROW(require_valid({}));
    refused([](StepBenchOptions& options) { options.elements = 0; });
    refused([](StepBenchOptions& options) { options.elements = 1073741824; });
    refused([](StepBenchOptions& options) { options.tensors = 0; });
    refused([](StepBenchOptions& options) { options.tensors = 1025; });
    refused([](StepBenchOptions& options) { options.samples = 2; });
    refused([](StepBenchOptions& options) { options.iterations = 0; });
    refused([](StepBenchOptions& options) { options.warmup = 0; });
}

}  // namespace
}  // namespace gradguard::bench
