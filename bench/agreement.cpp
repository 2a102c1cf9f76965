// SPDX-License-Identifier: Apache-2.0
#include "bench/agreement.h"

#include <array>
#include <optional>
#include <vector>

#include "harness/compare/interval.h"
#include "harness/compare/report.h"
#include "harness/compare/update_bound.h"
#include "reference/exact/float_bits.h"
#include "reference/model/gradient_view.h"
#include "reference/model/update.h"

namespace gradguard::bench {
namespace {

using harness::Interval;
using harness::Operand;

/// An entry's values on the host, by Operand; the last one empty without AMSGrad.
struct HostEntry {
    explicit HostEntry(const AdamWEntry& entry) {
        values[0] = downloaded_floats(entry.parameters);
        values[1] = downloaded_floats(entry.state.value().first_moment);
        values[2] = downloaded_floats(entry.state->second_moment);
        if (entry.state->max_second_moment) values[3] = downloaded_floats(*entry.state->max_second_moment);
    }
    std::array<std::vector<float>, harness::kOperands> values;
};

/// The contract's lines from one element of the start, over all steps, with either product fused.
class Enclosures {
  public:
    Enclosures(const AdamWEntry& start, std::span<const reference::UpdateCoefficients> steps)
        : start_(start), dtype_(start.gradients.layout.dtype), gradients_(downloaded(start.gradients)), steps_(steps) {}

    std::array<Interval, harness::kOperands> of(std::uint64_t i) const {
        using Number = harness::RoundedInterval<1, false>;
        const auto old = [&](std::size_t operand) {
            const std::vector<float>& values = start_.values[operand];
            return values.empty() ? Number() : Number(values[i]);
        };
        const float raw = reference::raw_value({dtype_, gradients_.data(), start_.values[0].size()}, i);
        reference::ElementState<Number> state{old(0), old(1), old(2), old(3)};
        for (const reference::UpdateCoefficients& step : steps_) {
            state = reference::Lines<harness::EitherFused>::update(Number(raw), state,
                                                                   reference::line_coefficients<Number>(step));
        }
        return {state.p.interval(), state.m.interval(), state.v.interval(), state.x.interval()};
    }

  private:
    HostEntry start_;
    DType dtype_;
    std::vector<std::byte> gradients_;
    std::span<const reference::UpdateCoefficients> steps_;
};

/// One element of one operand, for messages.
struct Place {
    std::size_t entry;
    std::size_t operand;
    std::uint64_t index;

    std::string text() const {
        return "entry " + std::to_string(entry) + ", " + std::string(to_string(static_cast<Operand>(operand))) + "[" +
               std::to_string(index) + "]";
    }
};

void require_within(float value, const Interval& interval, const Place& place, const std::string& path) {
    if (harness::within(value, interval, (interval.lo + interval.hi) / 2).ok) return;
    throw BenchFailure("the " + path + " path is outside of the enclosure at " + place.text() + ": got " +
                       harness::float_text(value) + ", want " + harness::interval_text(interval));
}

}  // namespace

Agreement AgreementCheck::compare(const Entries& one, const std::string& one_name, const Entries& other,
                                  const std::string& other_name) const {
    Agreement agreement;
    for (std::size_t entry = 0; entry < start_.size(); ++entry) {
        if (one[entry].state.value().step != other[entry].state.value().step) {
            throw BenchFailure("entry " + std::to_string(entry) + ": after the same steps the " + one_name +
                               " path is at step " + std::to_string(one[entry].state->step) + ", the " + other_name +
                               " path at step " + std::to_string(other[entry].state->step));
        }
        const HostEntry a(one[entry]);
        const HostEntry b(other[entry]);
        std::optional<Enclosures> enclosures;
        for (std::size_t operand = 0; operand < a.values.size(); ++operand) {
            if (a.values[operand].size() != b.values[operand].size()) {
                throw BenchFailure("entry " + std::to_string(entry) + ": the paths' results have other sizes");
            }
            for (std::uint64_t i = 0; i < a.values[operand].size(); ++i) {
                const float got = b.values[operand][i];
                const float want = a.values[operand][i];
                ++agreement.values;
                if (reference::same_float(got, want)) continue;
                const Place place{entry, operand, i};
                if (!contracted_) {
                    throw BenchFailure("the paths differ at " + place.text() + ": " + one_name + " " +
                                       harness::float_text(want) + ", " + other_name + " " + harness::float_text(got));
                }
                if (!enclosures) enclosures.emplace(start_[entry], steps_);
                const Interval interval = enclosures->of(i)[operand];
                require_within(want, interval, place, one_name);
                require_within(got, interval, place, other_name);
                ++agreement.enclosed;
            }
        }
    }
    return agreement;
}

}  // namespace gradguard::bench
