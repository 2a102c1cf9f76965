// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "harness/subjects/subject.h"

namespace gradguard::harness {

/// The oracle (reference/model) as a subject: the positive control, which has to pass everything.
std::unique_ptr<Subject> make_oracle_subject();

}  // namespace gradguard::harness
