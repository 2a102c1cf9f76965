// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/campaign/properties.h"

namespace gradguard::harness {

/// What same_bits() leaves out.
struct CompareOptions {
    bool gradient_scale = true;  ///< Of the report.
    bool elements = true;        ///< Likewise.
};

/// A relation between several runs of one subject: runs cases, and gathers what is wrong.
class Relation {
  public:
    /// `second`: how the second case is made from the first, for the report.
    Relation(const Property& property, std::string second) : fact_(property.fact), second_(std::move(second)) {}

    /// Runs a case. What the observers found in it, and inputs that changed, are failures of any relation.
    Outcome run(Subject& subject, const Case& c);

    /// All steps of `got`, of the second case, have the bits of `want`, of the first: errors, reports, decisions,
    /// buffers and step counts; any NaN equals any NaN.
    void same_bits(const Outcome& got, const Outcome& want, const CompareOptions& options = {});
    void same_report(const StepOutcome& got, const StepOutcome& want, const CompareOptions& options, std::size_t step);
    void same_entry(const OutcomeEntry& got, const OutcomeEntry& want, std::size_t entry, std::size_t step);
    void same_error(const StepOutcome& got, const StepOutcome& want, std::size_t step);
    void same_values(std::span<const float> got, std::span<const float> want, std::size_t entry,
                     std::string_view operand, std::size_t step);
    /// Integers, words.
    void equal(const std::string& got, const std::string& want, std::optional<std::size_t> entry, std::string operand,
               std::size_t step);
    void fail(Failure failure, std::size_t step = 0);
    /// What a comparison of reports or decisions found, if it did.
    void mismatch(const std::optional<Mismatch>& found, std::size_t step = 0);

    CaseVerdict& verdict() { return verdict_; }
    PropertyVerdict result() { return {true, std::move(verdict_)}; }
    static PropertyVerdict not_applicable() { return {false, {}}; }

  private:
    std::string fact_, second_;
    CaseVerdict verdict_;
};

/// A number in [0, n) made from a case's schedule seed, another for each `salt`: how relations draw their parameters.
std::uint64_t chosen(const Case& c, std::uint64_t salt, std::uint64_t n);

}  // namespace gradguard::harness
