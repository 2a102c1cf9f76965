// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/agreement.h"
#include "bench/step_paths.h"

namespace gradguard::bench {

/// One measured batch of steps of one path.
struct StepSample {
    std::uint64_t place = 0;  ///< In the order of its round, from 0.
    double seconds = 0.0;     ///< Wall clock of all steps, each with its final synchronisation.
    /// By the device's own clock, where it has one: from a mark before the first step's work to one behind the last's.
    std::optional<double> device_seconds;
};

/// What one path did.
struct PathResult {
    StepPath path;
    std::vector<StepSample> samples;  ///< In the order they were taken.
    float clip_multiplier = 1.0F;
};

/// What the comparisons outside the timed part saw: after the warm-up, then after each sample.
struct ComparisonRecord {
    std::string after;  ///< "warm-up", "sample 3".
    std::string path;   ///< Held against the first path.
    Agreement agreement;
};

struct StepMeasurement {
    std::vector<PathResult> paths;
    std::vector<ComparisonRecord> comparisons;
};

/// Measures whole steps of several paths, the first being what the others are held against (contract section 8). Every
/// batch of every path starts from `start`; all paths are warmed up and compared before the first sample, take turns in
/// an order that is reversed from sample to sample, and are compared again after each. Throws Error, BenchFailure,
/// std::invalid_argument.
StepMeasurement measure_steps(const Entries& start, const StepBenchOptions& options, std::span<const StepPath> paths);

}  // namespace gradguard::bench
