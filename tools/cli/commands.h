// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/cli/options.h"

namespace gradguard::tools {

/// Each runs one command, prints its result and returns the exit status. They throw Error, harness::FileError,
/// harness::DeviceUnavailable, DeviceFinding. `replay` is the command line, for failures.
int run_step(const StepRequest& request, const std::string& replay);
int run_ptx(const PtxRequest& request);
int run_check(const CheckRequest& request);
int run_replay(const ReplayRequest& request);
int run_stats(const ScanRequest& request, const std::string& replay);

}  // namespace gradguard::tools
