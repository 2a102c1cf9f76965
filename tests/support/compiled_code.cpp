// SPDX-License-Identifier: Apache-2.0
#include "tests/support/compiled_code.h"

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "harness/vgpu/module.h"
#include "kernels/device/params.h"
#include "reference/contract/constants.h"

namespace gradguard::testing {
namespace {

constexpr unsigned kMostRegisters = 64;

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

bool is_float(const std::string& opcode) {
    return std::ranges::any_of(std::vector{".f16", ".bf16", ".f32", ".f64"},
                               [&](const char* type) { return has(opcode, type); });
}

/// A statement's first word behind labels and its predicate; empty where there is none.
std::string first_word(const std::string& statement) {
    static const std::regex word(R"(^\s*(?:[%$\w]+:\s*)*(?:@!?[%\w]+\s+)?([a-z.][\w.:]*))");
    std::smatch match;
    return std::regex_search(statement, match, word) ? match[1].str() : "";
}

/// What is wrong with an opcode wherever it stands; empty when nothing is.
std::string always_wrong(const std::string& opcode) {
    const auto is = [&](const char* name) { return opcode.starts_with(name); };
    const bool inexact = is("div.") || is("sqrt.") || is("rcp.") || is("rsqrt.");
    if (has(opcode, ".ftz")) return "flushes subnormals";
    if (has(opcode, ".approx") || has(opcode, ".full")) return "approximates";
    if (inexact && is_float(opcode) && !has(opcode, ".rn")) return "is not rounded to nearest";
    if (is("atom.") || is("red.")) return "is an atomic";
    if (has(opcode, ".local")) return "is local memory";
    return "";
}

bool may_be_fused(const std::string& opcode) {
    if (!is_float(opcode)) return false;
    if (opcode.starts_with("fma.") || opcode.starts_with("mad.")) return true;
    const bool arithmetic = opcode.starts_with("add.") || opcode.starts_with("sub.") || opcode.starts_with("mul.");
    return arithmetic && !has(opcode, ".rn.");
}

std::uint32_t shared_bytes(std::string_view module) { return module == "statistics" ? kReductionSharedBytes : 0; }

std::size_t argument_bytes(std::string_view module, const std::string& entry) {
    if (module == "update") return sizeof(kernels::UpdateArguments);
    return entry == kernels::kMergeEntry ? sizeof(kernels::MergeArguments) : sizeof(kernels::StatisticsArguments);
}

void compare(std::vector<std::string>& broken, const std::string& entry, const char* what, std::uint64_t got,
             std::uint64_t want) {
    if (got == want) return;
    broken.push_back(entry + ": " + what + ": got " + std::to_string(got) + ", want " + std::to_string(want));
}

void compare_entries(std::vector<std::string>& broken, std::string_view module, std::vector<std::string> got) {
    std::ranges::sort(got);
    if (got != entries_of(module))
        broken.push_back("entries: got\n" + joined(got) + "want\n" + joined(entries_of(module)));
}

}  // namespace

std::vector<std::string> opcodes(std::string_view ptx) {
    static const std::regex comment(R"(//[^\n]*|/\*[\s\S]*?\*/)");
    std::vector<std::string> found;
    std::istringstream lines(std::regex_replace(std::string(ptx), comment, " "));
    for (std::string line; std::getline(lines, line);) {
        std::replace_if(
            line.begin(), line.end(), [](char c) { return c == '{' || c == '}'; }, ';');
        std::istringstream statements(line);
        for (std::string statement; std::getline(statements, statement, ';');) {
            if (std::string word = first_word(statement); !word.empty()) found.push_back(std::move(word));
        }
    }
    return found;
}

std::vector<std::string> broken_rules(std::string_view module, bool contracted, std::string_view ptx) {
    std::vector<std::string> broken;
    const bool unfused = module == "statistics" || !contracted;
    for (const std::string& opcode : opcodes(ptx)) {
        if (const std::string wrong = always_wrong(opcode); !wrong.empty()) broken.push_back(opcode + " " + wrong);
        if (unfused && may_be_fused(opcode)) broken.push_back(opcode + " may be fused");
    }
    const auto loaded = vgpu::Module::load(ptx, std::string(module), true);
    std::vector<std::string> names;
    for (const vgpu::EntryInfo& entry : loaded->entries()) {
        names.push_back(entry.name);
        compare(broken, entry.name, "threads", entry.max_threads, kThreadsPerBlock);
        compare(broken, entry.name, "bytes of shared memory", entry.static_shared_bytes, shared_bytes(module));
        compare(broken, entry.name, "bytes of arguments", entry.param_bytes, argument_bytes(module, entry.name));
    }
    compare_entries(broken, module, std::move(names));
    return broken;
}

std::vector<std::string> broken_resources(std::string_view module, std::string_view report) {
    static const std::regex function(R"(Function properties for (\S+))");
    static const std::regex stack(R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)");
    static const std::regex used(R"(Used (\d+) registers)");
    static const std::regex shared(R"((\d+) bytes smem)");
    std::vector<std::string> broken, names;
    std::string entry;
    std::istringstream lines{std::string(report)};
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
        if (std::regex_search(line, match, function)) {
            entry = match[1];
        } else if (std::regex_search(line, match, stack)) {
            compare(broken, entry, "bytes of local memory", std::stoul(match[1]), 0);
            compare(broken, entry, "bytes of spill stores", std::stoul(match[2]), 0);
            compare(broken, entry, "bytes of spill loads", std::stoul(match[3]), 0);
        } else if (std::regex_search(line, match, used)) {
            names.push_back(entry);
            if (const unsigned long count = std::stoul(match[1]); count > kMostRegisters) {
                broken.push_back(entry + ": " + std::to_string(count) + " registers, at most 64 wanted");
            }
            const bool any = std::regex_search(line, match, shared);
            compare(broken, entry, "bytes of shared memory", any ? std::stoul(match[1]) : 0, shared_bytes(module));
        }
    }
    compare_entries(broken, module, std::move(names));
    return broken;
}

std::vector<std::string> entries_of(std::string_view module) {
    std::vector<std::string> names;
    for (const char* dtype : {"f32", "f16", "bf16"}) {
        if (module == "statistics") {
            names.push_back(std::string("gradient_statistics_") + dtype);
            continue;
        }
        for (const char* first : {"", "_first"}) {
            for (const char* amsgrad : {"", "_amsgrad"}) {
                for (const char* clipped : {"", "_clipped"}) {
                    names.push_back(std::string("adamw_") + dtype + first + amsgrad + clipped);
                }
            }
        }
    }
    if (module == "statistics") names.emplace_back(kernels::kMergeEntry);
    std::ranges::sort(names);
    return names;
}

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}

}  // namespace gradguard::testing
