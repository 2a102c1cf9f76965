// SPDX-License-Identifier: Apache-2.0
// What a module may look like, and that everything else is refused with its line and instruction.
#include <gtest/gtest.h>

#include "kernels/ptx/embedded.h"
#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

constexpr const char* kHeader = ".version 9.0\n.target sm_80\n.address_size 64\n";
constexpr const char* kRegisters =
    ".reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<4>;\n.reg .f32 %f<4>;\n.reg .b64 %d<4>;\n.reg .f64 %g<4>;\n";

/// The message of the refusal; empty when the module was accepted.
std::string refusal(const std::string& ptx) {
    try {
        Module::load(ptx, "bad.ptx");
    } catch (const PtxError& error) {
        EXPECT_EQ(error.file(), "bad.ptx");
        EXPECT_EQ(std::string(error.what()).rfind("bad.ptx:" + std::to_string(error.line()) + ": ", 0), 0U)
            << error.what();
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        return error.what();
    }
    return {};
}

/// The refusal of one instruction, which stands on line 12 of its module.
std::string refusal_of(const std::string& instruction) {
    return refusal(std::string(kHeader) + ".entry k()\n{\n" + kRegisters + instruction + "\nret;\n}\n");
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Parser, RefusesUnknownInstructionsWithLineAndText) {
    for (const char* instruction :
         {"frobnicate.s32 %r1, %r2;", "add.s128 %r1, %r2, %r3;", "add.rx.f32 %f1, %f2, %f3;",
          "ld.global.v3.u32 {%r1, %r2, %r3}, [%d1];", "ld.texture.u32 %r1, [%d1];", "st.const.u32 [%d1], %r1;",
          "ld.global.nocache.u32 %r1, [%d1];", "setp.zz.s32 %p1, %r1, %r2;", "setp.lt.nand.s32 %p1, %r1, %r2, %p2;",
          "cvt.rn.f32.tf32 %f1, %f2;", "bar.flush 0;", "add.rn.s32 %r1, %r2, %r3;", "cvt.f32.s32 %f1, %r1;",
          "div.f32 %f1, %f2, %f3;", "bra.maybe $x;"}) {
        const std::string message = refusal_of(instruction);
        EXPECT_TRUE(contains(message, "bad.ptx:12: ")) << instruction << " -> " << message;
        EXPECT_TRUE(contains(message, instruction)) << instruction << " -> " << message;
        EXPECT_TRUE(contains(message, "is not supported") || contains(message, "not defined")) << message;
    }
}

TEST(Parser, RefusesApproximateInstructions) {
    for (const char* instruction : {"sqrt.approx.f32 %f1, %f2;", "div.full.f32 %f1, %f2, %f3;",
                                    "ex2.approx.ftz.f32 %f1, %f2;", "rcp.approx.ftz.f64 %g1, %g2;"}) {
        EXPECT_TRUE(contains(refusal_of(instruction), "approximate instruction")) << instruction;
    }
}

TEST(Parser, RefusesOperandsThatDoNotFit) {
    for (const char* instruction :
         {"add.s32 %r1, %r2;", "add.s32 %r1, %r2, %r3, %r1;", "add.s32 %r1, %d1, %r2;", "add.f32 %f1, %f2, 3;",
          "add.s32 %r1, %r2, 0f3F800000;", "add.f32 %f1, %r2, %f3;", "add.s32 %p1, %r1, %r2;",
          "selp.s32 %r1, %r2, %r3, %r1;", "mul.wide.u32 %r1, %r2, %r3;", "add.s32 5, %r1, %r2;",
          "add.s64 %d1, %r1, %d2;", "mov.u64 %d1, %tid.x;", "ld.global.f32 %r1, [%d1];", "bra 17;", "bar.sync 16;",
          "shl.b32 %r1, %r2, %d1;"}) {
        const std::string message = refusal_of(instruction);
        const bool f32_into_b32 = std::string(instruction) == "ld.global.f32 %r1, [%d1];";  // bits are of any kind
        const bool f32_from_b32 = std::string(instruction) == "add.f32 %f1, %r2, %f3;";
        if (f32_into_b32 || f32_from_b32) {
            EXPECT_EQ(message, "");
        } else {
            EXPECT_TRUE(contains(message, "bad.ptx:12: ") && contains(message, instruction))
                << instruction << " -> " << message;
        }
    }
}

TEST(Parser, RefusesUndeclaredNames) {
    EXPECT_TRUE(contains(refusal_of("add.s32 %r1, %r2, %r9;"), "'%r9' is neither declared"));
    EXPECT_TRUE(contains(refusal_of("mov.u32 %r1, %pm0;"), "'%pm0'"));
    EXPECT_TRUE(contains(refusal_of("bra $nowhere;"), "'$nowhere' is not defined"));
    EXPECT_TRUE(contains(refusal_of("@%r1 bra $x;"), "no predicate register"));
    EXPECT_TRUE(contains(refusal_of("ld.param.u32 %r1, [nothing];"), "address of something unknown"));
}

TEST(Parser, RefusesUnknownDirectivesAndMalformedText) {
    const auto line_of = [](const std::string& message) { return message.substr(0, message.find(": ")); };
    EXPECT_EQ(line_of(refusal(std::string(kHeader) + ".frob x;\n")), "bad.ptx:4");
    EXPECT_EQ(line_of(refusal(std::string(kHeader) + ".alias f, g;\n")), "bad.ptx:4");
    EXPECT_EQ(line_of(refusal(std::string(kHeader) + ".global .texref t;\n")), "bad.ptx:4");
    EXPECT_EQ(line_of(refusal(std::string(kHeader) + ".entry k()\n{\n.tex .u64 x;\nret;\n}\n")), "bad.ptx:6");
    EXPECT_EQ(line_of(refusal(std::string(kHeader) + ".entry k()\n{\nret;\n")), "bad.ptx:7");
    EXPECT_EQ(line_of(refusal(std::string(kHeader) + ".entry k()\n{\nret\n}\n")), "bad.ptx:6");
    EXPECT_EQ(line_of(refusal(".version 9.0\n.target sm_80\n.address_size 32\n")), "bad.ptx:3");
    EXPECT_TRUE(contains(refusal(".target sm_80\n"), "without .version"));
    EXPECT_TRUE(contains(refusal(""), "nothing in it"));
    EXPECT_TRUE(contains(refusal(".version 9.0\n"), "without .target"));
    EXPECT_TRUE(contains(refusal(std::string(kHeader) + "/* no end"), "comment without end"));
    EXPECT_TRUE(contains(refusal(std::string(kHeader) + "\x01"), "character"));
    EXPECT_TRUE(contains(refusal(std::string(kHeader) + ".entry k()\n{\n.reg .f32 %f;\nmov.f32 %f, 0f3F80;\nret;\n}"),
                         "8 digits"));
    EXPECT_TRUE(contains(refusal_of("mov.u32 %r1, 99999999999999999999;"), "beyond 64 bits"));
    EXPECT_TRUE(
        contains(refusal(std::string(kHeader) + ".entry k()\n{\nret;\n}\n.entry k()\n{\nret;\n}\n"), "defined twice"));
}

TEST(Parser, DescribesEntries) {
    const auto module = Module::load(
        std::string(kHeader) +
            ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 8 .b8 big[100];\n"
            ".visible .entry one(.param .u32 a, .param .u64 .ptr .global .align 16 b, .param .align 8 .b8 c[20])\n"
            ".maxntid 128, 2, 1\n.minnctapersm 2\n{\n.shared .align 4 .b32 own;\n.reg .b32 %r;\n"
            "mov.u32 %r, big;\nmov.u32 %r, own;\nmov.u32 %r, dynamic;\nret;\n}\n"
            ".weak .entry two()\n.reqntid 64\n{\nret;\n}\n",
        "two.ptx");
    ASSERT_EQ(module->entries().size(), 2U);
    const EntryInfo& one = *module->find("one");
    ASSERT_EQ(one.params.size(), 3U);
    EXPECT_EQ(one.params[1].offset_bytes, 8U);
    EXPECT_EQ(one.params[1].size_bytes, 8U);
    EXPECT_EQ(one.params[2].offset_bytes, 16U);
    EXPECT_EQ(one.param_bytes, 36U);
    EXPECT_EQ(one.max_threads, 256U);
    EXPECT_EQ(one.static_shared_bytes, 112U) << "100, 4 more, and up to the 16 bytes where the dynamic part begins";
    EXPECT_TRUE(one.uses_dynamic_shared);
    EXPECT_EQ(module->find("two")->required_block, (Dim3{64, 1, 1}));
    EXPECT_EQ(module->find("two")->param_bytes, 0U);
    EXPECT_EQ(module->find("three"), nullptr);
}

TEST(Parser, NestedScopesHideOuterNames) {
    const std::string body = R"(
    .reg .b32 %x;
    .reg .b64 %o;
    ld.param.u64 %o, [out];
    mov.u32 %x, 1;
    {
    .reg .b32 %x;
    mov.u32 %x, 2;
    bra $skip;
    mov.u32 %x, 3;
$skip:
    st.global.u32 [%o+4], %x;
    }
    {
    bra $skip;
$skip:
    st.global.u32 [%o], %x;
    }
    ret;
)";
    Machine machine;
    const Address out = machine.allocate(8);
    run(machine, ptx_module(".param .u64 out", body), {{1}, {1}}, Arguments(out));
    EXPECT_EQ(download<std::uint32_t>(machine, out, 2), (std::vector<std::uint32_t>{1, 2}));
}

TEST(Parser, LiteralsOfEveryForm) {
    EXPECT_EQ(evaluate_one("mov.u32 %d_r, 0x1F;", 0), 31U);
    EXPECT_EQ(evaluate_one("mov.u32 %d_r, 037;", 0), 31U);
    EXPECT_EQ(evaluate_one("mov.u32 %d_r, 0b11111;", 0), 31U);
    EXPECT_EQ(evaluate_one("mov.u32 %d_r, 31U;", 0), 31U);
    EXPECT_EQ(evaluate_one("mov.s32 %d_r, -1;", 0), 0xFFFFFFFFU);
    EXPECT_EQ(evaluate_one("mov.f32 %d_f, 0f3F800000;", 0), bits(1.0F));
    EXPECT_EQ(evaluate_one("mov.f32 %d_f, 1.5;", 0), bits(1.5F));
    EXPECT_EQ(evaluate_one("mov.f64 %d_g, 0dBFF0000000000000;", 0), bits(-1.0));
    EXPECT_EQ(evaluate_one("mov.f64 %d_g, -2.5e3;", 0), bits(-2500.0));
    EXPECT_EQ(evaluate_one("mov.u64 %d_d, 0xFFFFFFFFFFFFFFFF;", 0), ~std::uint64_t{0});
    EXPECT_EQ(evaluate_one("mov.u32 %d_r, WARP_SZ;", 0), 32U);
}

TEST(Parser, LoadsTheKernelsOfBothBuilds) {
    for (const char* module : {"statistics", "update"}) {
        for (const char* build : {"fmad", "nofmad"}) {
            const auto loaded = Module::load(kernels::embedded_ptx(module, build), module);
            EXPECT_GE(loaded->entries().size(), 4U);
        }
    }
}

TEST(Parser, TheTableNamesItsInstructions) {
    const auto names = instruction_names();
    for (const char* name : {"add.rn.f32", "fma.rn.f32", "sqrt.rn.f32", "max.NaN.f32", "setp.lt.u32", "cvt.f32.f16",
                             "ld.global.b32", "add.rz.f32"}) {
        EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << name;
    }
    for (const std::string& name : names) EXPECT_NE(name[0], '%') << "an internal row";
}

}  // namespace
}  // namespace gradguard::vgpu::test
