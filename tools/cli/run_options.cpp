// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <stdexcept>

#include "harness/observers/registry.h"
#include "tools/cli/number_text.h"
#include "tools/cli/options.h"
#include "tools/cli/run_command.h"

namespace gradguard::tools {
namespace {

constexpr const char* kFooter =
    R"(Runs any program that uses the CUDA driver API (directly, or through PyCUDA, tinygrad, Triton...) on a machine without
a GPU: its kernels are executed as PTX by the virtual GPU, and watched. What is found is told at the end, on standard
error: races, reads of what nobody wrote, accesses out of bounds, barriers that not all threads reach, with kernel and
line; and which approximate or flushing instructions were executed. Kernels must come as PTX, not as machine code.

Exit status: the program's own (128 + n when signal n ended it); 4 with findings, or when nothing was launched although
the program succeeded; 2 bad usage.

Examples:
  gradguard run --virtual-gpu -- python train.py
  gradguard run --virtual-gpu --observe bounds,shared-races --seed 7 --json -- ./my_program 1024
  gradguard run --virtual-gpu --count --report run.json -- python -m pytest tests)";

}  // namespace

CLI::App* add_run(CLI::App& app, RunRequest& request) {
    CLI::App* run = app.add_subcommand("run", "Runs any program that uses the CUDA driver API on the virtual GPU.");
    run->footer(kFooter);
    const auto add = [run](const char* flag, const char* type, const std::string& description, auto set) {
        run->add_option_function<std::string>(flag, set, description)->type_name(type);
    };
    run->add_flag("--virtual-gpu", request.virtual_gpu, "on the virtual GPU: there is no other device to choose");
    add("--observe", "NAMES", "who watches: all, none, or names with commas between [all]",
        [&request](const std::string& text) {
            try {
                observers::make_observers(text);
            } catch (const std::invalid_argument& error) {
                throw UsageError(std::string("--observe: ") + error.what());
            }
            request.observers = text;
        });
    add("--seed", "N", "picks what PTX and the driver leave open: schedule, poison, approximate values [0]",
        [&request](const std::string& text) {
            const auto seed = parse_u64(text);
            if (!seed) throw UsageError("--seed: want an integer from 0 to 2^64 - 1, got \"" + text + "\"");
            request.seed = *seed;
        });
    run->add_flag("--count", request.count, "count instructions by name and memory traffic, for each kernel");
    run->add_flag("--refuse-approximate", request.refuse_approximate,
                  "refuse modules with approximate instructions (sqrt.approx, div.full...) instead of running them");
    run->add_flag("--flush-subnormals", request.flush_subnormals,
                  "every FP32 instruction behaves as if it carried .ftz");
    add("--compute-capability", "X.Y", "what the device says it is [8.0]", [&request](const std::string& text) {
        const std::size_t dot = text.find('.');
        const bool two = dot != std::string::npos && parse_u64(text.substr(0, dot)) && parse_u64(text.substr(dot + 1));
        if (!two) throw UsageError("--compute-capability: want MAJOR.MINOR, got \"" + text + "\"");
        request.compute_capability = text;
    });
    add("--report", "FILE", "write the JSON object there as well", [&request](const std::string& text) {
        if (text.empty()) throw UsageError("--report: want a file name, got nothing");
        request.report = text;
    });
    run->add_flag("--json", request.json, "print one JSON object on standard output, after the program's own output");
    run->add_option("PROGRAM", request.program, "the program and its arguments, behind --")->type_name("");
    run->positionals_at_end();
    return run;
}

void check_run(const RunRequest& request) {
    if (!request.virtual_gpu) throw UsageError("run: want --virtual-gpu, the only device that a program can be put on");
    if (request.program.empty()) throw UsageError("run: want a program behind --, got none");
}

}  // namespace gradguard::tools
