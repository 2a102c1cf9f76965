// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/outcome.h"
#include "harness/vgpu/random.h"

/// Cases by hand, and outcomes as text.
namespace gradguard::testing {

using harness::Case;
using harness::CaseEntry;
using harness::CaseState;
using harness::CaseTensor;

/// [n] of dtype, dense, `words` in order; storage as large as the tensor.
template <class Word>
CaseTensor tensor_of_words(DType dtype, const std::vector<Word>& words) {
    CaseTensor tensor;
    tensor.layout = {dtype, {words.size()}, {1}, 0};
    tensor.storage_bytes = words.size() * sizeof(Word);
    tensor.values.resize(tensor.storage_bytes);
    if (!words.empty()) std::memcpy(tensor.values.data(), words.data(), tensor.storage_bytes);
    return tensor;
}

inline CaseTensor tensor(const std::vector<float>& values) { return tensor_of_words(DType::kF32, values); }

/// The upper half of each number: BF16, rounded towards zero.
inline CaseTensor bf16_tensor(const std::vector<float>& values) {
    std::vector<std::uint16_t> words;
    for (const float value : values)
        words.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U));
    return tensor_of_words(DType::kBF16, words);
}

/// Ordinary numbers in (-range, range), or in [0, range).
inline std::vector<float> numbers(std::size_t count, vgpu::Random& random, float range, bool positive = false) {
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) {
        const float unit = static_cast<float>(random.next() >> 40U) * 0x1p-24F;
        values.push_back((positive ? unit : 2.0F * unit - 1.0F) * range);
    }
    return values;
}

inline CaseState state(std::size_t count, vgpu::Random& random, std::uint64_t step, bool amsgrad) {
    CaseState state;
    state.step = step;
    state.first_moment = tensor(numbers(count, random, 0.1F));
    state.second_moment = tensor(numbers(count, random, 0.01F, true));
    if (amsgrad) state.max_second_moment = tensor(numbers(count, random, 0.02F, true));
    return state;
}

/// One entry of `count` ordinary elements with F32 gradients.
inline CaseEntry entry(std::size_t count, vgpu::Random& random) {
    CaseEntry entry;
    entry.parameters = tensor(numbers(count, random, 1.0F));
    entry.gradients = tensor(numbers(count, random, 0.5F));
    return entry;
}

inline CaseEntry entry_with_state(std::size_t count, vgpu::Random& random, std::uint64_t step, bool amsgrad = false) {
    CaseEntry with_state = entry(count, random);
    with_state.state = state(count, random, step, amsgrad);
    return with_state;
}

/// Builds text piece by piece (g++ 12 warns of its own operator+ for a literal and a string).
class Text {
  public:
    Text& operator<<(std::string_view piece) {
        text_ += piece;
        return *this;
    }
    Text& operator<<(std::uint64_t number) { return *this << std::string_view(std::to_string(number)); }
    /// The bits; any NaN is "nan", as its payload and sign are not promised.
    Text& operator<<(float value) {
        if (std::isnan(value)) return *this << "nan ";
        return *this << std::uint64_t{std::bit_cast<std::uint32_t>(value)} << " ";
    }
    Text& operator<<(const std::vector<float>& values) {
        for (const float value : values) *this << value;
        return *this << "; ";
    }
    const std::string& str() const { return text_; }

  private:
    std::string text_;
};

inline void add(Text& text, const GradientStatsReport& report) {
    text << "norm " << std::bit_cast<std::uint64_t>(report.stats.total_norm) << " max " << report.stats.max_finite_abs
         << (report.stats.all_finite ? "good" : "bad");
    for (const std::uint64_t count : {report.stats.elements, report.stats.tensors, report.reduction_launches,
                                      report.readback_bytes, report.scratch_bytes}) {
        text << " " << count;
    }
    for (const GradientSummary& s : report.summaries) text << " summary " << s.scale << s.sumsq << s.bad;
    text << "\n";
}

inline void add(Text& text, const reference::UpdateCoefficients& c) {
    text << " with " << c.r << c.clip << c.beta1 << c.one_minus_beta1 << c.beta2 << c.one_minus_beta2 << c.inverse_bias1
         << c.inverse_bias2 << c.epsilon << c.learning_rate << c.decay << (c.maximize ? "maximize " : "")
         << (c.amsgrad ? "amsgrad " : "");
}

inline void add(Text& text, const harness::OutcomeEntry& entry) {
    text << (entry.updated ? "\nupdated " : "\nunchanged ") << entry.parameters;
    if (entry.state) {
        text << "step " << entry.state->step << " " << entry.state->first_moment << entry.state->second_moment;
        if (entry.state->max_second_moment) text << *entry.state->max_second_moment;
    }
    if (entry.coefficients) add(text, *entry.coefficients);
}

/// What a step must have in common with the oracle's: all but device calls, findings and the words of an error.
inline void add_results(Text& text, const harness::StepOutcome& step) {
    if (step.error) {
        text << "error " << to_string(step.error->kind) << " " << step.error->operand;
        if (step.error->entry) text << " of " << std::uint64_t{*step.error->entry};
        return;
    }
    if (step.report) add(text, *step.report);
    text << "clip " << step.clip_multiplier;
    if (step.skip_reason) text << "skip " << to_string(*step.skip_reason);
    for (const harness::OutcomeEntry& entry : step.entries) add(text, entry);
}

inline std::string results_text(const harness::Outcome& outcome) {
    Text text;
    for (const harness::StepOutcome& step : outcome.steps) {
        add_results(text, step);
        text << "\n";
    }
    return text.str();
}

/// Everything.
inline std::string full_text(const harness::Outcome& outcome) {
    Text text;
    for (const harness::StepOutcome& step : outcome.steps) {
        add_results(text, step);
        if (step.error) text << step.error->message;
        text << "\ncalls " << step.device_calls.value_or(0) << " updates " << step.update_launches.value_or(0) << "\n";
        for (const std::string& line : step.inputs_changed) text << line << "\n";
        for (const std::string& line : step.findings) text << line << "\n";
    }
    return text.str();
}

}  // namespace gradguard::testing
