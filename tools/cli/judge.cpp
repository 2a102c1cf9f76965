// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/judge.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/fp64/coefficients.h"
#include "reference/fp64/decision.h"
#include "reference/fp64/summary_rules.h"
#include "reference/model/statistics.h"

namespace gradguard::tools {
namespace {

using harness::EntryResult;
using harness::Failure;
using harness::StepResult;
using harness::WorstUlp;

/// A failed tensor is told once; more than this many would not be read.
constexpr std::size_t kMostFailures = 8;

class StepJudge {
  public:
    StepJudge(const JudgedGroup& group, StepResult& result) : group_(group), result_(result) {}

    void start() {
        result_.gradient_scale = group_.gradient_scale;
        for (std::size_t i = 0; i < group_.names.size(); ++i) {
            EntryResult entry;
            entry.name = group_.names[i];
            entry.elements = group_.gradients[i].elements;
            result_.entries.push_back(std::move(entry));
        }
    }

    void judge_report(const GradientStatsReport& report) {
        result_.report = report;
        const auto want = reference::group_statistics(group_.gradients, group_.gradient_scale, group_.block_limit);
        if (auto mismatch = harness::compare_reports(report, want)) add(harness::failure_of(*mismatch));
        const float r = reference::reciprocal_scale(group_.gradient_scale);
        reference::ExactSumOfSquares sum;
        bool bad = false;
        for (std::size_t i = 0; i < group_.gradients.size(); ++i) {
            const reference::ExactScan scan = reference::exact_scan(group_.gradients[i], r);
            sum += scan.sum;
            bad = bad || scan.first_bad.has_value();
            if (i < report.summaries.size()) describe_tensor(i, report, scan.first_bad);
        }
        result_.exact_norm = bad ? std::numeric_limits<double>::infinity() : sum.root();
    }

    void judge_decision(const JudgedStep& step) {
        const GuardedAdamWUpdate& got = *step.result;
        const std::optional<SkipReason> want = wanted_skip(step);
        result_.skip_reason = got.skip_reason;
        result_.clip_multiplier = got.clip_multiplier;
        const auto reason_text = [](const std::optional<SkipReason>& reason) {
            return reason ? std::string(to_string(*reason)) : std::string("none");
        };
        if (got.skip_reason != want) {
            add("the skip reason is the contract's (sections 2 and 5)", {}, "skip_reason", reason_text(got.skip_reason),
                reason_text(want));
        }
        if (got.report.has_value() != (!want || *want == SkipReason::kNonFinite)) {
            add("a report exists exactly when the group was scanned (contract section 2)", {}, "report",
                got.report ? "a report" : "none", got.report ? "none" : "a report");
        }
        if (want == SkipReason::kNonFinite && step.guard.nonfinite == NonFinitePolicy::kError) {
            add("a bad group under policy Error is an error (contract section 2)", {}, "gradients", "a result",
                "NonFiniteGradients");
        }
        skips_ = want.has_value();
        if (!skips_ && got.report && std::isfinite(got.report->stats.total_norm))
            clip_ = reference::clip_multiplier(got.report->stats.total_norm, step.guard);
        if (std::bit_cast<std::uint32_t>(got.clip_multiplier) != std::bit_cast<std::uint32_t>(clip_)) {
            add("the clip multiplier follows from the reported norm (contract section 5)", {}, "clip_multiplier",
                harness::float_text(got.clip_multiplier), harness::float_text(clip_));
        }
    }

    void judge_entry(std::size_t i, const JudgedStep& step) {
        const AdamWUpdate& update = step.result->entries[i];
        const EntryValues& before = step.before[i];
        const EntryValues& after = step.after[i];
        EntryResult& entry = result_.entries[i];
        const bool wanted = !skips_ && entry.elements > 0;
        entry.updated = update.updated;
        entry.step = after.has_state ? after.step : 0;
        if (update.updated) ++result_.update_launches;
        if (update.updated != wanted) {
            add("exactly the non-empty entries of a step that is not skipped are updated", i, "updated",
                update.updated ? "updated" : "unchanged", wanted ? "updated" : "unchanged");
        }
        if (wanted && after.has_state && after.max_exp_avg_sq.empty() == step.options.amsgrad) {
            add("a maximum is stored exactly with AMSGrad", i, "max_second_moment",
                step.options.amsgrad ? "none" : "one", step.options.amsgrad ? "one" : "none");
            return;
        }
        const std::uint64_t wanted_step = before.step + (wanted ? 1 : 0);
        if (after.step != wanted_step) {
            add("the step count advances by one with each update", i, "step", std::to_string(after.step),
                std::to_string(wanted_step));
        }
        if (!update.updated || !wanted || !after.has_state) {
            judge_unchanged(i, before, after);
        } else {
            judge_updated(i, step);
        }
    }

  private:
    void add(Failure failure) {
        if (result_.failures.size() == kMostFailures) return;
        if (failure.entry && *failure.entry < group_.names.size()) failure.entry_name = group_.names[*failure.entry];
        failure.notes.push_back("replay: " + group_.replay);
        result_.failures.push_back(harness::describe(failure));
    }

    void add(const char* fact, std::optional<std::uint64_t> entry, const char* operand, const std::string& got,
             const std::string& want) {
        Failure failure;
        failure.fact = fact;
        failure.entry = entry;
        failure.operand = operand;
        failure.got = got;
        failure.want = {want};
        add(std::move(failure));
    }

    void describe_tensor(std::size_t i, const GradientStatsReport& report, std::optional<std::uint64_t> first_bad) {
        const GradientSummary& summary = report.summaries[i];
        EntryResult& entry = result_.entries[i];
        entry.bad = summary.bad != 0.0F;
        entry.first_bad = first_bad;
        if (*entry.bad) {
            entry.norm = std::numeric_limits<double>::infinity();
            return;
        }
        entry.norm = reference::tensor_norm(summary);
        const double total = report.stats.total_norm;
        if (total > 0.0 && std::isfinite(total)) entry.share = reference::sum_of_squares(summary) / (total * total);
    }

    std::optional<SkipReason> wanted_skip(const JudgedStep& step) const {
        if (step.control.skip_update) return SkipReason::kRequested;
        bool empty = true;
        for (const reference::GradientView& view : group_.gradients) empty = empty && view.elements == 0;
        if (empty) return SkipReason::kEmpty;
        if (!bad_places(group_).empty()) return SkipReason::kNonFinite;
        return std::nullopt;
    }

    void judge_unchanged(std::size_t i, const EntryValues& before, const EntryValues& after) {
        const auto check = [&](const char* operand, const std::vector<float>& old, const std::vector<float>& now) {
            const bool same = old.size() == now.size() &&
                              (old.empty() || std::memcmp(old.data(), now.data(), old.size() * sizeof(float)) == 0);
            if (same) return;
            add("an unchanged entry keeps the bytes of every buffer", i, operand, "other bytes", "the input's bytes");
        };
        check("parameters", before.param, after.param);
        check("first_moment", before.exp_avg, after.exp_avg);
        check("second_moment", before.exp_avg_sq, after.exp_avg_sq);
        check("max_second_moment", before.max_exp_avg_sq, after.max_exp_avg_sq);
        if (before.has_state != after.has_state) {
            add("an absent state stays absent", i, "state", after.has_state ? "a state" : "none",
                before.has_state ? "a state" : "none");
        }
        EntryResult& entry = result_.entries[i];
        entry.param = WorstUlp{};
        if (!after.has_state) return;
        entry.exp_avg = entry.exp_avg_sq = WorstUlp{};
        if (!after.max_exp_avg_sq.empty()) entry.max_exp_avg_sq = WorstUlp{};
    }

    void judge_updated(std::size_t i, const JudgedStep& step) {
        const EntryValues& before = step.before[i];
        const EntryValues& after = step.after[i];
        const reference::UpdateCoefficients coefficients =
            reference::update_coefficients(step.options, step.control, clip_, before.step + 1);
        harness::UpdateOperands operands;
        operands.gradients = group_.gradients[i];
        operands.old_parameters = before.param;
        operands.old_first_moment = before.exp_avg;
        operands.old_second_moment = before.exp_avg_sq;
        operands.old_max_second_moment = before.max_exp_avg_sq;
        operands.parameters = after.param;
        operands.first_moment = after.exp_avg;
        operands.second_moment = after.exp_avg_sq;
        operands.max_second_moment = after.max_exp_avg_sq;
        const harness::UpdateVerdict verdict = harness::judge_update(operands, coefficients, step.contraction);
        const auto worst = [&](harness::Operand operand) {
            return WorstUlp{verdict.worst_of(operand).ulp, verdict.worst_of(operand).index};
        };
        EntryResult& entry = result_.entries[i];
        entry.param = worst(harness::Operand::kParameters);
        entry.exp_avg = worst(harness::Operand::kFirstMoment);
        entry.exp_avg_sq = worst(harness::Operand::kSecondMoment);
        if (step.options.amsgrad) entry.max_exp_avg_sq = worst(harness::Operand::kMaxSecondMoment);
        if (verdict.ok || !verdict.first) return;
        Failure failure = harness::failure_of(*verdict.first, operands, coefficients);
        failure.entry = i;
        failure.notes.push_back(std::to_string(verdict.outside) + " of " + std::to_string(entry.elements) +
                                " elements are outside; step " + std::to_string(before.step + 1) + " of this entry");
        add(std::move(failure));
    }

    const JudgedGroup& group_;
    StepResult& result_;
    float clip_ = 1.0F;
    bool skips_ = false;
};

}  // namespace

StepResult judge_scan(const JudgedGroup& group, const GradientStatsReport& report) {
    StepResult result;
    StepJudge judge(group, result);
    judge.start();
    judge.judge_report(report);
    return result;
}

StepResult judge_step(const JudgedGroup& group, const JudgedStep& step) {
    StepResult result;
    StepJudge judge(group, result);
    judge.start();
    if (step.result->report) judge.judge_report(*step.result->report);
    judge.judge_decision(step);
    for (std::size_t i = 0; i < group.names.size(); ++i) judge.judge_entry(i, step);
    return result;
}

std::vector<std::string> bad_places(const JudgedGroup& group) {
    const float r = reference::reciprocal_scale(group.gradient_scale);
    std::vector<std::string> places;
    for (std::size_t i = 0; i < group.gradients.size(); ++i) {
        const std::optional<std::uint64_t> first = reference::first_bad(group.gradients[i], r);
        if (first) places.push_back(group.names[i] + " at " + std::to_string(*first));
    }
    return places;
}

}  // namespace gradguard::tools
