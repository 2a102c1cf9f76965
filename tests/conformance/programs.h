// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/vgpu/observer.h"

/// Small programs with known results, for instructions whose effect is not a function of operands: control flow,
/// barriers, fences, address conversions, special registers.
namespace gradguard::conformance {

/// Entry `program(.param .u64 out)`; it stores 32-bit words, and afterwards out holds `want`.
struct Program {
    std::string ptx;
    vgpu::LaunchConfig config;
    std::vector<std::uint32_t> want;
};

/// Nothing when the instruction has no program.
std::optional<Program> program_for(std::string_view instruction);

}  // namespace gradguard::conformance
