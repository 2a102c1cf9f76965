// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/faults/write_points.h"

namespace gradguard::testing {

/// The commands of the program that write files, each with old files in their place, and `step` without.
const std::vector<Writer>& writers();
const Writer& writer_named(const std::string& name);

}  // namespace gradguard::testing
