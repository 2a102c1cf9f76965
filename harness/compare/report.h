// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/compare/statistics_bound.h"
#include "harness/compare/update_bound.h"

namespace gradguard::harness {

/// "0x1.99999ap-4 (0x3DCCCCCD)": exact, and the bits.
std::string float_text(float x);
std::string double_text(double x);
/// "from 0x1p+0 = 1 to 0x1.8p+0 = 1.5, or NaN".
std::string interval_text(const Interval& interval);
/// float_text of each value, the same one once.
std::vector<std::string> distinct_texts(std::span<const float> values);

/// One failure, told on one screen.
struct Failure {
    std::string fact;  ///< What should be true: "the update lies in the legal set of contractions".
    std::optional<std::uint64_t> entry;
    std::string entry_name;
    std::string operand;
    std::optional<std::uint64_t> index;
    std::uint64_t step = 0;  ///< Of a case of several, from 0; told by describe() where it is not 0.
    std::string got;
    std::vector<std::string> want;   ///< Every legal value.
    std::optional<double> ulp;       ///< Error in FP32 ulp of the exact result.
    std::vector<std::string> notes;  ///< Inputs and intermediates, device, replay line: one line each.
};

/// The text, ending in a newline.
std::string describe(const Failure& failure);

/// The failure that a mismatch or an offender stands for. The caller adds names, device and replay line.
Failure failure_of(const Mismatch& mismatch);
/// With the inputs of the element and the effective gradient in the notes.
Failure failure_of(const Offender& offender, const UpdateOperands& operands, const reference::UpdateCoefficients& c);

}  // namespace gradguard::harness
