// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gradguard::kernels {

/// The checked-in PTX of `module` ("statistics" or "update") in `build` ("fmad" or "nofmad": with or without
/// contraction). Throws std::out_of_range when this binary was built without it.
std::string_view embedded_ptx(std::string_view module, std::string_view build);

}  // namespace gradguard::kernels
