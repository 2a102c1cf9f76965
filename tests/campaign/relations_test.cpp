// SPDX-License-Identifier: Apache-2.0
// Each relation catches a subject that breaks it and nothing else: the oracle, changed in one known way.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "harness/campaign/campaign.h"
#include "reference/exact/float_bits.h"
#include "tests/campaign/fake_subject.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::testing {
namespace {

using harness::Case;
using harness::Operation;
using harness::Outcome;
using harness::StepOutcome;

struct Breach {
    const char* property;
    FakeSubject::Change change;
};

void PrintTo(const Breach& breach, std::ostream* stream) { *stream << breach.property; }

void with_reports(Outcome& outcome, const std::function<void(GradientStatsReport&)>& change) {
    for (StepOutcome& step : outcome.steps) {
        if (step.report) change(*step.report);
    }
}

void with_entries(Outcome& outcome, const std::function<void(harness::OutcomeEntry&)>& change) {
    for (StepOutcome& step : outcome.steps) {
        for (harness::OutcomeEntry& entry : step.entries) change(entry);
    }
}

float up(float x) { return std::isfinite(x) ? std::nextafter(x, INFINITY) : x; }

/// A sum of squares that depends on magnitudes.
void magnitude(const Case&, Outcome& outcome) {
    with_reports(outcome, [](GradientStatsReport& report) {
        for (GradientSummary& summary : report.summaries) {
            if ((reference::bits_of(summary.scale) >> 23U) % 2 == 0) summary.sumsq = up(summary.sumsq);
        }
    });
}

/// Signs that leak into the norm.
void signs(const Case& c, Outcome& outcome) {
    bool negative = false;
    for (const auto& entry : c.entries) {
        if (!entry.gradients.values.empty())
            negative |= (entry.gradients.values.back() & std::byte{0x80}) != std::byte{0};
    }
    with_reports(outcome, [&](GradientStatsReport& report) {
        if (negative) report.stats.max_finite_abs = up(report.stats.max_finite_abs);
    });
}

void element_count(const Case& c, Outcome& outcome) {
    std::size_t bytes = 0;
    for (const auto& entry : c.entries) bytes += entry.gradients.values.size();
    with_reports(outcome, [&](GradientStatsReport& report) {
        if (bytes % 3 == 0) report.stats.max_finite_abs = up(report.stats.max_finite_abs);
    });
}

void entry_count(const Case& c, Outcome& outcome) {
    with_reports(outcome, [&](GradientStatsReport& report) {
        report.stats.total_norm *= 1.0 + 0.5 * static_cast<double>(c.entries.size());
    });
}

void first_entry(const Case& c, Outcome& outcome) {
    with_reports(outcome, [&](GradientStatsReport& report) {
        if (c.entries.empty() || c.entries[0].gradients.values.size() % 8 != 0) report.stats.total_norm *= 1.001;
    });
}

void neighbours(const Case& c, Outcome& outcome) {
    with_reports(outcome, [&](GradientStatsReport& report) {
        if (c.entries.size() > 1) report.summaries[0].sumsq = up(report.summaries[0].sumsq);
    });
}

void schedule(const Case& c, Outcome& outcome) {
    with_reports(outcome, [&](GradientStatsReport& report) {
        if (c.schedule_seed % 4 == 0) report.stats.total_norm = std::nextafter(report.stats.total_norm, 0.0);
    });
}

void loss_scale(const Case& c, Outcome& outcome) {
    if ((reference::bits_of(c.control.gradient_scale) >> 23U) % 2 == 0) return;
    with_entries(outcome, [](harness::OutcomeEntry& entry) {
        if (entry.state && entry.updated) {
            for (float& m : entry.state->first_moment) m = up(m);
        }
    });
}

void dtype(const Case& c, Outcome& outcome) {
    if (c.entries.empty() || c.entries[0].gradients.layout.dtype == DType::kF32) return;
    with_reports(outcome, [](GradientStatsReport& report) { report.scratch_bytes += 4; });
}

void direction(const Case& c, Outcome& outcome) {
    if (!c.options.maximize) return;
    with_entries(outcome, [](harness::OutcomeEntry& entry) {
        if (entry.state && entry.updated) {
            for (float& v : entry.state->second_moment) v = up(v);
        }
    });
}

void clip(const Case&, Outcome& outcome) {
    for (StepOutcome& step : outcome.steps) {
        if (step.report && step.clip_multiplier < 1.0F) step.clip_multiplier = up(step.clip_multiplier);
    }
}

void guard(const Case& c, Outcome& outcome) {
    if (c.operation != Operation::kGuardedStep) return;
    with_entries(outcome, [](harness::OutcomeEntry& entry) {
        if (entry.updated) ++entry.state->step;
    });
}

void decay_when_skipping(const Case&, Outcome& outcome) {
    for (StepOutcome& step : outcome.steps) {
        if (!step.skip_reason) continue;
        for (auto& entry : step.entries) {
            for (float& p : entry.parameters) p = up(p);
        }
    }
}

void step_when_skipping(const Case& c, Outcome& outcome) {
    if (c.later.size() < 2 || outcome.steps.size() < 3) return;
    for (auto& entry : outcome.steps[2].entries) {
        if (entry.state) ++entry.state->step;
    }
}

void accepts_anything(const Case&, Outcome& outcome) {
    for (StepOutcome& step : outcome.steps) step.error.reset();
}

void wrong_kind(const Case&, Outcome& outcome) {
    for (StepOutcome& step : outcome.steps) {
        if (step.error) step.error->kind = ErrorKind::kDeviceFailure;
    }
}

void late(const Case&, Outcome& outcome) {
    for (StepOutcome& step : outcome.steps) {
        if (step.error) step.device_calls = 1;
    }
}

class Relations : public ::testing::TestWithParam<Breach> {};

TEST_P(Relations, ABreachIsFound) {
    const TemporaryFolder folder;
    harness::CampaignOptions options;
    options.cases = 400;
    options.subjects = {"fake"};
    options.properties = {harness::find_property(GetParam().property)};
    ASSERT_NE(options.properties[0], nullptr);
    options.factory = fake_factory(GetParam().change);
    options.failure_folder = folder.path("cases");
    const harness::CampaignResult result = run_campaign(options);
    ASSERT_EQ(result.failures.size(), 1) << "not found in 400 cases";
    EXPECT_FALSE(result.failures[0].failures.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Each, Relations,
    ::testing::Values(Breach{"values_times_power", magnitude}, Breach{"signs_flipped", signs},
                      Breach{"zeros_appended", element_count}, Breach{"tensor_split", entry_count},
                      Breach{"entries_permuted", first_entry}, Breach{"neighbours_gone", neighbours},
                      Breach{"scan_repeated", schedule}, Breach{"stored_and_scale", loss_scale},
                      Breach{"half_as_f32", dtype}, Breach{"negated_and_maximized", direction},
                      Breach{"maximize_mirrors", direction}, Breach{"clip_from_norm", clip},
                      Breach{"unclipped_is_unguarded", guard}, Breach{"skip_changes_nothing", decay_when_skipping},
                      Breach{"good_skip_good", step_when_skipping}, Breach{"invalid_guarded_step", accepts_anything},
                      Breach{"invalid_unguarded_step", wrong_kind}, Breach{"invalid_statistics", late}),
    [](const auto& breach) { return std::string(breach.param.property); });

TEST(Relations, BuildsThatDifferAreFound) {
    const TemporaryFolder folder;
    harness::CampaignOptions options;
    options.cases = 50;
    options.subjects = {"vgpu/fmad"};
    options.properties = {harness::find_property("builds_agree")};
    options.factory = [](std::string_view name) {
        const auto change = [](const Case&, Outcome& outcome) {
            with_reports(outcome, [](GradientStatsReport& report) { report.stats.max_finite_abs += 1; });
        };
        return std::make_unique<FakeSubject>(std::string(name),
                                             name == "vgpu/fmad" ? FakeSubject::Change(change) : nullptr);
    };
    options.failure_folder = folder.path("cases");
    EXPECT_EQ(run_campaign(options).failures.size(), 1);
}

}  // namespace
}  // namespace gradguard::testing
