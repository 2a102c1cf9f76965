// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>

#include "reference/contract/dtype.h"
#include "reference/contract/options.h"

namespace gradguard::bench {

/// What contract section 8 admits.
inline constexpr std::uint64_t kMostElements = 0xFFFFFFFFULL / 4;
inline constexpr std::uint64_t kMostTensors = 1024;
inline constexpr std::uint64_t kLeastSamples = 3;

/// What `bench step` measures; defaults of contract section 8.
struct StepBenchOptions {
    std::uint64_t elements = 65536;  ///< In each tensor.
    std::uint64_t tensors = 4;
    DType dtype = DType::kBF16;  ///< Of the gradients.
    bool amsgrad = false;
    std::uint64_t iterations = 5;  ///< Steps of each path in each sample.
    std::uint64_t samples = 5;
    std::uint64_t warmup = 2;  ///< Steps of each path before the first sample.
    bool contracted = true;    ///< The kernels' build; decides how the paths are compared.

    /// The options of every step.
    AdamWOptions adamw() const {
        AdamWOptions options;
        options.amsgrad = amsgrad;
        return options;
    }
    static StepControl control() { return {.gradient_scale = 128.0F, .skip_update = false}; }
    static GradientGuardOptions guard() { return {}; }
    std::uint64_t all_elements() const { return elements * tensors; }
};

/// The run is no measurement: a step was skipped, or the paths disagree.
class BenchFailure : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws std::invalid_argument for what contract section 8 refuses.
void require_valid(const StepBenchOptions& options);

}  // namespace gradguard::bench
