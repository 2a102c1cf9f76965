// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/check_request.h"

namespace CLI {
class App;
}

namespace gradguard::tools {

/// The subcommands with their flags; the request is filled while the command line is parsed. Both throw UsageError from
/// inside of parsing.
CLI::App* add_check(CLI::App& app, CheckRequest& request);
CLI::App* add_replay(CLI::App& app, ReplayRequest& request);

}  // namespace gradguard::tools
