// SPDX-License-Identifier: Apache-2.0
#include "property_tests/reported/reported_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "harness/compare/case_judge.h"
#include "harness/subjects/subject.h"
#include "reference/exact/float_bits.h"
#include "reference/model/statistics.h"

namespace gradguard::testing {
namespace {

using harness::Case;
using harness::CaseEntry;
using harness::CaseState;
using harness::CaseTensor;
using harness::Outcome;
using harness::StepOutcome;
using reference::bits_of;

harness::Subject& subject_named(const std::string& name) {
    static std::map<std::string, std::unique_ptr<harness::Subject>> subjects;
    auto& subject = subjects[name];
    if (subject == nullptr) subject = harness::make_subject(name);
    return *subject;
}

/// `refused`: whether the last step has to end with an error. An outcome that the judge refuses, or that ended in the
/// other way, is a failure already and may lack what `check` looks at.
void run_every_subject(const Case& c, bool refused, const Check& check) {
    for (const char* const name : {"vgpu/nofmad", "vgpu/fmad", "oracle"}) {
        SCOPED_TRACE(name);
        harness::Subject& subject = subject_named(name);
        const Outcome outcome = subject.step(c);
        const harness::CaseVerdict verdict = judge_case(c, outcome, subject.abilities());
        for (const harness::Failure& failure : verdict.failures) ADD_FAILURE() << describe(failure);
        const auto& error = outcome.steps.back().error;
        EXPECT_EQ(error.has_value(), refused) << (error ? error->message : "nothing was refused");
        if (verdict.ok() && error.has_value() == refused) check(outcome);
    }
}

}  // namespace

void on_every_subject(const Case& c, const Check& check) {
    run_every_subject(c, false, [&](const Outcome& outcome) {
        ASSERT_EQ(outcome.steps.size(), 1 + c.later.size());
        check(outcome);
    });
}

CaseTensor tensor_of(const Gradient& gradient) {
    CaseTensor tensor;
    tensor.layout = {gradient.dtype, {gradient.elements}, {1}, 0};
    tensor.storage_bytes = gradient.bytes.size();
    tensor.values = gradient.bytes;
    return tensor;
}

CaseTensor ones(std::uint64_t n) { return tensor_of(f32(std::vector<float>(n, 1.0F))); }

CaseEntry entry_of(const std::vector<float>& parameters, const Gradient& gradient) {
    return {tensor_of(f32(parameters)), tensor_of(gradient), std::nullopt};
}

CaseEntry entry_of(const Gradient& gradient) { return {ones(gradient.elements), tensor_of(gradient), std::nullopt}; }

CaseEntry entry_of(const std::vector<float>& parameters, const Gradient& gradient, std::uint64_t step,
                   const std::vector<float>& first_moment, const std::vector<float>& second_moment) {
    CaseEntry entry = entry_of(parameters, gradient);
    entry.state = CaseState{step, tensor_of(f32(first_moment)), tensor_of(f32(second_moment)), std::nullopt};
    return entry;
}

Case guarded(std::vector<CaseEntry> entries) {
    Case c;
    c.entries = std::move(entries);
    return c;
}

Case shows_gradients(const std::vector<Gradient>& gradients, std::optional<float> max_norm, float scale) {
    Case c;
    for (const Gradient& gradient : gradients) c.entries.push_back(entry_of(gradient));
    c.options.beta1 = 0.0F;
    c.guard.max_norm = max_norm;
    c.control.gradient_scale = scale;
    return c;
}

Case statistics(const std::vector<Gradient>& gradients, float scale) {
    Case c;
    c.operation = harness::Operation::kStatistics;
    for (const Gradient& gradient : gradients) c.entries.push_back({ones(0), tensor_of(gradient), std::nullopt});
    c.control.gradient_scale = scale;
    return c;
}

harness::LaterStep later(const std::vector<Gradient>& gradients) {
    harness::LaterStep step;
    for (const Gradient& gradient : gradients) step.gradients.push_back(gradient.bytes);
    return step;
}

void expect_norm(const std::vector<Gradient>& gradients, double norm, std::uint32_t clip, float max_norm, float scale,
                 const std::vector<float>& effective) {
    std::vector<reference::GradientView> views;
    for (const Gradient& gradient : gradients) views.push_back(gradient.view());
    EXPECT_EQ(reference::exact_norm(views, scale), norm);
    on_every_subject(shows_gradients(gradients, max_norm, scale), [&](const Outcome& outcome) {
        const StepOutcome& step = outcome.steps[0];
        ASSERT_FALSE(step.error);
        ASSERT_TRUE(step.report);
        EXPECT_FALSE(step.skip_reason);
        EXPECT_TRUE(step.report->stats.all_finite);
        EXPECT_EQ(step.report->stats.total_norm, norm);
        EXPECT_EQ(bits_of(step.clip_multiplier), clip);
        for (std::size_t i = 0; i < effective.size(); ++i) {
            ASSERT_TRUE(step.entries[i].state);
            EXPECT_EQ(step.entries[i].state->first_moment[0], effective[i]) << "entry " << i;
        }
    });
}

void expect_bad(const std::vector<Gradient>& gradients, float max_finite_abs, std::optional<float> max_norm,
                float scale) {
    std::vector<reference::GradientView> views;
    for (const Gradient& gradient : gradients) views.push_back(gradient.view());
    EXPECT_EQ(reference::exact_norm(views, scale), HUGE_VAL);
    on_every_subject(shows_gradients(gradients, max_norm, scale), [&](const Outcome& outcome) {
        const StepOutcome& step = outcome.steps[0];
        ASSERT_FALSE(step.error);
        ASSERT_TRUE(step.report);
        EXPECT_EQ(step.skip_reason, SkipReason::kNonFinite);
        EXPECT_FALSE(step.report->stats.all_finite);
        EXPECT_EQ(step.report->stats.total_norm, HUGE_VAL);
        EXPECT_EQ(bits_of(step.report->stats.max_finite_abs), bits_of(max_finite_abs));
        EXPECT_EQ(step.clip_multiplier, 1.0F);
        for (const GradientSummary& summary : step.report->summaries) {
            EXPECT_TRUE(std::isfinite(summary.scale));
            EXPECT_TRUE(std::isfinite(summary.sumsq));
        }
        for (const harness::OutcomeEntry& entry : step.entries) {
            EXPECT_FALSE(entry.updated);
            EXPECT_FALSE(entry.state);
            EXPECT_EQ(entry.parameters, std::vector<float>(entry.parameters.size(), 1.0F));
        }
    });
}

void expect_refused(const Case& c, ErrorKind kind, std::optional<std::size_t> entry, const std::string& operand) {
    run_every_subject(c, true, [&](const Outcome& outcome) {
        const StepOutcome& last = outcome.steps.back();
        EXPECT_EQ(to_string(last.error->kind), to_string(kind)) << last.error->message;
        EXPECT_EQ(last.error->entry, entry) << last.error->message;
        EXPECT_EQ(last.error->operand, operand) << last.error->message;
        EXPECT_EQ(last.device_calls.value_or(0), 0U);
    });
}

std::ostream& operator<<(std::ostream& out, const FirstElement& element) {
    return out << std::hex << "p 0x" << element.p << ", m 0x" << element.m << ", v 0x" << element.v << std::dec;
}

FirstElement first_element(const harness::OutcomeEntry& entry) {
    if (!entry.state || entry.parameters.empty()) return {};
    return {bits_of(entry.parameters[0]), bits_of(entry.state->first_moment[0]),
            bits_of(entry.state->second_moment[0])};
}

}  // namespace gradguard::testing
