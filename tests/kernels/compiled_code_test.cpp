// SPDX-License-Identifier: Apache-2.0
// What contract section 4 asks of the compiled code, checked on the PTX that is embedded in every binary.
#include <gtest/gtest.h>

#include <cctype>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "harness/vgpu/module.h"
#include "kernels/device/params.h"
#include "kernels/ptx/embedded.h"

namespace gradguard::kernels {
namespace {

const char* const kModules[] = {"statistics", "update"};
const char* const kBuilds[] = {"fmad", "nofmad"};

/// Opcodes with their modifiers ("mul.rn.f32"), each once.
std::set<std::string> opcodes(std::string_view ptx) {
    static const std::regex instruction(R"(^\s*(?:@!?%p\d+\s+)?([a-z][a-z0-9_]*(?:[.:]+[a-z0-9_]+)*)[\s;])");
    std::set<std::string> found;
    std::istringstream lines{std::string(ptx)};
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (std::regex_search(line, match, instruction)) found.insert(match[1]);
    }
    return found;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CompiledCode, HasTheInstructionsOneExpects) {
    // A positive control: the scan of the text below would pass on an empty file.
    EXPECT_TRUE(opcodes(embedded_ptx("statistics", "fmad")).contains("div.rn.f32"));
    EXPECT_TRUE(opcodes(embedded_ptx("update", "fmad")).contains("fma.rn.f32"));
    EXPECT_TRUE(opcodes(embedded_ptx("update", "nofmad")).contains("sqrt.rn.f32"));
}

TEST(CompiledCode, NeverFlushesApproximatesOrAddsAtomically) {
    for (const char* module : kModules) {
        for (const char* build : kBuilds) {
            for (const std::string& opcode : opcodes(embedded_ptx(module, build))) {
                EXPECT_FALSE(contains(opcode, ".ftz")) << module << " " << build << ": " << opcode;
                EXPECT_FALSE(contains(opcode, ".approx")) << module << " " << build << ": " << opcode;
                EXPECT_FALSE(contains(opcode, ".full")) << module << " " << build << ": " << opcode;
                EXPECT_FALSE(opcode.starts_with("atom") || opcode.starts_with("red")) << opcode;
                EXPECT_FALSE(contains(opcode, ".local")) << module << " " << build << ": " << opcode;
            }
        }
    }
}

TEST(CompiledCode, StatisticsRoundEveryOperationOnItsOwnInEveryBuild) {
    for (const char* build : kBuilds) {
        for (const std::string& opcode : opcodes(embedded_ptx("statistics", build))) {
            EXPECT_FALSE(opcode.starts_with("fma") || opcode.starts_with("mad.rn")) << opcode;
            const bool arithmetic =
                opcode.ends_with(".f32") && (opcode.starts_with("mul") || opcode.starts_with("add") ||
                                             opcode.starts_with("sub") || opcode.starts_with("div"));
            if (arithmetic) {
                EXPECT_TRUE(contains(opcode, ".rn.")) << opcode << " may be fused";
            }
        }
    }
}

TEST(CompiledCode, UpdateWithoutContractionRoundsEveryOperationOnItsOwn) {
    for (const std::string& opcode : opcodes(embedded_ptx("update", "nofmad"))) {
        EXPECT_FALSE(opcode.starts_with("fma")) << opcode;
        const bool sum = opcode == "add.f32" || opcode == "sub.f32" || opcode == "mul.f32";
        EXPECT_FALSE(sum) << opcode << " may be fused";
    }
}

TEST(CompiledCode, EntriesHaveTheContractsResources) {
    std::size_t entries = 0;
    for (const char* module : kModules) {
        for (const char* build : kBuilds) {
            const auto loaded = vgpu::Module::load(embedded_ptx(module, build), "embedded");
            for (const vgpu::EntryInfo& entry : loaded->entries()) {
                ++entries;
                EXPECT_EQ(entry.max_threads, 256U) << entry.name;
                EXPECT_EQ(entry.static_shared_bytes, module == std::string("statistics") ? 3072U : 0U) << entry.name;
                const std::size_t bytes = module == std::string("update") ? sizeof(UpdateArguments)
                                          : entry.name == kMergeEntry     ? sizeof(MergeArguments)
                                                                          : sizeof(StatisticsArguments);
                EXPECT_EQ(entry.param_bytes, bytes) << entry.name;
            }
        }
    }
    EXPECT_EQ(entries, 2U * (4U + 24U));
}

}  // namespace
}  // namespace gradguard::kernels
