// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/faults/fault_bench.h"

namespace gradguard::testing {

/// All that a step gives a caller, to be compared bit for bit.
struct Outcome {
    std::string said;                            ///< Report, decision, what was updated; or the error.
    std::vector<std::vector<std::byte>> values;  ///< The new tensors, read back.

    bool operator==(const Outcome&) const = default;
};

/// One of the library's operations on a bench. It waits for what it has submitted.
struct Operation {
    std::string name;
    bool scans = false;          ///< Runs the reductions,
    bool skips_scan = false;     ///< but not when the step is to be skipped.
    bool updates = false;        ///< Submits updates when nothing stops it.
    bool looks_for_bad = false;  ///< A bad group stops it.
    bool one_by_one = false;     ///< Waits once for each tensor, not once for the group.
    std::function<std::vector<AdamWUpdate>(FaultBench& bench, std::string& said)> run;
};

/// guarded_adamw_step, gradient_stats_sync, clipped_adamw_step, the three public halves in a row, adamw_step.
const std::vector<Operation>& operations();
const Operation& operation_named(const std::string& name);
std::vector<std::string> operation_names();

/// A training step as a caller takes it: the gradients go to the device, the operation runs, what it updated is read
/// back. NonFiniteGradients is an outcome; every other error is thrown.
Outcome take_step(FaultBench& bench, const Operation& operation);

/// Device calls by kind.
using CallCounts = std::map<harness::DeviceCall, std::size_t>;

std::size_t total(const CallCounts& calls);

/// The calls of take_step() on a new device by the contract's accounting (sections 2 and 4), counted from the group
/// alone.
CallCounts contract_calls(const Group& group, const Operation& operation);

/// Those of the calls that submit a kernel.
std::size_t contract_launches(const Group& group, const Operation& operation);

}  // namespace gradguard::testing
