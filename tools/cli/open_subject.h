// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "harness/subjects/subject.h"
#include "tools/cli/compiler_choice.h"

namespace gradguard::tools {

/// The subject on the device, unless that is "vgpu" (then the subject's name says it), with its kernels compiled as the
/// choice says. Throws UsageError for one that has none to compile.
std::string subject_of(const std::string& name, const std::string& device, const CompilerChoice& compiler);

/// How the program opens subjects: all observers on.
harness::SubjectOptions subject_options(const std::string& device, const CompilerChoice& compiler);

/// harness::make_subject() whose std::invalid_argument is a UsageError of --subject.
std::unique_ptr<harness::Subject> open_subject(std::string_view name, const harness::SubjectOptions& options);

}  // namespace gradguard::tools
