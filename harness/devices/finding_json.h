// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/vgpu/finding.h"

namespace gradguard::harness {

/// One JSON object: kind, message, count; but for leaks kernel, ptx_file, ptx_line, instruction, source_file and
/// source_line (null without line information), block, thread; what else the finding has.
std::string finding_to_json(const vgpu::Finding& finding);

}  // namespace gradguard::harness
