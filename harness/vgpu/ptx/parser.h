// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "harness/vgpu/ptx/ast.h"

namespace gradguard::vgpu::ptx {

/// Parses a whole module. Knows PTX's grammar and directives, not its instructions. Throws PtxError.
std::unique_ptr<ast::Module> parse(std::string_view text, std::string file_name);

}  // namespace gradguard::vgpu::ptx
