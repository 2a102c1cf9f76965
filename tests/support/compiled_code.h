// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradguard::testing {

/// Opcodes of a PTX text with their modifiers ("mul.rn.f32") and state spaces of its declarations (".shared"), in
/// order.
std::vector<std::string> opcodes(std::string_view ptx);

/// What the PTX of a module ("statistics" or "update") breaks of contract section 4, a line each: subnormals flushed,
/// division or root approximated, atomics, local memory, operations of the scan (without contraction also of the
/// update) that may be fused, entries that are not all there, 256 threads, 3072 bytes of shared memory, arguments.
std::vector<std::string> broken_rules(std::string_view module, bool contracted, std::string_view ptx);

/// The same of what `ptxas -v` reports of the module's machine code: spilled registers, local memory, more than 64
/// registers, shared memory.
std::vector<std::string> broken_resources(std::string_view module, std::string_view report);

/// All entries of a module by name, sorted.
std::vector<std::string> entries_of(std::string_view module);

/// The lines, one below the other.
std::string joined(const std::vector<std::string>& lines);

}  // namespace gradguard::testing
