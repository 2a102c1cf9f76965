// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bench_options.h"

#include <CLI/CLI.hpp>
#include <functional>

#include "tools/cli/number_text.h"
#include "tools/cli/options.h"

namespace gradguard::tools {
namespace {

constexpr const char* kStepFooter =
    R"(Whole steps on the wall clock: allocation, statistics, readback, decision on the host, submission, synchronisation.
guarded: one update with the clip inside. staged: the same statistics, a pass that writes the clipped gradient as FP32,
then the unguarded update. Both start from the same state, take turns, and must end with the same parameters and
moments: bit for bit with --fmad off, else within the enclosure of contraction. On the virtual GPU the figures are its
counts of instructions and sectors; times there are those of a simulation.

Exit status: 0 measured; 1 the paths disagree or a step was skipped; 2 bad usage, or a report that is there already;
4 the device or the compiler is missing, or fails.

Examples:
  gradguard bench step
  gradguard bench step --device cuda --elements 16777216 --tensors 16 --dtype f32 --report f32.json
  gradguard bench step --elements 1000 --amsgrad --fmad off --json)";

constexpr const char* kPlotFooter =
    R"(Examples:
  gradguard bench plot small.json medium.json large.json --out steps.svg)";

void add(CLI::App& app, const std::string& flag, const std::string& type, const std::string& description,
         const std::function<void(const std::string&)>& set) {
    app.add_option_function<std::string>(flag, set, description)->type_name(type);
}

void add_count(CLI::App& app, const std::string& flag, std::uint64_t least, std::uint64_t most, std::uint64_t& target,
               const std::string& description) {
    add(app, flag, "N", description + " [" + std::to_string(target) + "]",
        [flag, least, most, &target](const std::string& text) {
            const std::optional<std::uint64_t> value = parse_u64(text);
            if (!value || *value < least || *value > most) {
                throw UsageError(flag + ": want a whole number " +
                                 (most == UINT64_MAX ? "of at least " + std::to_string(least)
                                                     : "in " + std::to_string(least) + ".." + std::to_string(most)) +
                                 ", got \"" + text + "\"");
            }
            target = *value;
        });
}

void set_file(const std::string& flag, const std::string& text, std::optional<std::string>& target) {
    if (text.empty()) throw UsageError(flag + ": want a file name, got nothing");
    target = text;
}

}  // namespace

CLI::App* add_bench_step(CLI::App& bench, BenchStepRequest& request) {
    CLI::App* app = bench.add_subcommand("step", "The guarded step beside the staged baseline.")->footer(kStepFooter);
    bench::StepBenchOptions& options = request.options;
    add_count(*app, "--elements", 1, bench::kMostElements, options.elements, "elements in each tensor");
    add_count(*app, "--tensors", 1, bench::kMostTensors, options.tensors, "tensors in the group");
    add(*app, "--dtype", "f32|f16|bf16", "of the gradients [bf16]", [&options](const std::string& text) {
        if (text != "f32" && text != "f16" && text != "bf16") {
            throw UsageError("--dtype: want f32|f16|bf16, got \"" + text + "\"");
        }
        options.dtype = text == "f32" ? DType::kF32 : text == "f16" ? DType::kF16 : DType::kBF16;
    });
    app->add_flag("--amsgrad", options.amsgrad, "keep the running maximum of the second moment");
    add_count(*app, "--iterations", 1, UINT64_MAX, options.iterations, "steps of each path in each sample");
    add_count(*app, "--samples", bench::kLeastSamples, UINT64_MAX, options.samples, "samples");
    add_count(*app, "--warmup", 1, UINT64_MAX, options.warmup, "steps of each path before the first sample");
    add(*app, "--device", "vgpu|cuda|vdriver", "the virtual GPU, a real one, or the virtual GPU behind a driver [vgpu]",
        [&request](const std::string& text) {
            if (text != "vgpu" && text != "cuda" && text != "vdriver") {
                throw UsageError("--device: want vgpu|cuda|vdriver, got \"" + text + "\"");
            }
            request.device = text;
        });
    add(*app, "--fmad", "on|off", "kernels compiled with or without contraction [on]",
        [&options](const std::string& text) {
            if (text != "on" && text != "off") throw UsageError("--fmad: want on|off, got \"" + text + "\"");
            options.contracted = text == "on";
        });
    add_compiler(*app, request.compiler, "ptx");
    add(*app, "--report", "FILE", "write all samples and the environment to a new file, as JSON",
        [&request](const std::string& text) { set_file("--report", text, request.report); });
    app->add_flag("--json", request.json, "print the report on standard output");
    return app;
}

CLI::App* add_bench_plot(CLI::App& bench, BenchPlotRequest& request) {
    CLI::App* app =
        bench.add_subcommand("plot", "Draws reports of bench step, and prints them as a table.")->footer(kPlotFooter);
    app->add_option("REPORT", request.reports, "files that bench step --report wrote")->required()->type_name("");
    add(*app, "--out", "FILE", "where the picture goes, as SVG; without it, only the table",
        [&request](const std::string& text) { set_file("--out", text, request.out); });
    return app;
}

}  // namespace gradguard::tools
