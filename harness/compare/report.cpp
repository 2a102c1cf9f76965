// SPDX-License-Identifier: Apache-2.0
#include "harness/compare/report.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "reference/exact/float_bits.h"

namespace gradguard::harness {
namespace {

std::string formatted(const char* format, auto... values) {
    char text[128];
    std::snprintf(text, sizeof text, format, values...);
    return text;
}

std::string state_text(const reference::ElementState<float>& state, bool amsgrad) {
    std::string text = "p ";
    text += float_text(state.p) + ", m " + float_text(state.m) + ", v " + float_text(state.v);
    if (amsgrad) text += ", maximum " + float_text(state.x);
    return text;
}

float value_or_zero(std::span<const float> values, std::uint64_t i) { return values.empty() ? 0.0F : values[i]; }

}  // namespace

std::string float_text(float x) {
    return formatted("%a = %.9g (0x%08X)", static_cast<double>(x), static_cast<double>(x), reference::bits_of(x));
}

std::string double_text(double x) {
    return formatted("%a = %.17g (0x%016llX)", x, x, static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(x)));
}

std::string interval_text(const Interval& interval) {
    if (interval.holds_no_number()) return interval.may_be_nan ? "NaN" : "nothing";
    return "from " + formatted("%a = %.9g", interval.lo, interval.lo) + " to " +
           formatted("%a = %.9g", interval.hi, interval.hi) + (interval.may_be_nan ? ", or NaN" : "");
}

std::vector<std::string> distinct_texts(std::span<const float> values) {
    std::vector<std::string> texts;
    for (const float value : values) {
        std::string text = float_text(value);
        if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
    }
    return texts;
}

std::string describe(const Failure& failure) {
    std::string text = "FAILED: ";
    text.append(failure.fact).append("\n");
    const auto line = [&](const char* name, const std::string& value) {
        text.append(formatted("  %-9s", name)).append(value).append("\n");
    };
    if (failure.entry || !failure.entry_name.empty()) {
        std::string entry = failure.entry ? std::to_string(*failure.entry) : "";
        if (!failure.entry_name.empty()) {
            if (!entry.empty()) entry += ' ';
            entry += '"' + failure.entry_name + '"';
        }
        line("entry", entry);
    }
    if (!failure.operand.empty()) line("operand", failure.operand);
    if (failure.index) line("index", std::to_string(*failure.index));
    if (failure.step != 0) line("step", std::to_string(failure.step) + " of the case, counted from 0");
    line("got", failure.got);
    for (std::size_t i = 0; i < failure.want.size(); ++i) line(i == 0 ? "want" : "or", failure.want[i]);
    if (failure.ulp) line("error", formatted("%.6g ulp of the exact result", *failure.ulp));
    for (const auto& note : failure.notes) text.append("  ").append(note).append("\n");
    return text;
}

Failure failure_of(const Mismatch& mismatch) {
    Failure failure;
    failure.fact = "the statistics and what follows from them have one legal value";
    failure.entry = mismatch.entry;
    failure.operand = mismatch.what;
    failure.got = mismatch.got;
    failure.want = {mismatch.want};
    return failure;
}

Failure failure_of(const Offender& offender, const UpdateOperands& operands, const reference::UpdateCoefficients& c) {
    Failure failure;
    failure.fact = offender.enclosure ? "the update lies in the interval that was computed for its inputs"
                                      : "the update lies in the legal set of contractions";
    failure.operand = to_string(offender.operand);
    failure.index = offender.index;
    failure.got = float_text(offender.got);
    if (offender.want) failure.want = distinct_texts(offender.want->values);
    if (offender.enclosure) failure.want = {interval_text(*offender.enclosure)};
    failure.ulp = offender.ulp;
    const std::uint64_t i = offender.index;
    const float raw = reference::raw_value(operands.gradients, i);
    const reference::ElementState<float> old{operands.old_parameters[i], value_or_zero(operands.old_first_moment, i),
                                             value_or_zero(operands.old_second_moment, i),
                                             value_or_zero(operands.old_max_second_moment, i)};
    const reference::ElementState<float> stored{operands.parameters[i], operands.first_moment[i],
                                                operands.second_moment[i],
                                                value_or_zero(operands.max_second_moment, i)};
    const float g = reference::Lines<>::effective_gradient(raw, reference::line_coefficients<float>(c));
    failure.notes = {"exact    " + double_text(offender.exact),
                     "gradient " + float_text(raw) + " stored as " + std::string(to_string(operands.gradients.dtype)),
                     "g        " + float_text(g) + " after r " + float_text(c.r) + " and clip " + float_text(c.clip),
                     "before   " + state_text(old, c.amsgrad), "after    " + state_text(stored, c.amsgrad)};
    return failure;
}

}  // namespace gradguard::harness
