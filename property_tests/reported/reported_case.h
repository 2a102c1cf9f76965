// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/outcome.h"
#include "reference/contract/error.h"
#include "tests/support/values.h"

/// What the tests of property_tests/reported share: a row's input as a case, taken through the library and the oracle.
namespace gradguard::testing {

using Check = std::function<void(const harness::Outcome&)>;

/// Takes the case, a valid one, through both builds of the kernels on the virtual GPU, under every observer, and
/// through the oracle; holds each outcome against the oracle as judge_case() does, findings included; then lets `check`
/// look at it.
void on_every_subject(const harness::Case& c, const Check& check);

/// A dense tensor of rank 1 with the gradient's values.
harness::CaseTensor tensor_of(const Gradient& gradient);
/// [n] ones in F32.
harness::CaseTensor ones(std::uint64_t n);

/// First update of an entry.
harness::CaseEntry entry_of(const std::vector<float>& parameters, const Gradient& gradient);
/// The same with as many parameters as the gradient has elements, each 1.
harness::CaseEntry entry_of(const Gradient& gradient);
/// The same after `step` updates that left these moments.
harness::CaseEntry entry_of(const std::vector<float>& parameters, const Gradient& gradient, std::uint64_t step,
                            const std::vector<float>& first_moment, const std::vector<float>& second_moment);

/// A guarded step of these entries with the defaults of the contract.
harness::Case guarded(std::vector<harness::CaseEntry> entries);
/// A guarded step in which the first moment is the effective gradient: parameters 1, no state, beta1 = 0.
harness::Case shows_gradients(const std::vector<Gradient>& gradients, std::optional<float> max_norm = 1.0F,
                              float scale = 1.0F);
/// gradient_stats_sync of these gradients.
harness::Case statistics(const std::vector<Gradient>& gradients, float scale = 1.0F);
/// The next step of every entry: gradients in the dtypes of the first.
harness::LaterStep later(const std::vector<Gradient>& gradients);

/// The group's norm is `norm` on every subject, and exactly; its clip has these bits. `effective`: what is left of each
/// first element, where given.
void expect_norm(const std::vector<Gradient>& gradients, double norm, std::uint32_t clip, float max_norm = 1.0F,
                 float scale = 1.0F, const std::vector<float>& effective = {});
/// The group is bad: norm +inf, reason NonFinite, report kept, nothing updated. `max_norm` as given.
void expect_bad(const std::vector<Gradient>& gradients, float max_finite_abs = 0.0F,
                std::optional<float> max_norm = 1.0F, float scale = 1.0F);
/// Every subject refuses the case with this kind at this site, before any device call.
void expect_refused(const harness::Case& c, ErrorKind kind, std::optional<std::size_t> entry,
                    const std::string& operand);

/// Bits of the first element of an updated entry: parameter, first moment, second moment.
struct FirstElement {
    std::uint32_t p = 0, m = 0, v = 0;
    bool operator==(const FirstElement&) const = default;
};
std::ostream& operator<<(std::ostream& out, const FirstElement& element);
FirstElement first_element(const harness::OutcomeEntry& entry);

}  // namespace gradguard::testing
