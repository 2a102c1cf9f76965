// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradguard::tools {

/// What was built with what: this program, its compiler and flags, and the compiler, flags and sources of the kernels.
std::string version_text();

}  // namespace gradguard::tools
