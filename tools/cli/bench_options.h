// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/step_options.h"
#include "tools/cli/compiler_choice.h"

namespace CLI {
class App;
}

namespace gradguard::tools {

/// `bench step`: the guarded step against the staged baseline.
struct BenchStepRequest {
    bench::StepBenchOptions options;
    std::string device = "vgpu";
    CompilerChoice compiler;
    std::optional<std::string> report;  ///< A new file for the report.
    bool json = false;
};

/// `bench plot`: what reports say, as a table and a picture.
struct BenchPlotRequest {
    std::vector<std::string> reports;
    std::optional<std::string> out;
};

/// The subcommands with their flags; the request is filled while the command line is parsed. They throw UsageError from
/// inside of parsing.
CLI::App* add_bench_step(CLI::App& bench, BenchStepRequest& request);
CLI::App* add_bench_plot(CLI::App& bench, BenchPlotRequest& request);

/// They run a command, print its result and return the exit status; a step that is skipped and paths that disagree are
/// kOutOfBounds. Throw as the other commands do.
int run_bench_step(const BenchStepRequest& request);
int run_bench_plot(const BenchPlotRequest& request);

}  // namespace gradguard::tools
