// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/conformance/model.h"

/// Micro-PTX files as they are checked in under tests/conformance/ptx, for replay on a real GPU.
namespace gradguard::conformance {

/// "add.rn.f32" -> "add.rn.f32.ptx"; what a file name should not have becomes '-'.
std::string micro_file_name(const std::string& instruction);
std::string micro_file_text(const InstructionModel& model);

}  // namespace gradguard::conformance
