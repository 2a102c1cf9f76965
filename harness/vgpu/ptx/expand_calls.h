// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "harness/vgpu/ptx/ast.h"

namespace gradguard::vgpu::ptx {

/// Puts the bodies of the functions that the entry calls in place of the calls, and lays out its shared and local
/// memory. Throws PtxError for recursion, for functions without a body and for arguments that do not fit.
void expand_calls(const ast::Module& module, ast::Entry& entry);

}  // namespace gradguard::vgpu::ptx
