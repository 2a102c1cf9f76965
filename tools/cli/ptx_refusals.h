// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/vgpu/ptx/ast.h"

namespace gradguard::tools {

/// Something in a module that the virtual GPU would refuse.
struct PtxRefusal {
    std::uint32_t line = 0;
    std::string message;  ///< "FILE:LINE: reason: instruction".
};

/// A module as far as it could be read.
struct ReadModule {
    std::unique_ptr<const vgpu::ast::Module> syntax;  ///< Without the refused lines; null where nothing made sense.
    std::vector<PtxRefusal> refusals;                 ///< In the order of the file.
};

/// Reads `text` and finds every line that is refused. After one that is no statement by itself (a directive, an opening
/// brace) the rest cannot be understood: then it is the last.
ReadModule read_module(std::string text, const std::string& file_name, bool allow_approximate);

}  // namespace gradguard::tools
