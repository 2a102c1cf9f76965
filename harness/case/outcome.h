// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/contract/error.h"
#include "reference/contract/report.h"
#include "reference/fp64/coefficients.h"

namespace gradguard::harness {

struct OutcomeState {
    std::uint64_t step = 0;                               ///< Completed steps.
    std::vector<float> first_moment, second_moment;       ///< [n] each.
    std::optional<std::vector<float>> max_second_moment;  ///< [n]
};

/// One entry after a step; the old values where nothing was updated.
struct OutcomeEntry {
    bool updated = false;
    std::vector<float> parameters;  ///< [n]
    std::optional<OutcomeState> state;
    /// What the update kernel was given, where the subject can tell.
    std::optional<reference::UpdateCoefficients> coefficients;
};

/// An error in the contract's words.
struct OutcomeError {
    ErrorKind kind = ErrorKind::kInvalidOption;
    std::optional<std::size_t> entry;
    std::string operand;
    std::string message;
};

/// What one step did.
struct StepOutcome {
    std::optional<OutcomeError> error;  ///< The rest means little then; later steps are not taken.
    std::vector<OutcomeEntry> entries;  ///< In input order; empty for statistics and after an error.
    std::optional<GradientStatsReport> report;
    float clip_multiplier = 1.0F;
    std::optional<SkipReason> skip_reason;
    std::optional<std::uint64_t> device_calls;     ///< Between call and return, where the subject can tell.
    std::optional<std::uint64_t> update_launches;  ///< Likewise.
    std::vector<std::string> inputs_changed;       ///< "entry 2 gradients": inputs that are not what they were.
    std::vector<std::string> findings;             ///< Of the device's observers, a line each.
};

/// One for the first step and each later one, up to an error.
struct Outcome {
    std::vector<StepOutcome> steps;
};

}  // namespace gradguard::harness
