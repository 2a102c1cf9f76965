// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace gradguard::bench {

/// Reports of `bench step` as one picture (SVG, stands alone). For each kind of step (dtype, AMSGrad, compiler,
/// contraction) a row of panels: a step's cost against the elements of each tensor, against the number of tensors, and
/// its rate. Of hardware the cost is time and the rate bytes per second beside the measured copy bandwidth; of the
/// virtual GPU both are its counts. The floors of a gradient that is read once and twice are drawn in. Throws
/// std::invalid_argument for no reports, or for reports of different kinds of device.
std::string step_plot(std::span<const nlohmann::ordered_json> reports);

}  // namespace gradguard::bench
