// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/compare/case_judge.h"
#include "harness/compare/update_bound.h"
#include "reference/model/gradient_view.h"
#include "reference/model/validation.h"

namespace gradguard::harness {

/// One entry before a step: the values that the subject itself left, the step count that it should be at.
struct EntryBefore {
    std::uint64_t elements = 0;
    std::uint64_t step = 0;  ///< Completed steps; 0 means no state.
    std::span<const float> parameters, first_moment, second_moment, max_second_moment;
};

/// A group before a step, and what the step is asked to do.
struct GroupBefore {
    Operation operation = Operation::kGuardedStep;
    AdamWOptions options;
    StepControl control;
    GradientGuardOptions guard;
    std::vector<EntryBefore> entries;
    std::vector<reference::GradientView> gradients;
    std::uint64_t index = 0;  ///< Of the step in its case.
};

/// Judges what one step did and adds to a verdict.
class StepJudge {
  public:
    StepJudge(const Abilities& abilities, const JudgeOptions& options, CaseVerdict& verdict)
        : abilities_(abilities), options_(options), verdict_(verdict) {}

    /// The step should have been refused: `violations` are all that is wrong at the first place.
    void judge_refusal(const StepOutcome& got, std::span<const reference::Violation> violations, std::uint64_t step);

    /// A step of a valid group. Moves `group` on to what the subject left; false when there is nothing to go on from.
    bool judge_step(GroupBefore& group, const StepOutcome& got);

    // Of the step judged last, for whoever tells more of it than a verdict holds:
    /// The root of the exact sum of squares over the good elements.
    double exact_norm() const { return exact_norm_; }
    /// By tensor: its first bad element.
    const std::vector<std::optional<std::uint64_t>>& first_bad() const { return first_bad_; }
    /// By entry and Operand; 0 where nothing was updated or measured.
    const std::vector<std::array<WorstError, kOperands>>& errors() const { return errors_; }

  private:
    void add(Failure failure);
    void add(const char* fact, std::optional<std::uint64_t> entry, std::string operand, std::string got,
             std::string want);
    void judge_surroundings(const StepOutcome& got);
    void judge_call_counts(const StepOutcome& got, bool may_call, std::uint64_t updates);

    std::optional<SkipReason> wanted_skip(const GroupBefore& group, bool bad) const;
    bool judge_error(const GroupBefore& group, const StepOutcome& got, bool bad);
    bool scan(const GroupBefore& group);
    void judge_report(const GroupBefore& group, const GradientStatsReport& report);
    void judge_foreign_report(const GroupBefore& group, const GradientStatsReport& report);
    double foreign_bound(const GroupBefore& group) const;
    double bound_along_tree(const GroupBefore& group) const;
    void measure_norm(const GroupBefore& group, double total_norm);
    void judge_decision(const GroupBefore& group, const StepOutcome& got, std::optional<SkipReason> want);
    bool judge_entry(GroupBefore& group, std::size_t i, const StepOutcome& got);
    bool judge_shape(const EntryBefore& before, std::size_t i, const OutcomeEntry& after, bool updated, bool amsgrad);
    void judge_unchanged(const EntryBefore& before, std::size_t i, const OutcomeEntry& after);
    void judge_updated(const GroupBefore& group, std::size_t i, const OutcomeEntry& after);
    void take_worst(Quantity quantity, double ulp, double fraction, std::uint64_t entry, std::uint64_t index);

    const Abilities& abilities_;
    const JudgeOptions& options_;
    CaseVerdict& verdict_;
    std::uint64_t step_ = 0;
    // Of the group that is being judged:
    double exact_norm_ = 0.0;  ///< Of the good elements.
    float max_abs_ = 0.0F, least_abs_ = 0.0F;
    std::vector<std::optional<std::uint64_t>> first_bad_;
    std::vector<std::array<WorstError, kOperands>> errors_;
    float clip_ = 1.0F;
    bool skips_ = false;
};

}  // namespace gradguard::harness
