// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/outcome.h"

namespace gradguard::testing {

/// A dense tensor at offset 0 with these values.
harness::CaseTensor case_tensor(const std::vector<float>& values);
harness::CaseTensor case_tensor(DType dtype, const std::vector<std::uint16_t>& words);

/// An entry with a gradient of these values; `step` 0: no state.
harness::CaseEntry case_entry(const std::vector<float>& parameters, harness::CaseTensor gradients,
                              std::uint64_t step = 0, bool amsgrad = false);

/// What the oracle does with a case, as an outcome: every field filled, as the best of subjects would.
harness::Outcome oracle_outcome(const harness::Case& c);

}  // namespace gradguard::testing
