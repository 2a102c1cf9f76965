// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/campaign/tally.h"

namespace gradguard::harness {

/// Figures of the HTML report, as inline SVG; empty text where there is nothing to show.

/// Error in ulp against the size of the group, both logarithmic: how many cases fell where, the greatest of each size,
/// and for the norm the closed-form bound of one tensor.
std::string error_chart(Quantity quantity, const QuantityTally& tally);

/// How much of its bound each case used, in 20 bins.
std::string fraction_chart(Quantity quantity, const QuantityTally& tally);

/// Horizontal bars, logarithmic: cases by class, for the names of a coverage that begin with `group` and a slash.
std::string coverage_chart(const std::string& group, const Coverage& coverage);

}  // namespace gradguard::harness
