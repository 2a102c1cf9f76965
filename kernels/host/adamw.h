// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/host/tensor.h"
#include "reference/contract/options.h"

namespace gradguard {

/// What AdamW remembers of a parameter (contract section 1). Moments are F32 of the parameter's shape.
struct AdamWState {
    std::uint64_t step = 0;  ///< Completed steps, at least 1.
    Tensor first_moment;
    Tensor second_moment;
    std::optional<Tensor> max_second_moment;  ///< Present if and only if AMSGrad is on.
};

/// One parameter of a group.
struct AdamWEntry {
    Tensor parameters;                ///< F32 master
    Tensor gradients;                 ///< F32, F16 or BF16, accumulated, still multiplied by the loss scale
    std::optional<AdamWState> state;  ///< Absent before the first update.
};

/// Result for one entry. An unchanged one shares the input's buffers, and an absent state stays absent.
struct AdamWUpdate {
    Tensor parameters;
    std::optional<AdamWState> state;
    bool updated = false;  ///< A kernel was submitted; not that it has finished.

    /// Waits until the update has completed. Throws Error{DeviceFailure} when the device failed. Only after it may a
    /// caller replace committed parameters and state.
    void wait() const;
};

/// The unguarded operator (contract sections 2 and 6). `skip_update` or an empty parameter: the inputs come back, no
/// allocation, updated = false. Otherwise one asynchronous launch with clip 1; non-finite gradients flow through.
/// Throws Error as contract section 3 says.
AdamWUpdate adamw_step(const Tensor& parameters, const Tensor& gradients, const std::optional<AdamWState>& state,
                       const AdamWOptions& options = {}, const StepControl& control = {});

}  // namespace gradguard
