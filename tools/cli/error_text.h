// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/contract/error.h"
#include "tools/cli/group_file.h"
#include "tools/cli/options.h"

namespace gradguard::tools {

/// The same error with a message that a person can act on: the file and the entry's name, or the text that the option's
/// number came from. Kind and site stay.
Error located(const Error& error, const GroupFile& file, const ScanRequest& request);

}  // namespace gradguard::tools
