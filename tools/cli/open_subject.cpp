// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/open_subject.h"

#include <stdexcept>

#include "harness/devices/registry.h"
#include "tools/cli/options.h"

namespace gradguard::tools {

std::string subject_of(const std::string& name, const std::string& device, const CompilerChoice& compiler) {
    const std::string placed =
        device == "vgpu" ? name : harness::subject_on(name, device == "auto" ? harness::best_device() : device);
    if (!compiler.name) return placed;
    try {
        return harness::subject_compiled_by(placed, *compiler.name);
    } catch (const std::invalid_argument& error) {
        throw UsageError(std::string("--compiler: ") + error.what());
    }
}

harness::SubjectOptions subject_options(const std::string& device, const CompilerChoice& compiler) {
    harness::SubjectOptions options;
    options.device = device;
    options.nvrtc = compiler.nvrtc;
    options.note = print_note;
    return options;
}

std::unique_ptr<harness::Subject> open_subject(std::string_view name, const harness::SubjectOptions& options) {
    try {
        return harness::make_subject(name, options);
    } catch (const std::invalid_argument& error) {
        throw UsageError(std::string("--subject: ") + error.what());
    }
}

}  // namespace gradguard::tools
