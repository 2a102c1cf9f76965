// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <limits>

#include "harness/observers/registry.h"
#include "tools/cli/check_options.h"
#include "tools/cli/number_text.h"
#include "tools/cli/version.h"

namespace gradguard::tools {
namespace {

constexpr const char* kMainHelp =
    "A guarded AdamW step over real gradients, on the compiled CUDA kernels, on any machine, each\n"
    "result held against an exact reference.\n";

constexpr const char* kMainFooter = R"(Examples:
  gradguard step group.safetensors                  one guarded step, every element checked
  gradguard stats group.safetensors                 the scan alone: norm, maximum, bad tensors
  gradguard check --time 60s                        drawn cases against every property
  gradguard replay case.json                        one case, explained step by step
  gradguard hunt                                    the inputs that fill the bounds
  gradguard bench step                              the guarded step beside a staged baseline
  gradguard bench vgpu                              how fast the virtual GPU is on this machine
  gradguard ptx kernel.ptx                          what any PTX file holds; with --entry, runs it

Exit status:
  0  all within bounds      1  out of bounds      2  bad input or usage
  3  non-finite gradients under --nonfinite error
  4  the device or the compiler is missing, the device fails, or has a finding against a kernel)";

constexpr const char* kStepFooter =
    R"(The file holds NAME.param, NAME.grad and, after the first step, NAME.exp_avg, NAME.exp_avg_sq and
(with --amsgrad) NAME.max_exp_avg_sq; its metadata holds gradient_scale, and step for all entries or
NAME.step for one. Several files are consecutive steps: parameters and state come from the first,
gradients and scale from each. Numbers are decimal or hexadecimal, rounded once to FP32.

Examples:
  gradguard step group.safetensors
  gradguard step step1.safetensors step2.safetensors step3.safetensors --max-norm 0.5
  gradguard step group.safetensors --steps 100 --amsgrad --out after.safetensors --json
  gradguard step group.safetensors --learning-rate 0x1p-10 --max-norm none --fmad off
  gradguard step group.safetensors --kernels my_kernels --observe all)";

constexpr const char* kStatsFooter = R"(Reads the NAME.grad tensors and the metadata gradient_scale of each file.

Examples:
  gradguard stats group.safetensors
  gradguard stats step1.safetensors step2.safetensors --gradient-scale 65536 --json)";

constexpr const char* kPtxFooter =
    R"(Without --entry it lists what the file holds and what of it the virtual GPU refuses.

An argument is TYPE:VALUE (u32:5, s32:-1, f32:0x1p-3, b64:0xff) or a buffer, TYPE[N]:FILE with N raw values,
or TYPE[N]:zero, poison (nobody wrote it) or iota (0, 1, 2, ...). Types: b, u, s with 8 to 64 bits, f16, bf16,
f32, f64. A struct is {ARGUMENT,ARGUMENT,...}. Arguments are counted from 0, members of a struct as 0.1, or
named as in the PTX.

Examples:
  gradguard ptx kernel.ptx
  gradguard ptx kernel.ptx --entry saxpy --grid 4 --block 256 --arg u32:1024 --arg f32:0x1p-1 \
      --arg f32[1024]:iota --arg f32[1024]:zero --out 3=y.bin
  gradguard ptx kernel.ptx --entry scan --block 64,2 --arg f32[128]:x.bin --read-only 0 --seed 7 --count --json)";

constexpr const char* kBenchFooter = R"(Examples:
  gradguard bench step --elements 1000000 --tensors 4
  gradguard bench vgpu
  gradguard bench vgpu --observe all
  gradguard bench vgpu --json)";

/// Number options are taken as text: their conversion is one rounding to FP32, and their rule is the library's.
class OptionTable {
  public:
    explicit OptionTable(CLI::App& app) : app_(app) {}

    void add_float(const std::string& flag, const std::string& name, float& target,
                   std::map<std::string, std::string>& texts, const std::string& description) {
        add(flag, "X", description + " [" + float_text(target) + "]",
            [&target, &texts, flag, name](const std::string& text) {
                target = required_float(flag, text);
                texts[name] = text;
            });
    }
    void add_u64(const std::string& flag, const std::string& description,
                 const std::function<void(std::uint64_t)>& set) {
        add(flag, "N", description, [flag, set](const std::string& text) {
            const std::optional<std::uint64_t> value = parse_u64(text);
            if (!value) throw UsageError(flag + ": want an integer from 0 to 2^64 - 1, got \"" + text + "\"");
            set(*value);
        });
    }
    void add_choice(const std::string& flag, const std::vector<std::string>& choices, const std::string& description,
                    const std::function<void(const std::string&)>& set) {
        std::string type;
        for (const std::string& choice : choices) type += (type.empty() ? "" : "|") + choice;
        add(flag, type, description, [flag, choices, type, set](const std::string& text) {
            if (std::ranges::find(choices, text) == choices.end()) {
                throw UsageError(flag + ": want " + type + ", got \"" + text + "\"");
            }
            set(text);
        });
    }
    void add(const std::string& flag, const std::string& type, const std::string& description,
             const std::function<void(const std::string&)>& set) {
        app_.add_option_function<std::string>(flag, set, description)->type_name(type);
    }

    static float required_float(const std::string& flag, const std::string& text) {
        const std::optional<float> value = parse_float(text);
        if (!value) throw UsageError(flag + ": want a decimal or hexadecimal number, got \"" + text + "\"");
        return *value;
    }

  private:
    CLI::App& app_;
};

void add_observe(CLI::App& app, std::string& observers) {
    OptionTable(app).add("--observe", "NAMES",
                         "who watches the virtual GPU: all, none, or names with commas between [" + observers + "]",
                         [&observers](const std::string& text) {
                             try {
                                 observers::make_observers(text);
                             } catch (const std::invalid_argument& error) {
                                 throw UsageError(std::string("--observe: ") + error.what());
                             }
                             observers = text;
                         });
}

constexpr const char* kCountHelp = "count instructions by kind, bytes and 32-byte sectors, by kernel";

void add_scan_options(CLI::App& app, ScanRequest& request) {
    app.add_option("FILE", request.files, "safetensors files")->required()->type_name("");
    OptionTable table(app);
    table.add("--gradient-scale", "X", "loss scale of the gradients; overrides the files' metadata [1]",
              [&request](const std::string& text) {
                  request.gradient_scale = OptionTable::required_float("--gradient-scale", text);
                  request.texts["gradient_scale"] = text;
              });
    table.add_choice("--device", {"vgpu", "cuda", "vdriver", "auto"},
                     "the virtual GPU, a real one, the virtual driver, or a real one where there is one [vgpu]",
                     [&request](const std::string& text) { request.device = text; });
    table.add_choice("--fmad", {"on", "off"}, "kernels compiled with or without contraction [on]",
                     [&request](const std::string& text) { request.contracted = text == "on"; });
    add_compiler(app, request.compiler, "ptx");
    table.add("--kernels", "FOLDER", "statistics.ptx and update.ptx from here in place of the library's own",
              [&request](const std::string& text) { request.kernels = text; });
    table.add_u64("--schedule-seed", "how the virtual GPU interleaves its work [0]",
                  [&request](std::uint64_t seed) { request.schedule_seed = seed; });
    add_observe(app, request.observers);
    app.add_flag("--count", request.count, kCountHelp);
    app.add_flag("--json", request.json, "print one JSON object on standard output");
}

vgpu::Dim3 required_dim(const std::string& flag, const std::string& text) {
    std::uint32_t sizes[3] = {1, 1, 1};
    std::size_t count = 0;
    for (std::size_t begin = 0; begin <= text.size(); ++count) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        const std::optional<std::uint64_t> size = parse_u64(text.substr(begin, comma - begin));
        if (count == 3 || !size || *size == 0 || *size > std::numeric_limits<std::uint32_t>::max()) {
            throw UsageError(flag + ": want X[,Y,Z], each from 1 to 2^32 - 1, got \"" + text + "\"");
        }
        sizes[count] = static_cast<std::uint32_t>(*size);
        begin = comma + 1;
    }
    return {sizes[0], sizes[1], sizes[2]};
}

void add_ptx_options(CLI::App& app, PtxRequest& request) {
    app.add_option("FILE", request.file, "a PTX file")->required()->type_name("");
    app.add_option("--entry", request.entry, "the kernel to run; without it the file is listed")->type_name("NAME");
    OptionTable table(app);
    table.add("--grid", "X[,Y,Z]", "blocks [1]",
              [&request](const std::string& text) { request.grid = required_dim("--grid", text); });
    table.add("--block", "X[,Y,Z]", "threads of a block [what the kernel requires, else 1]",
              [&request](const std::string& text) { request.block = required_dim("--block", text); });
    app.add_option("--arg", request.arguments, "the kernel's next argument")->allow_extra_args(false)->type_name("A");
    app.add_option_function<std::vector<std::string>>(
           "--out",
           [&request](const std::vector<std::string>& texts) {
               for (const std::string& text : texts) {
                   const std::size_t equals = text.find('=');
                   if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
                       throw UsageError("--out: want ARGUMENT=FILE, got \"" + text + "\"");
                   }
                   request.outs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
               }
           },
           "write the buffer of this argument to a file afterwards")
        ->allow_extra_args(false)
        ->type_name("K=FILE");
    app.add_option("--read-only", request.read_only, "the kernel may not write the buffer of this argument")
        ->allow_extra_args(false)
        ->type_name("K");
    table.add_u64("--shared", "bytes of dynamic shared memory [0]", [&request](std::uint64_t bytes) {
        if (bytes > std::numeric_limits<std::uint32_t>::max()) throw UsageError("--shared: want less than 2^32 bytes");
        request.shared_bytes = static_cast<std::uint32_t>(bytes);
    });
    table.add_u64("--seed", "picks what PTX leaves open: schedule, fusing, poison [0]",
                  [&request](std::uint64_t seed) { request.seed = seed; });
    table.add_u64("--budget", "warp instructions after which the launch is stuck [2^32]",
                  [&request](std::uint64_t budget) { request.budget = budget; });
    table.add_u64("--values", "how many values of each buffer to print [8]",
                  [&request](std::uint64_t values) { request.values = values; });
    add_observe(app, request.observers);
    app.add_flag("--allow-approximate", request.allow_approximate,
                 "run instructions with an error bound (sin.approx, div.full...): the seed picks a value inside it");
    app.add_flag("--count", request.count, kCountHelp);
    app.add_flag("--json", request.json, "print one JSON object on standard output");
}

/// Options that say how to run make no sense without something to run.
void check_ptx(const CLI::App& app, const PtxRequest& request) {
    if (!request.entry.empty()) return;
    for (const CLI::Option* option : app.get_options()) {
        const std::string name = option->get_name();
        if (option->count() > 0 && name != "FILE" && name != "--json" && name != "--entry" &&
            name != "--allow-approximate") {
            throw UsageError(name + ": needs --entry");
        }
    }
}

void add_step_options(CLI::App& app, StepRequest& request) {
    add_scan_options(app, request.scan);
    OptionTable table(app);
    std::map<std::string, std::string>& texts = request.scan.texts;
    AdamWOptions& options = request.options;
    table.add_float("--learning-rate", "learning_rate", options.learning_rate, texts, "learning rate");
    table.add_float("--beta1", "beta1", options.beta1, texts, "decay of the first moment");
    table.add_float("--beta2", "beta2", options.beta2, texts, "decay of the second moment");
    table.add_float("--epsilon", "epsilon", options.epsilon, texts, "added to the denominator");
    table.add_float("--weight-decay", "weight_decay", options.weight_decay, texts, "decoupled weight decay");
    app.add_flag("--amsgrad", options.amsgrad, "keep the running maximum of the second moment");
    app.add_flag("--maximize", options.maximize, "go up the gradient");
    table.add("--max-norm", "X|none", "clip the group's norm to X, or do not clip [1]",
              [&request](const std::string& text) {
                  request.guard.max_norm.reset();
                  if (text == "none") return;
                  request.guard.max_norm = OptionTable::required_float("--max-norm", text);
                  request.scan.texts["max_norm"] = text;
              });
    table.add_float("--guard-epsilon", "guard_epsilon", request.guard.epsilon, texts,
                    "added to the norm when clipping");
    table.add_choice("--nonfinite", {"skip", "error"}, "what a NaN or an infinity does to the step [skip]",
                     [&request](const std::string& text) {
                         request.guard.nonfinite = text == "skip" ? NonFinitePolicy::kSkip : NonFinitePolicy::kError;
                     });
    app.add_flag("--skip-update", request.skip_update, "validate and change nothing");
    table.add_u64("--steps", "steps in all; those beyond the files repeat the last gradients [one for each file]",
                  [&request](std::uint64_t steps) { request.steps = steps; });
    table.add("--out", "NEW", "write the state after the last step, in the same form",
              [&request](const std::string& text) {
                  if (text.empty()) throw UsageError("--out: want a file name, got nothing");
                  request.out = text;
              });
}

void check_steps(const StepRequest& request) {
    if (!request.steps) return;
    if (*request.steps == 0) throw UsageError("--steps: want at least 1, got 0");
    if (*request.steps < request.scan.files.size()) {
        throw UsageError("--steps: want at least one step for each of the " +
                         std::to_string(request.scan.files.size()) + " files, got " + std::to_string(*request.steps));
    }
}

}  // namespace

Request parse_command_line(int argc, char** argv) {
    Request request;
    CLI::App app{kMainHelp, "gradguard"};
    app.footer(kMainFooter);
    app.require_subcommand(1);
    app.set_version_flag("--version", version_text(), "what was built with what");
    CLI::App* step = app.add_subcommand("step", "Runs guarded steps and holds every output element against the oracle.")
                         ->footer(kStepFooter);
    add_step_options(*step, request.step);
    CLI::App* stats = app.add_subcommand("stats", "Scans gradients and holds the statistics against the oracle.")
                          ->footer(kStatsFooter);
    add_scan_options(*stats, request.stats);
    CLI::App* bench = app.add_subcommand("bench", "Measures speed.")->footer(kBenchFooter);
    bench->require_subcommand(1);
    CLI::App* bench_vgpu =
        bench->add_subcommand("vgpu", "The kernels on the virtual GPU beside native loops, on one core.");
    bench_vgpu->footer(kBenchFooter);
    add_observe(*bench_vgpu, request.bench_observers);
    bench_vgpu->add_flag("--json", request.bench_json, "print one JSON object on standard output");
    const CLI::App* bench_step = add_bench_step(*bench, request.bench_step);
    const CLI::App* bench_plot = add_bench_plot(*bench, request.bench_plot);
    CLI::App* ptx =
        app.add_subcommand("ptx", "Lists or runs the kernels of any PTX file on the virtual GPU.")->footer(kPtxFooter);
    add_ptx_options(*ptx, request.ptx);
    const CLI::App* check = add_check(app, request.check);
    const CLI::App* replay = add_replay(app, request.replay);
    const CLI::App* hunt = add_hunt(app, request.hunt);
    const CLI::App* run = add_run(app, request.run);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw UsageError(error.what());
        app.exit(error, std::cout, std::cerr);
        return request;
    }
    if (check->parsed() || replay->parsed()) {
        request.command = check->parsed() ? Command::kCheck : Command::kReplay;
    } else if (hunt->parsed()) {
        request.command = Command::kHunt;
    } else if (run->parsed()) {
        check_run(request.run);
        request.command = Command::kRun;
    } else if (ptx->parsed()) {
        check_ptx(*ptx, request.ptx);
        request.command = Command::kPtx;
    } else if (step->parsed()) {
        check_steps(request.step);
        request.command = Command::kStep;
    } else if (bench->parsed()) {
        request.command = bench_step->parsed()   ? Command::kBenchStep
                          : bench_plot->parsed() ? Command::kBenchPlot
                                                 : Command::kBenchVgpu;
    } else {
        request.command = Command::kStats;
    }
    return request;
}

}  // namespace gradguard::tools
