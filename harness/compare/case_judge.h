// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/case/abilities.h"
#include "harness/case/case.h"
#include "harness/case/outcome.h"
#include "harness/compare/report.h"

namespace gradguard::harness {

/// What is measured against a bound.
enum class Quantity : std::uint8_t { kNorm, kFirstMoment, kSecondMoment, kMaxSecondMoment, kParameters };
inline constexpr int kQuantities = 5;
/// "norm", "m", "v", "x", "p".
std::string_view to_string(Quantity quantity);

/// Where a quantity was farthest off.
struct Worst {
    double ulp = 0.0;       ///< In FP32 ulp of the exact result.
    double fraction = 0.0;  ///< Of the bound computed for these inputs; measured on balanced inputs only.
    std::uint64_t step = 0, entry = 0, index = 0;
};

struct CaseVerdict {
    std::vector<Failure> failures;  ///< Causes before effects; empty when all is right. At most 8.
    /// Greatest seen, ulp and fraction each on its own; the place is that of the greatest fraction, or of the greatest
    /// ulp where no fraction was measured.
    std::array<Worst, kQuantities> worst{};
    bool ok() const { return failures.empty(); }
};

struct JudgeOptions {
    bool measure = true;  ///< Fill `worst`; off is faster.
};

/// Holds an outcome against the oracle, the oracle being the model: every step from the state that the subject itself
/// left, counts and skips tracked beside it. Errors: kind and site as reference::validate_step names them (of two rules
/// that one entry breaks either), no device call before. Statistics, decision, coefficients, update, step counts,
/// unchanged buffers, inputs, findings. Admits what `abilities` declares and nothing else.
CaseVerdict judge_case(const Case& c, const Outcome& outcome, const Abilities& abilities,
                       const JudgeOptions& options = {});

}  // namespace gradguard::harness
