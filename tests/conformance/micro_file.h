// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/conformance/model.h"

/// Micro-PTX files as they are checked in under tests/conformance/ptx, for replay on a real GPU.
namespace gradguard::conformance {

/// "add.rn.f32" -> "add.rn.f32.ptx"; what a file name should not have becomes '-'.
std::string micro_file_name(const std::string& instruction);
std::string micro_file_text(const InstructionModel& model);

/// The tests run more forms than a GPU needs to be asked about: aliased registers and the like are about the machine.
template <class F>
std::vector<F> for_replay(const std::vector<F>& forms) {
    std::vector<F> kept;
    for (const F& form : forms) {
        const bool is_main = form.entry.starts_with("plain") || form.entry == "guarded" || form.entry == "wide";
        if (is_main || form.entry == "whole_warp" || form.entry == "members") kept.push_back(form);
    }
    return kept;
}

}  // namespace gradguard::conformance
