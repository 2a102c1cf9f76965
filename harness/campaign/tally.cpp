// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/tally.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <tuple>

namespace gradguard::harness {
namespace {

/// FNV-1a over words, mixed at the end of each: fast enough for every case.
class Hash {
  public:
    void word(std::uint64_t x) {
        state_ ^= x;
        state_ *= 0x9E3779B97F4A7C15U;
        state_ ^= state_ >> 29U;
    }
    void number(float x) { word(std::bit_cast<std::uint32_t>(x)); }
    void number(double x) { word(std::bit_cast<std::uint64_t>(x)); }
    void bytes(std::span<const std::byte> bytes) {
        word(bytes.size());
        for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
            std::uint64_t piece = 0;
            std::memcpy(&piece, bytes.data() + i, std::min(sizeof piece, bytes.size() - i));
            word(piece);
        }
    }
    void tensor(const CaseTensor& tensor) {
        word(static_cast<std::uint64_t>(tensor.layout.dtype));
        word(tensor.layout.shape.size());
        for (const std::uint64_t size : tensor.layout.shape) word(size);
        for (const std::int64_t stride : tensor.layout.strides) word(static_cast<std::uint64_t>(stride));
        word(tensor.layout.byte_offset);
        word(tensor.storage_bytes);
        word(tensor.queue);
        bytes(tensor.values);
    }
    void control(const StepControl& control) {
        number(control.gradient_scale);
        word(control.skip_update ? 1 : 0);
    }
    std::uint64_t value() const { return state_; }

  private:
    std::uint64_t state_ = 0xCBF29CE484222325U;
};

/// The bin of x among those of width 1/parts octave; zero, and what is smaller than 2^-64, has one of its own.
int octave_bin(double x, int parts) {
    constexpr int kLeast = -64, kGreatest = 200;
    if (!(x > 0.0)) return kLeast * parts;
    const double octave = std::isinf(x) ? kGreatest : std::log2(x);
    return static_cast<int>(std::floor(std::clamp<double>(octave, kLeast, kGreatest) * parts));
}

std::uint64_t elements_of(const Case& c) {
    std::uint64_t elements = 0;
    for (const CaseEntry& entry : c.entries) {
        elements += entry.gradients.values.size() / element_bytes(entry.gradients.layout.dtype);
    }
    return elements;
}

}  // namespace

void Record::take(const Record& other) {
    if (!other.seen) return;
    const bool better = !seen || other.value > value ||
                        (other.value == value && std::tie(other.number, other.step, other.entry, other.index) <
                                                     std::tie(number, step, entry, index));
    if (better) *this = other;
}

void QuantityTally::merge(const QuantityTally& other) {
    ulp.take(other.ulp);
    infinite += other.infinite;
    fraction.take(other.fraction);
    for (std::size_t i = 0; i < fractions.size(); ++i) fractions[i] += other.fractions[i];
    for (const auto& [bins, count] : other.errors) errors[bins] += count;
}

void Tally::add(std::uint64_t number, const Case& c, const PropertyVerdict& verdict) {
    ++cases;
    if (!verdict.applicable) ++not_applicable;
    add_coverage(coverage, c);
    Hash hash;
    hash.word(number);
    hash.word(hash_of(c));
    hash.word((verdict.applicable ? 1U : 0U) | (verdict.verdict.ok() ? 2U : 0U));
    const std::uint64_t elements = elements_of(c);
    for (std::size_t q = 0; q < quantities.size(); ++q) {
        const Worst& worst = verdict.verdict.worst[q];
        hash.number(worst.ulp);
        hash.number(worst.fraction);
        if (worst.ulp == 0.0 && worst.fraction == 0.0) continue;
        QuantityTally& tally = quantities[q];
        const Record place{worst.ulp, number, worst.step, worst.entry, worst.index, elements, true};
        if (std::isinf(worst.ulp)) {
            ++tally.infinite;
        } else {
            tally.ulp.take(place);
        }
        if (elements != 0) ++tally.errors[{octave_bin(static_cast<double>(elements), 4), octave_bin(worst.ulp, 2)}];
        if (worst.fraction <= 0.0) continue;
        Record fraction = place;
        fraction.value = worst.fraction;
        tally.fraction.take(fraction);
        const double bin = std::min(worst.fraction, 1.0) * kFractionBins;
        ++tally.fractions[std::min<std::size_t>(static_cast<std::size_t>(bin), kFractionBins - 1)];
    }
    digest += hash.value();
}

void Tally::merge(const Tally& other) {
    cases += other.cases;
    not_applicable += other.not_applicable;
    for (const auto& [name, count] : other.coverage) coverage[name] += count;
    for (std::size_t q = 0; q < quantities.size(); ++q) quantities[q].merge(other.quantities[q]);
    digest += other.digest;
}

double Tally::worst_ulp() const {
    double worst = 0.0;
    for (const QuantityTally& quantity : quantities) worst = std::max(worst, quantity.ulp.value);
    return worst;
}

double Tally::worst_fraction() const {
    double worst = 0.0;
    for (const QuantityTally& quantity : quantities) worst = std::max(worst, quantity.fraction.value);
    return worst;
}

std::uint64_t hash_of(const Case& c) {
    Hash hash;
    hash.word(static_cast<std::uint64_t>(c.operation));
    for (const float x : {c.options.learning_rate, c.options.beta1, c.options.beta2, c.options.epsilon,
                          c.options.weight_decay, c.guard.epsilon, c.guard.max_norm.value_or(-1.0F)}) {
        hash.number(x);
    }
    hash.word((c.options.amsgrad ? 1U : 0U) | (c.options.maximize ? 2U : 0U) | (c.guard.max_norm ? 4U : 0U) |
              (c.guard.nonfinite == NonFinitePolicy::kError ? 8U : 0U));
    hash.control(c.control);
    hash.word(c.schedule_seed);
    for (const CaseEntry& entry : c.entries) {
        hash.tensor(entry.parameters);
        hash.tensor(entry.gradients);
        hash.word(entry.state ? entry.state->step : 0);
        if (!entry.state) continue;
        hash.tensor(entry.state->first_moment);
        hash.tensor(entry.state->second_moment);
        if (entry.state->max_second_moment) hash.tensor(*entry.state->max_second_moment);
    }
    for (const LaterStep& later : c.later) {
        hash.control(later.control);
        for (const std::vector<std::byte>& values : later.gradients) hash.bytes(values);
    }
    return hash.value();
}

}  // namespace gradguard::harness
