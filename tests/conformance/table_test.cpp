// SPDX-License-Identifier: Apache-2.0
// The instruction table and the conformance tests name the same instructions.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/vgpu/module.h"
#include "tests/conformance/check.h"
#include "tests/conformance/instruction_list.h"
#include "tests/conformance/micro_file.h"

namespace gradguard::conformance {
namespace {

TEST(ConformanceTable, EveryInstructionHasAModelAndATest) {
    const std::vector<std::string> tested = instructions_under_test();
    std::string lacking;
    for (const std::string& name : vgpu::instruction_names()) {
        const bool has_test = std::binary_search(tested.begin(), tested.end(), name);
        if (!has_test || !find_model(name)) lacking += "\n  " + name;
    }
    EXPECT_TRUE(lacking.empty()) << "no model or no test:" << lacking;
}

TEST(ConformanceTable, WhatIsNoInstructionHasNoModel) {
    for (const char* name :
         {"add.f31", "add.rn.sat.s32", "fma.f32", "cvt.f16.f32", "cvt.s32.f32", "div.approx.f64", "shl.u32",
          "setp.lo.s32", "setp.lt.b32", "ld.global.v4.b64", "lop3.b64", "mul.wide", "shfl.sync.idx.b64"}) {
        EXPECT_FALSE(find_model(name).has_value()) << name;
    }
}

/// A model that is wrong in one point must be noticed: add with the other rounding, a comparison that takes NaN for
/// equal, a shift that wraps.
TEST(ConformanceTable, AWrongModelDisagreesWithTheMachine) {
    for (const auto& [name, wrong] :
         {std::pair{"add.rn.f32", "add.rz.f32"}, std::pair{"setp.eq.f32", "setp.equ.f32"},
          std::pair{"shf.l.wrap.b32", "shf.l.clamp.b32"}, std::pair{"min.f32", "min.ftz.f32"},
          std::pair{"fma.rn.f64", "fma.rm.f64"}, std::pair{"cvt.rni.s32.f32", "cvt.rzi.s32.f32"}}) {
        auto model = find_model(wrong);
        ASSERT_TRUE(model.has_value());
        model->written = name;
        EXPECT_FALSE(check(*model, {.tuples = 4096}).passed()) << name << " passed for " << wrong;
    }
}

TEST(ConformanceTable, FlushingMachinesFollowTheFlushingModel) {
    int checked = 0;
    for (const std::string& name : vgpu::instruction_names()) {
        const auto model = find_model(name, {.flush_all = true});
        if (!model || model->shape != Shape::Lane || name.find("f32") == std::string::npos) continue;
        ++checked;
        const CheckResult result = check(*model, {.tuples = 2048, .flush_subnormals = true});
        EXPECT_TRUE(result.passed()) << name << ": " << result.text();
    }
    EXPECT_GT(checked, 100);
}

TEST(ConformanceTable, MicroPtxFilesAreWhatIsGenerated) {
    const std::filesystem::path folder = std::filesystem::path(GRADGUARD_SOURCE_DIR) / "tests/conformance/ptx";
    std::string differing;
    std::size_t expected = 0;
    for (const std::string& name : instructions_under_test()) {
        const auto model = find_model(name);
        if (!model) continue;
        ++expected;
        std::ifstream file(folder / micro_file_name(name));
        std::stringstream text;
        text << file.rdbuf();
        if (!file || text.str() != micro_file_text(*model)) differing += "\n  " + micro_file_name(name);
    }
    EXPECT_TRUE(differing.empty()) << "run gradguard_write_micro_ptx " << folder << ":" << differing;
    std::size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        found += entry.path().extension() == ".ptx" ? 1 : 0;
    EXPECT_EQ(found, expected) << "files of instructions that are gone";
}

}  // namespace
}  // namespace gradguard::conformance
