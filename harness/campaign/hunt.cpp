// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/hunt.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/campaign/hunt_element.h"
#include "harness/campaign/hunt_norm.h"
#include "harness/compare/enclosure.h"
#include "harness/compare/measure.h"
#include "harness/compare/norm_bound.h"
#include "harness/compare/report.h"
#include "harness/compare/ulp.h"
#include "reference/model/statistics.h"

namespace gradguard::harness {
namespace {

/// An objective and how it is climbed.
struct Row {
    HuntObjective objective;
    std::uint64_t elements = 1;  ///< Of a norm.
    ElementGoal goal = ElementGoal::kFillM;
};

Row norm_row(std::uint64_t elements, const char* name, const char* description) {
    Row row;
    row.objective = {name, description, "vgpu/fmad", Quantity::kNorm, true};
    row.elements = elements;
    return row;
}

std::vector<Row> make_rows() {
    std::vector<Row> rows{
        norm_row(256, "norm", "error of total_norm against the bound along the tree, 256 elements in one block"),
        norm_row(4096, "norm/4096", "the same for 4096 elements in four blocks")};
    const struct {
        const char* name;
        const char* description;
        Quantity quantity;
        bool fills_bound;
        ElementGoal goal;
    } goals[] = {
        {"m", "error of m against the interval", Quantity::kFirstMoment, true, ElementGoal::kFillM},
        {"v", "error of v against the interval", Quantity::kSecondMoment, true, ElementGoal::kFillV},
        {"p", "error of p against the interval", Quantity::kParameters, true, ElementGoal::kFillP},
        {"v/overflow", "(1 - beta2) * (g * g) at the edge of overflow", Quantity::kSecondMoment, false,
         ElementGoal::kOverflowV},
        {"p/overflow", "learning_rate * ratio just beyond the edge of overflow, the exact difference being finite",
         Quantity::kParameters, false, ElementGoal::kOverflowP},
        {"v/underflow", "g * g at the edge of underflow to zero", Quantity::kSecondMoment, false,
         ElementGoal::kUnderflow},
    };
    for (const auto& goal : goals) {
        for (const char* build : {"fmad", "nofmad"}) {
            Row row;
            row.objective = {fmt::format("{}/{}", goal.name, build), goal.description, fmt::format("vgpu/{}", build),
                             goal.quantity, goal.fills_bound};
            row.goal = goal.goal;
            rows.push_back(std::move(row));
        }
    }
    return rows;
}

const std::vector<Row>& rows() {
    static const std::vector<Row> all = make_rows();
    return all;
}

CaseTensor tensor_of(std::span<const float> values) {
    CaseTensor tensor;
    tensor.layout = {DType::kF32, {values.size()}, {1}, 0};
    tensor.storage_bytes = values.size_bytes();
    tensor.values.resize(values.size_bytes());
    if (!values.empty()) std::memcpy(tensor.values.data(), values.data(), values.size_bytes());
    return tensor;
}

Case case_of(const NormFind& find) {
    Case c;
    c.operation = Operation::kStatistics;
    c.entries.push_back({tensor_of(std::vector<float>(find.values.size())), tensor_of(find.values), std::nullopt});
    return c;
}

/// Elements of one entry that share their options and step.
Case case_of(const HuntedElement& like, std::span<const HuntedElement> elements, const Abilities& abilities) {
    const auto all = [&](auto part) {
        std::vector<float> values;
        for (const HuntedElement& element : elements) values.push_back(part(element));
        return tensor_of(values);
    };
    Case c;
    c.operation = abilities.unguarded ? Operation::kUnguardedStep : Operation::kGuardedStep;
    c.guard.max_norm.reset();
    c.options = like.options;
    c.control.gradient_scale = like.gradient_scale;
    CaseEntry entry{all([](auto& e) { return e.old.p; }), all([](auto& e) { return e.raw; }), CaseState{}};
    entry.state->step = like.step;
    entry.state->first_moment = all([](auto& e) { return e.old.m; });
    entry.state->second_moment = all([](auto& e) { return e.old.v; });
    c.entries.push_back(std::move(entry));
    return c;
}

reference::ElementState<float> stored_at(const OutcomeEntry& entry, std::size_t i) {
    return {entry.parameters.at(i), entry.state->first_moment.at(i), entry.state->second_moment.at(i), 0.0F};
}

/// The one entry of a step that has to have come out.
const OutcomeEntry& entry_of(const Outcome& outcome, const Subject& subject) {
    if (!outcome.steps.empty() && !outcome.steps[0].error && outcome.steps[0].entries.size() == 1 &&
        outcome.steps[0].entries[0].state) {
        return outcome.steps[0].entries[0];
    }
    throw std::runtime_error(subject.name() + " did not step a valid case");
}

/// Which products a subject's build fuses, by its results: for each line the choice that agrees most often.
FusedProducts fused_by(Subject& subject, Random& random) {
    if (subject.abilities().contraction == Contraction::kForbidden) return {};
    constexpr std::size_t kElements = 256;
    HuntedElement like;
    like.options.beta1 = 0.7F;
    like.options.beta2 = 0.8F;
    like.options.learning_rate = 0.3F;
    std::vector<HuntedElement> elements(kElements, like);
    const auto value = [&] { return 1.0F + static_cast<float>(random.below(1U << 23U)) * 0x1p-23F; };
    for (auto& element : elements) {
        element.raw = value();
        element.old = {value(), value(), value(), 0.0F};
    }
    const Outcome outcome = subject.step(case_of(like, elements, subject.abilities()));
    const OutcomeEntry& entry = entry_of(outcome, subject);
    std::array<std::array<int, 3>, 3> agreed{};
    for (std::size_t i = 0; i < kElements; ++i) {
        const auto stored = stored_at(entry, i);
        const ElementLegalSets sets = legal_sets(elements[i].raw, elements[i].old, stored, like.coefficients());
        for (std::size_t k = 0; k < 3; ++k) {
            agreed[0][k] += stored.m == sets.m.values[k] ? 1 : 0;
            agreed[1][k] += stored.v == sets.v.values[k] ? 1 : 0;
            agreed[2][k] += stored.p == sets.p.values[k] ? 1 : 0;
        }
    }
    const auto most = [&](std::size_t line) {
        return static_cast<int>(std::max_element(agreed[line].begin(), agreed[line].end()) - agreed[line].begin());
    };
    return {most(0), most(1), most(2)};
}

void measure_norm(Find& find, const Outcome& outcome, const Abilities& abilities) {
    const CaseTensor& gradients = find.worst_case.entries[0].gradients;
    const reference::GradientView view{DType::kF32, gradients.values.data(), gradients.values.size() / sizeof(float)};
    const double exact = reference::exact_norm({&view, 1}, 1.0F);
    const std::array<TreeBound, 1> bounds{tree_bound(view, 1.0F, abilities.block_limit)};
    if (outcome.steps.empty() || !outcome.steps[0].report) return;
    find.error = std::fabs(outcome.steps[0].report->stats.total_norm - exact);
    find.bound = norm_error_bound(bounds);
    find.fraction = find.error > 0.0 ? find.error / find.bound : 0.0;
    find.ulp = find.error / ulp_of(exact);
    find.place = fmt::format("{} elements, exact norm {}", view.elements, double_text(exact));
}

/// What is driven to an end of the range, as the find has it.
std::string place_of(ElementGoal goal, const HuntedElement& e, const Centre& centre) {
    const auto c = reference::line_coefficients<double>(e.coefficients());
    const double g = e.raw * c.r;
    switch (goal) {
        case ElementGoal::kOverflowV:
            return "(1 - beta2) * (g * g) = " + double_text(c.one_minus_beta2 * (g * g));
        case ElementGoal::kOverflowP:
            return "learning_rate * ratio = " + double_text(e.old.p * c.decay - centre.exact.p);
        case ElementGoal::kUnderflow:
            return "g * g = " + double_text(g * g);
        default:
            break;
    }
    return "exact " + double_text(goal == ElementGoal::kFillM   ? centre.exact.m
                                  : goal == ElementGoal::kFillV ? centre.exact.v
                                                                : centre.exact.p);
}

void measure_element(Find& find, const Row& row, const HuntedElement& e, const Outcome& outcome,
                     const Subject& subject) {
    const auto stored = stored_at(entry_of(outcome, subject), 0);
    const auto c = e.coefficients();
    // The find is confirmed at 256 bits, not by the numbers that it was climbed with.
    const reference::ElementState<reference::Real> exact = reference::exact_update(e.raw, e.old, c);
    const ElementIntervals all = intervals(e.raw, e.old, c, subject.abilities());
    const auto measure = [&](float got, const reference::Real& want, const Interval& interval) {
        const double centre = reference::to_double(want);
        find.error = std::fabs(static_cast<double>(got) - centre);
        find.bound = std::fabs((static_cast<double>(got) < centre ? interval.lo : interval.hi) - centre);
        find.fraction = within(got, interval, centre).fraction;
        find.ulp = ulp_error(got, want);
    };
    if (row.objective.quantity == Quantity::kFirstMoment) measure(stored.m, exact.m, all.m);
    if (row.objective.quantity == Quantity::kSecondMoment) measure(stored.v, exact.v, all.v);
    if (row.objective.quantity == Quantity::kParameters) measure(stored.p, exact.p, all.p);
    const Centre centre = centre_of(e.raw, e.old, reference::line_coefficients<double>(c));
    find.place = place_of(row.goal, e, centre);
}

}  // namespace

const std::vector<HuntObjective>& hunt_objectives() {
    static const std::vector<HuntObjective> all = [] {
        std::vector<HuntObjective> objectives;
        for (const Row& row : rows()) objectives.push_back(row.objective);
        return objectives;
    }();
    return all;
}

Find hunt(std::string_view objective, const HuntOptions& options) {
    const auto row =
        std::find_if(rows().begin(), rows().end(), [&](const Row& one) { return one.objective.name == objective; });
    if (row == rows().end()) {
        std::string known;
        for (const Row& one : rows()) known += (known.empty() ? "" : ", ") + one.objective.name;
        throw std::invalid_argument(fmt::format("no objective {}: want one of {}", objective, known));
    }
    const std::string name = subject_compiled_by(row->objective.subject, options.compiler);
    const auto subject = make_subject(name, options.subject);
    const Abilities& abilities = subject->abilities();
    Random random(mix(options.seed) ^ hash_of(objective));
    Find find;
    find.objective = row->objective;
    find.objective.subject = name;
    HuntedElement element;
    if (row->objective.quantity == Quantity::kNorm) {
        ClimbBudget budget(options.seconds, options.evaluations);
        const NormFind climbed = climb_norm(row->elements, random, budget);
        find.worst_case = case_of(climbed);
        find.climbed = climbed.fraction;
        find.evaluations = budget.used();
    } else {
        const FusedProducts fused = fused_by(*subject, random);
        ClimbBudget budget(options.seconds, options.evaluations);
        const ElementFind climbed = climb_element(row->goal, fused, random, budget);
        element = climbed.element;
        find.worst_case = case_of(element, {&element, 1}, abilities);
        find.climbed = climbed.score;
        find.evaluations = budget.used();
    }
    find.worst_case.subject = name;
    const Outcome outcome = subject->step(find.worst_case);
    find.verdict = judge_case(find.worst_case, outcome, abilities);
    if (row->objective.quantity == Quantity::kNorm) {
        measure_norm(find, outcome, abilities);
    } else {
        measure_element(find, *row, element, outcome, *subject);
    }
    return find;
}

}  // namespace gradguard::harness
