// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/micro_file.h"

#include "tests/conformance/memory_ptx.h"
#include "tests/conformance/micro_ptx.h"
#include "tests/conformance/programs.h"

namespace gradguard::conformance {

std::string micro_file_name(const std::string& instruction) {
    std::string name = instruction + ".ptx";
    for (char& c : name) {
        if (c == ':' || c == '@' || c == '%') c = '-';
    }
    return name;
}

std::string micro_file_text(const InstructionModel& model) {
    switch (model.shape) {
        case Shape::Lane:
        case Shape::Warp:
            return micro_ptx(model, for_replay(forms_of(model)));
        case Shape::Load:
        case Shape::Store:
        case Shape::Atomic:
            return memory_ptx(model, for_replay(memory_forms_of(model)));
        case Shape::Effect:
            break;
    }
    return program_for(model.name)->ptx;
}

}  // namespace gradguard::conformance
