// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "python/src/arrays.h"
#include "python/src/device.h"
#include "reference/contract/options.h"
#include "reference/contract/report.h"
#include "reference/fp64/coefficients.h"
#include "reference/model/guarded_step.h"

namespace gradguard::python {

/// The contract's objects with Python arrays in them. The arrays are what the caller passed, never copies.
struct PyState {
    std::uint64_t step = 1;
    nb::object first_moment, second_moment;
    nb::object max_second_moment = nb::none();
};
struct PyEntry {
    nb::object parameters, gradients;
    nb::object state = nb::none();  ///< None or a PyState.
};
struct PyUpdate {
    nb::object parameters;
    nb::object state = nb::none();
    bool updated = false;
};
struct PyGuardedUpdate {
    nb::list entries;
    std::optional<GradientStatsReport> report;
    float clip_multiplier = 1.0F;
    std::optional<SkipReason> skip_reason;
};
/// Null: the standard device.
struct PyDevice {
    std::shared_ptr<SharedDevice> device;
};

/// The parts of the module.
void bind_errors();
void bind_options(nb::module_& module);
void bind_objects(nb::module_& module);
void bind_steps(nb::module_& module);
void bind_reference(nb::module_& module);
void bind_enclosures(nb::module_& module);
void bind_check(nb::module_& module);

/// The entries of a sequence. Throws nb::type_error for anything that is not an AdamWEntry; they live as long as
/// `entries` and its items do.
std::vector<const PyEntry*> entries_of(const nb::object& entries);
/// Null for None. Throws nb::type_error.
const PyState* state_of(const nb::object& state);

/// An entry's values, copied for the oracle.
reference::HostEntry host_entry(const PyEntry& entry, std::size_t index);
/// The oracle's result in new arrays of the entry's shape; what is unchanged is the entry's own objects.
PyUpdate update_of(const PyEntry& entry, const reference::HostUpdate& update);

}  // namespace gradguard::python
