// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/contract/report.h"

namespace gradguard::harness {

/// Where one output tensor is farthest from the exact result.
struct WorstUlp {
    double ulp = 0.0;         ///< In units of the last place of FP32.
    std::uint64_t index = 0;  ///< Element, row-major.
};

/// One entry of a judged step. What was not measured is absent.
struct EntryResult {
    std::string name;
    std::uint64_t elements = 0;
    std::uint64_t step = 0;       ///< Completed steps afterwards; 0 while there is no state.
    std::optional<double> norm;   ///< The tensor's own norm; +inf when it is bad.
    std::optional<double> share;  ///< norm^2 / total_norm^2, where that is a number.
    std::optional<bool> bad;
    std::optional<std::uint64_t> first_bad;
    bool updated = false;
    std::optional<WorstUlp> param;
    std::optional<WorstUlp> exp_avg;
    std::optional<WorstUlp> exp_avg_sq;
    std::optional<WorstUlp> max_exp_avg_sq;
};

/// One judged step, or one judged scan. `report` is absent for Requested and Empty (contract section 2).
struct StepResult {
    std::string source;  ///< The file that the gradients came from.
    float gradient_scale = 1.0F;
    std::optional<GradientStatsReport> report;
    std::optional<double>
        exact_norm;  ///< Root of the exact sum of squares, rounded to FP64; +inf when anything is bad.
    float clip_multiplier = 1.0F;
    std::optional<SkipReason> skip_reason;
    std::uint64_t update_launches = 0;
    std::vector<std::string> failures;  ///< What was out of bounds, a screen each; empty when all is within bounds.
    std::vector<EntryResult> entries;

    bool within_bounds() const { return failures.empty(); }
};

/// What a command did.
struct RunResult {
    std::string device;
    std::vector<StepResult> steps;

    bool within_bounds() const {
        for (const StepResult& step : steps) {
            if (!step.within_bounds()) return false;
        }
        return true;
    }
};

/// An error as the program reports it. `kind` is one of the contract's, or "InvalidFile", "Usage", "BenchFailure" or
/// "Internal".
struct ErrorResult {
    std::string kind;
    std::optional<std::size_t> entry;
    std::string operand;
    std::string message;
};

/// JSON has no infinity and no NaN: those are the strings "inf", "-inf", "nan". Other numbers have the digits that
/// bring the same number back; an FP32 value is printed as the FP64 number it is.
std::string step_run_to_json(const RunResult& run);
/// The same without what a scan does not have: clip, skip, update, step, errors of the update.
std::string stats_run_to_json(const RunResult& run);
std::string error_to_json(const ErrorResult& error);

}  // namespace gradguard::harness
