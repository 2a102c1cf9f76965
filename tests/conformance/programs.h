// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
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

/// Three blocks of 256 threads; thread i of the grid must leave want(i) at [%out]. The body may use %i, %lane (in the
/// block), %blk, %r0 to %r9, %rd0 to %rd9 and %p0 to %p3, and the parameter `out`.
inline constexpr std::uint32_t kProgramThreads = 256;
inline constexpr std::uint32_t kProgramBlocks = 3;
Program program_of(const std::string& name, const std::string& module_text, const std::string& body,
                   const std::function<std::uint32_t(std::uint32_t)>& want);

/// The part of program_for() about asynchronous copies, caches, elections, parameters as memory.
std::optional<Program> rare_program_for(const std::string& name);

/// The same of mma.
std::optional<Program> matrix_program_for(const std::string& name);

/// Nothing when the instruction has no program.
std::optional<Program> program_for(std::string_view instruction);

}  // namespace gradguard::conformance
