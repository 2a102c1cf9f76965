// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "harness/vgpu/ptx/ast.h"
#include "harness/vgpu/ptx/cursor.h"

namespace gradguard::vgpu::ptx {

/// Parses what follows the state space in a variable declaration, up to and without the ';' (or, for parameters, up to
/// the ',' or ')'): [.align n] .type name[[n]...] [= initialiser] [, name...].
std::vector<ast::Variable> parse_variables(Cursor& cursor, Space space, bool is_extern);

/// One kernel parameter, from after `.param`.
ast::Variable parse_parameter(Cursor& cursor);

/// A `.loc`: a place, and where it was inlined, if it was.
struct Loc {
    ast::SourceLine at;
    ast::SourceLine inlined_at;
};

/// `.loc` and `.file`, from after the directive word at `line`.
Loc parse_loc(Cursor& cursor, std::uint32_t line);
void parse_file(Cursor& cursor, std::uint32_t line, ast::Module& module);

}  // namespace gradguard::vgpu::ptx
