// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/faults/operation.h"

namespace gradguard::testing {

/// What an enumeration of fault points has found.
struct Enumeration {
    std::size_t points = 0;             ///< Calls that were made to fail, each in a run of its own.
    std::vector<std::string> problems;  ///< Each with the point that it was seen at; empty when all is well.
};

/// Runs one step to count its calls, holds them against contract_calls(), and then, once for each call, a step in which
/// that call fails: throws DeviceFailure, or finds the device lost if there is a `fate`. Each of those must end in the
/// contract's error (section 3), with what the caller committed bit for bit as it was, nothing submitted after the
/// failure, nothing left allocated; and the next step, on a new device if this one was lost, must give the bits of an
/// undisturbed one.
Enumeration fail_every_call(const Group& group, const Operation& operation, std::optional<harness::Fate> fate);

/// What a device might hand back instead of summaries.
struct Damage {
    std::string name;
    std::optional<std::size_t> entry;  ///< Which entry the error must name, by its index in the group.
    std::string operand;
    harness::TamperReadback::Tamper tamper;
};

/// Every rule for a summary (contract section 3) broken in every word of every summary, every length from 0 on, one
/// summary too many and too few.
std::vector<Damage> damages(const Group& group);

/// One step for each damage: InvalidSummary, no update submitted, and all that fail_every_call() asks for.
Enumeration damage_every_summary(const Group& group, const Operation& operation);

}  // namespace gradguard::testing
