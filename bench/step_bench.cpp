// SPDX-License-Identifier: Apache-2.0
#include "bench/step_bench.h"

#include <chrono>
#include <utility>

#include "bench/device_timer.h"
#include "reference/exact/float_bits.h"

namespace gradguard::bench {
namespace {

/// Where a batch has come to.
struct Batch {
    Entries entries;
    float clip_multiplier = 1.0F;
    StepSample sample;
};

/// The updated entries take the place of those before; every entry must have been updated.
void advance(Entries& entries, const StepPath& path, Submitted submitted) {
    if (submitted.updates.size() != entries.size()) {
        throw BenchFailure("the " + path.name + " path gave " + std::to_string(submitted.updates.size()) +
                           " results for " + std::to_string(entries.size()) + " entries");
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
        AdamWUpdate& update = submitted.updates[i];
        if (!update.updated) throw BenchFailure("the " + path.name + " path skipped entry " + std::to_string(i));
        entries[i].parameters = std::move(update.parameters);
        entries[i].state = std::move(update.state);
    }
}

/// Takes `steps` steps from `start`. What is timed: allocation, statistics, readback, decision, submission, the final
/// synchronisation of each step, and letting go of what the step replaced.
Batch run_batch(const StepPath& path, const Entries& start, std::uint64_t steps) {
    using Clock = std::chrono::steady_clock;
    const std::shared_ptr<Queue>& queue = start.front().parameters.queue;
    const DeviceTimer timer(queue);
    Batch batch{start, 1.0F, {}};
    queue->synchronize();
    const Clock::time_point started = Clock::now();
    timer.start();
    for (std::uint64_t step = 0; step < steps; ++step) {
        Submitted submitted = path.submit(batch.entries);
        if (step + 1 == steps) timer.stop();
        queue->synchronize();
        batch.clip_multiplier = submitted.clip_multiplier;
        advance(batch.entries, path, std::move(submitted));
    }
    batch.sample.seconds = std::chrono::duration<double>(Clock::now() - started).count();
    batch.sample.device_seconds = timer.seconds();
    return batch;
}

/// The coefficients of each of `steps` steps from `start`: the gradients stay, so the clip is the same in all of them.
std::vector<reference::UpdateCoefficients> coefficients_of(const Entries& start, const StepBenchOptions& options,
                                                           float clip, std::uint64_t steps) {
    std::vector<reference::UpdateCoefficients> coefficients;
    const std::uint64_t before = start.front().state.value().step;
    for (std::uint64_t step = 1; step <= steps; ++step) {
        coefficients.push_back(reference::update_coefficients(options.adamw(), options.control(), clip, before + step));
    }
    return coefficients;
}

class Measurement {
  public:
    Measurement(const Entries& start, const StepBenchOptions& options, std::span<const StepPath> paths)
        : start_(start), options_(options) {
        for (const StepPath& path : paths) result_.paths.push_back({path, {}, 1.0F});
    }

    StepMeasurement run() {
        round("warm-up", options_.warmup, false);
        for (auto& path : result_.paths) path.samples.clear();
        for (std::uint64_t sample = 0; sample < options_.samples; ++sample) {
            round("sample " + std::to_string(sample), options_.iterations, sample % 2 == 1);
        }
        return std::move(result_);
    }

  private:
    /// One batch of each path, in the given order, and the comparison of where they have come to.
    void round(const std::string& name, std::uint64_t steps, bool reversed) {
        const std::size_t count = result_.paths.size();
        std::vector<Entries> ends(count);
        for (std::size_t place = 0; place < count; ++place) {
            const std::size_t which = reversed ? count - 1 - place : place;
            PathResult& path = result_.paths[which];
            Batch batch = run_batch(path.path, start_, steps);
            batch.sample.place = place;
            path.samples.push_back(batch.sample);
            path.clip_multiplier = batch.clip_multiplier;
            ends[which] = std::move(batch.entries);
        }
        compare(name, steps, ends);
    }

    void compare(const std::string& name, std::uint64_t steps, const std::vector<Entries>& ends) {
        const PathResult& first = result_.paths.front();
        const auto coefficients = coefficients_of(start_, options_, first.clip_multiplier, steps);
        const AgreementCheck check(start_, options_.contracted, coefficients);
        for (std::size_t i = 1; i < ends.size(); ++i) {
            const PathResult& other = result_.paths[i];
            if (!reference::same_float(other.clip_multiplier, first.clip_multiplier)) {
                throw BenchFailure("the paths clip by other factors: " + first.path.name + " " +
                                   std::to_string(first.clip_multiplier) + ", " + other.path.name + " " +
                                   std::to_string(other.clip_multiplier));
            }
            try {
                result_.comparisons.push_back(
                    {name, other.path.name, check.compare(ends.front(), first.path.name, ends[i], other.path.name)});
            } catch (const BenchFailure& failure) {
                throw BenchFailure("after the " + name + ": " + failure.what());
            }
        }
    }

    const Entries& start_;
    const StepBenchOptions& options_;
    StepMeasurement result_;
};

}  // namespace

StepMeasurement measure_steps(const Entries& start, const StepBenchOptions& options, std::span<const StepPath> paths) {
    require_valid(options);
    if (start.empty() || paths.empty()) throw std::invalid_argument("bench step: want a group and a path, got none");
    return Measurement(start, options, paths).run();
}

}  // namespace gradguard::bench
