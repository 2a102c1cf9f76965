// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/check_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <thread>

#include "tools/cli/number_text.h"
#include "tools/cli/options.h"

namespace gradguard::tools {
namespace {

constexpr std::uint64_t kMostJobs = 256;
constexpr std::uint64_t kMostElements = 1U << 22U;
constexpr std::uint64_t kLongestSeconds = 30ULL * 24 * 3600;

constexpr const char* kCheckFooter =
    R"(Cases are drawn from the seed, the property and a number: the same everywhere, whatever the jobs. Without --cases and
--time, 10,000 cases. The case files of the corpus run first. The run stops at the first failure, shrinks it, writes it
as a case file and prints the command that replays it.

--elements N measures throughput: guarded steps of groups with exactly N elements, unless --only asks for others.

Exit status: 0 all within bounds; 1 a failure, an observer's finding included, or a class of inputs that was not hit;
2 bad usage; 4 device trouble; 130 and 143 stopped by SIGINT and SIGTERM (what was
done so far is printed).

Examples:
  gradguard check --time 60s
  gradguard check --cases 100000 --seed 7 --report results
  gradguard check --only trajectory --only statistics --subject vgpu/nofmad
  gradguard check --cases 1000000 --shard 3/8 --json
  gradguard check --compiler nvrtc --time 60s
  gradguard check --subject ptx:my_kernels --time 5m)";

constexpr const char* kReplayFooter =
    R"(Explained is the element that failed, else the one with the greatest error, or the one asked for.

Examples:
  gradguard replay gradguard-cases/guarded_step.vgpu_fmad.0123456789abcdef.json
  gradguard replay case.json --subject vgpu/nofmad --entry 0 --index 3)";

using Setter = std::function<void(const std::string&)>;

void add(CLI::App& app, const std::string& flag, const std::string& type, const std::string& description,
         const Setter& set) {
    app.add_option_function<std::string>(flag, set, description)->type_name(type);
}

std::uint64_t integer(const std::string& flag, const std::string& text, std::uint64_t least, std::uint64_t greatest) {
    const std::optional<std::uint64_t> value = parse_u64(text);
    if (!value || *value < least || *value > greatest) {
        throw UsageError(flag + ": want an integer from " + std::to_string(least) + " to " +
                         (greatest == UINT64_MAX ? std::string("2^64 - 1") : std::to_string(greatest)) + ", got \"" +
                         text + "\"");
    }
    return *value;
}

std::string named(const std::string& flag, const std::string& text) {
    if (text.empty()) throw UsageError(flag + ": want a name, got nothing");
    return text;
}

std::chrono::milliseconds duration(const std::string& text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string unit = text.substr(digits);
    const std::optional<std::uint64_t> count = parse_u64(text.substr(0, digits));
    const std::uint64_t milliseconds = unit == "ms"                  ? 1
                                       : unit == "s" || unit.empty() ? 1000
                                       : unit == "m"                 ? 60000
                                       : unit == "h"                 ? 3600000
                                                                     : 0;
    if (!count || *count == 0 || milliseconds == 0 || *count > kLongestSeconds * 1000 / milliseconds) {
        throw UsageError("--time: want a time like 500ms, 60s, 5m or 2h, at most 30 days, got \"" + text + "\"");
    }
    return std::chrono::milliseconds(*count * milliseconds);
}

void set_shard(CheckRequest& request, const std::string& text) {
    const std::size_t slash = text.find('/');
    const std::optional<std::uint64_t> part = parse_u64(text.substr(0, slash));
    const std::optional<std::uint64_t> parts =
        slash == std::string::npos ? std::nullopt : parse_u64(text.substr(slash + 1));
    if (!part || !parts || *part == 0 || *part > *parts || *parts > UINT32_MAX) {
        throw UsageError("--shard: want I/N with 1 <= I <= N, got \"" + text + "\"");
    }
    request.shard = *part - 1;
    request.shards = *parts;
}

void add_texts(CLI::App& app, const std::string& flag, std::vector<std::string>& target,
               const std::string& description) {
    app.add_option_function<std::vector<std::string>>(
           flag,
           [flag, &target](const std::vector<std::string>& texts) {
               for (const std::string& text : texts) {
                   const std::string name = named(flag, text);
                   if (std::ranges::find(target, name) == target.end()) target.push_back(name);
               }
           },
           description)
        ->allow_extra_args(false)
        ->type_name("NAME");
}

}  // namespace

CLI::App* add_check(CLI::App& app, CheckRequest& request) {
    CLI::App* check =
        app.add_subcommand("check", "Draws cases, holds every property against a subject, shrinks failures.")
            ->footer(kCheckFooter);
    request.jobs = std::max(1U, std::thread::hardware_concurrency());
    add(*check, "--time", "T", "stop after this time: 500ms, 60s, 5m, 2h",
        [&request](const std::string& text) { request.time = duration(text); });
    add(*check, "--cases", "N", "stop after so many cases, over all shards [10000]",
        [&request](const std::string& text) { request.cases = integer("--cases", text, 1, UINT64_MAX / 2); });
    add(*check, "--seed", "N", "draws other cases [0]",
        [&request](const std::string& text) { request.seed = integer("--seed", text, 0, UINT64_MAX); });
    add(*check, "--shard", "I/N", "the I-th of N parts of the cases [1/1]",
        [&request](const std::string& text) { set_shard(request, text); });
    add(*check, "--jobs", "J", "cases at a time [" + std::to_string(request.jobs) + ", the cores here]",
        [&request](const std::string& text) {
            request.jobs = static_cast<unsigned>(integer("--jobs", text, 1, kMostJobs));
        });
    add(*check, "--device", "NAME", "what the subjects run on [vgpu]",
        [&request](const std::string& text) { request.device = named("--device", text); });
    add_compiler(*check, request.compiler, "as the subjects' names say");
    add_texts(*check, "--subject", request.subjects,
              "what is under test, more than once for several; see --list [vgpu/fmad and vgpu/nofmad]");
    add_texts(*check, "--only", request.properties, "this property, more than once for several; see --list [all]");
    add(*check, "--elements", "N", "groups of exactly N elements",
        [&request](const std::string& text) { request.elements = integer("--elements", text, 1, kMostElements); });
    add(*check, "--report", "DIR", "write report.json, junit.xml, report.html and the worst cases there",
        [&request](const std::string& text) { request.report = named("--report", text); });
    add(*check, "--corpus", "DIR|none",
        "case files that run first, and where a failure goes [property_tests/corpus in the source tree for the "
        "library's "
        "own kernels, else gradguard-cases]",
        [&request](const std::string& text) { request.corpus = named("--corpus", text); });
    check->add_flag("--list", request.list, "print the properties and the subjects, and run nothing");
    check->add_flag("--json", request.json, "print one JSON object on standard output");
    return check;
}

CLI::App* add_replay(CLI::App& app, ReplayRequest& request) {
    CLI::App* replay =
        app.add_subcommand("replay", "Runs one case file and explains it step by step.")->footer(kReplayFooter);
    replay->add_option("CASE", request.file, "a case file")->required()->type_name("");
    add(*replay, "--subject", "NAME", "what is under test [the file's subject, else vgpu/fmad]",
        [&request](const std::string& text) { request.subject = named("--subject", text); });
    add(*replay, "--device", "NAME", "what the subject runs on [vgpu]",
        [&request](const std::string& text) { request.device = named("--device", text); });
    add_compiler(*replay, request.compiler, "as the subject's name says");
    add(*replay, "--step", "N", "explain this step, counted from 0",
        [&request](const std::string& text) { request.step = integer("--step", text, 0, UINT64_MAX); });
    add(*replay, "--entry", "N", "explain this entry, counted from 0",
        [&request](const std::string& text) { request.entry = integer("--entry", text, 0, UINT64_MAX); });
    add(*replay, "--index", "N", "explain this element of the entry, counted from 0",
        [&request](const std::string& text) { request.index = integer("--index", text, 0, UINT64_MAX); });
    replay->add_flag("--json", request.json, "print one JSON object on standard output");
    return replay;
}

}  // namespace gradguard::tools
