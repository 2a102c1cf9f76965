// SPDX-License-Identifier: Apache-2.0
// What contract section 4 asks of the compiled code, checked on the PTX that is embedded in every binary; and that the
// check sees each violation (nvcc anew, NVRTC and machine code: tests/nvrtc).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "kernels/ptx/embedded.h"
#include "tests/support/compiled_code.h"

namespace gradguard::kernels {
namespace {

using testing::broken_resources;
using testing::broken_rules;
using testing::joined;

std::string text_of(const char* module, const char* build) { return std::string(embedded_ptx(module, build)); }

bool has_opcode(const std::string& ptx, const char* opcode) {
    const auto all = testing::opcodes(ptx);
    return std::find(all.begin(), all.end(), opcode) != all.end();
}

TEST(CompiledCode, HasTheInstructionsOneExpects) {
    // A positive control: the scan of the text would pass on an empty file.
    EXPECT_TRUE(has_opcode(text_of("statistics", "fmad"), "div.rn.f32"));
    EXPECT_TRUE(has_opcode(text_of("update", "fmad"), "fma.rn.f32"));
    EXPECT_TRUE(has_opcode(text_of("update", "nofmad"), "sqrt.rn.f32"));
}

TEST(CompiledCode, OpcodesAreFoundBehindLabelsAndPredicatesAndInBraces) {
    const std::vector<std::string> want = {"add.f32", "mul.rn.f32", "red.global.add.f32", "ret"};
    EXPECT_EQ(
        testing::opcodes("$L1: @!%p1 add.f32 a, b, c;{ mul.rn.f32 a, b, c; }\n"
                         "// div.full.f32 a, b, c;\n/* sqrt.approx.f32\n a; */ @q red.global.add.f32 [a], b; ret;"),
        want);
}

class EmbeddedPtx : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(EmbeddedPtx, KeepsTheRules) {
    const auto [module, build] = GetParam();
    EXPECT_EQ(joined(broken_rules(module, std::string(build) == "fmad", text_of(module, build))), "");
}

INSTANTIATE_TEST_SUITE_P(Each, EmbeddedPtx,
                         ::testing::Values(std::pair("statistics", "fmad"), std::pair("statistics", "nofmad"),
                                           std::pair("update", "fmad"), std::pair("update", "nofmad")),
                         [](const auto& pair) { return std::string(pair.param.first) + "_" + pair.param.second; });

/// One place of our PTX made wrong, and what the check must say of it.
struct Planted {
    const char* name;
    const char* module;
    const char* build;
    const char* from;
    const char* to;
    const char* said;
};
void PrintTo(const Planted& planted, std::ostream* stream) { *stream << planted.name; }

class PlantedInPtx : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedInPtx, IsSeen) {
    const Planted& planted = GetParam();
    std::string ptx = text_of(planted.module, planted.build);
    const std::size_t at = ptx.find(planted.from);
    ASSERT_NE(at, std::string::npos);
    ptx.replace(at, std::string(planted.from).size(), planted.to);
    const std::string said = joined(broken_rules(planted.module, std::string(planted.build) == "fmad", ptx));
    EXPECT_NE(said.find(planted.said), std::string::npos) << said;
}

constexpr const char* kLocal = "{\n\t.local .align 4 .b8 depot[8];\n\t.reg .pred";
constexpr const char* kFusedScan = "fma.rn.f32 \t%f47, %f6, %f36, %f47;\n//";

INSTANTIATE_TEST_SUITE_P(
    Each, PlantedInPtx,
    ::testing::Values(
        Planted{"FlushingInTheScan", "statistics", "fmad", "mul.rn.f32", "mul.rn.ftz.f32", "flushes subnormals"},
        Planted{"FlushingInTheUpdate", "update", "fmad", "sqrt.rn.f32", "sqrt.rn.ftz.f32", "flushes subnormals"},
        Planted{"ApproximateDivision", "statistics", "fmad", "div.rn.f32", "div.approx.f32", "approximates"},
        Planted{"FullRangeDivision", "update", "nofmad", "div.rn.f32", "div.full.f32", "approximates"},
        Planted{"ApproximateRoot", "update", "fmad", "sqrt.rn.f32", "sqrt.approx.f32", "approximates"},
        Planted{"DivisionTowardsZero", "update", "fmad", "div.rn.f32", "div.rz.f32", "is not rounded to nearest"},
        Planted{"AtomicAddition", "statistics", "fmad", "st.global.f32 \t[%rd9], %f51;",
                "red.global.add.f32 \t[%rd9], %f51;", "is an atomic"},
        Planted{"AtomicWithResult", "statistics", "fmad", "st.global.f32 \t[%rd9], %f51;",
                "atom.global.add.f32 \t%f51, [%rd9], %f51;", "is an atomic"},
        Planted{"MoreSharedMemory", "statistics", "fmad", "sums[1024]", "sums[1028]",
                "bytes of shared memory: got 3076"},
        Planted{"LessThreads", "statistics", "fmad", ".maxntid 256, 1, 1", ".maxntid 128, 1, 1", "threads: got 128"},
        Planted{"NoThreadBound", "update", "fmad", ".maxntid 256, 1, 1", "", "threads: got 0"},
        Planted{"LocalMemory", "update", "fmad", "{\n\t.reg .pred", kLocal, "is local memory"},
        Planted{"FusedScan", "statistics", "nofmad", "mul.rn.f32 \t%f37, %f6, %f36;", kFusedScan, "may be fused"},
        Planted{"ScanThatMayBeFused", "statistics", "fmad", "add.rn.f32", "add.f32", "may be fused"},
        Planted{"UpdateThatMayBeFused", "update", "nofmad", "add.rn.f32", "add.f32", "may be fused"},
        Planted{"EntryUnderAnotherName", "update", "fmad", ".entry adamw_f32(", ".entry adam_f32(", "entries: got"},
        Planted{"MoreArguments", "statistics", "fmad", "f32_param_0[24]", "f32_param_0[32]", "arguments: got 32"}),
    [](const auto& planted) { return std::string(planted.param.name); });

/// What `ptxas -v` says of the scan, every entry alike.
std::string report_of(const std::string& stack, const std::string& used) {
    std::string report;
    for (const std::string& entry : testing::entries_of("statistics")) {
        report += "ptxas info    : Compiling entry function '" + entry +
                  "' for 'sm_90'\nptxas info    : Function properties for ";
        report += entry + "\n    " + stack + "\nptxas info    : " + used + "\n";
    }
    return report;
}

constexpr const char* kNoStack = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
constexpr const char* kUsed = "Used 64 registers, used 1 barriers, 3072 bytes smem";

TEST(ResourceReport, WithoutAViolationIsPassed) {
    EXPECT_EQ(joined(broken_resources("statistics", report_of(kNoStack, kUsed))), "");
}

TEST(ResourceReport, EachViolationIsSeen) {
    const std::tuple<const char*, const char*, const char*> planted[] = {
        {"0 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads", kUsed, "bytes of spill stores: got 4"},
        {"0 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads", kUsed, "bytes of spill loads: got 8"},
        {"16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", kUsed, "bytes of local memory: got 16"},
        {kNoStack, "Used 65 registers, used 1 barriers, 3072 bytes smem", "65 registers, at most 64"},
        {kNoStack, "Used 24 registers, used 1 barriers, 4096 bytes smem", "bytes of shared memory: got 4096"},
        {kNoStack, "Used 24 registers", "bytes of shared memory: got 0"},
        {kNoStack, "", "entries: got"}};
    for (const auto& [stack, used, said] : planted) {
        const std::string got = joined(broken_resources("statistics", report_of(stack, used)));
        EXPECT_NE(got.find(said), std::string::npos) << got;
    }
}

}  // namespace
}  // namespace gradguard::kernels
