// SPDX-License-Identifier: Apache-2.0
// Text that nobody writes by hand: it must not cost more memory, stack or time than its length accounts for, and what
// is said about it must be one line. tests/fuzz looks for more of the kind.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/vgpu/machine.h"

namespace gradguard::vgpu {
namespace {

constexpr const char* kHeader = ".version 9.0\n.target sm_80\n.address_size 64\n";

std::string repeated(const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
}

std::string with_body(const std::string& body) {
    return std::string(kHeader) + ".entry k()\n{\n" + body + "\nret;\n}\n";
}

/// The message of the refusal; empty when the module was accepted.
std::string refusal(const std::string& ptx) {
    try {
        Module::load(ptx, "hostile.ptx");
    } catch (const PtxError& error) {
        return error.what();
    }
    return {};
}

void expect_refusal(const std::string& ptx, const std::string& part) {
    const std::string message = refusal(ptx);
    EXPECT_NE(message.find(part), std::string::npos) << message.substr(0, 300);
}

TEST(HostileText, BlocksThatNestWithoutEndAreRefused) {
    expect_refusal(with_body(std::string(1'000'000, '{')), "blocks nest too deeply");
}

TEST(HostileText, OperandsThatNestWithoutEndAreRefused) {
    expect_refusal(with_body("mov.b64 " + std::string(1'000'000, '{')), "operands nest too deeply");
    expect_refusal(with_body("mov.b64 " + repeated("_|", 500'000)), "operands nest too deeply");
}

TEST(HostileText, InitialValuesThatNestWithoutEndAreRefused) {
    expect_refusal(std::string(kHeader) + ".global .b32 g[1] = " + std::string(1'000'000, '{'),
                   "initial values nest too deeply");
}

TEST(HostileText, CallsThatNestWithoutEndAreRefused) {
    std::string functions = ".func f0() { ret; }\n";
    for (int i = 1; i < 2'000; ++i) {
        functions += ".func f" + std::to_string(i) + "() { call f" + std::to_string(i - 1) + "; ret; }\n";
    }
    expect_refusal(kHeader + functions + ".entry k() { call f1999; ret; }", "calls nest too deeply");
}

/// Functions without an instruction of their own, each calling the one before ten times.
std::string tenfold_calls(int levels, const std::string& first_body) {
    std::string functions = ".func f0() {" + first_body + "}\n";
    for (int i = 1; i < levels; ++i) {
        functions +=
            ".func f" + std::to_string(i) + "() {" + repeated(" call f" + std::to_string(i - 1) + ";", 10) + " }\n";
    }
    return kHeader + functions + ".entry k() { call f" + std::to_string(levels - 1) + "; ret; }\n";
}

TEST(HostileText, CallsThatMultiplyAreRefused) {
    expect_refusal(tenfold_calls(12, " ret; "), "too many instructions");
    expect_refusal(tenfold_calls(12, ""), "too many instructions");
    expect_refusal(tenfold_calls(12, repeated(" .local .b8 v;", 1)), "too many instructions");
}

TEST(HostileText, CallsOfAllEntriesTogetherAreBounded) {
    std::string text = tenfold_calls(5, repeated(" trap;", 10));
    for (int i = 0; i < 200; ++i) text += ".entry e" + std::to_string(i) + "() { call f4; ret; }\n";
    expect_refusal(text, "too many instructions");
}

TEST(HostileText, RegistersCostNothingUntilTheyAreNamed) {
    std::string text = kHeader;
    for (int i = 0; i < 1000; ++i) {
        text += ".entry e" + std::to_string(i) + "()\n{\n.reg .b32 %r<1048576>;\nmov.u32 %r1048575, 1;\nret;\n}\n";
    }
    EXPECT_EQ(refusal(text), "");
    expect_refusal(with_body(".reg .b32 %r<1048577>;"), "too many registers");
    expect_refusal(with_body(".reg .b32 %r<4>;\nmov.u32 %r4, 1;"), "'%r4' is neither declared");
    expect_refusal(with_body(".reg .b32 %r<4>;\nmov.u32 %r03, 1;"), "'%r03' is neither declared");
}

TEST(HostileText, ARegisterIsDeclaredOnceHoweverItIsWritten) {
    for (const char* twice : {".reg .b32 %r<4>;\n.reg .b32 %r<9>;", ".reg .b32 %r<4>;\n.reg .b32 %r3;",
                              ".reg .b32 %r3;\n.reg .b32 %r<4>;", ".reg .b32 %r<20>;\n.reg .b32 %r1<5>;",
                              ".reg .b32 %r1<5>;\n.reg .b32 %r<11>;", ".reg .b32 %r;\n.reg .b64 %r;"}) {
        expect_refusal(with_body(twice), "is declared twice");
    }
    for (const char* once : {".reg .b32 %r<4>;\n.reg .b32 %r4;", ".reg .b32 %r<10>;\n.reg .b32 %r1<5>;",
                             ".reg .b32 %r<4>;\n{ .reg .b32 %r<4>; }", ".reg .b32 %r<4>;\n.reg .b32 %r03;",
                             ".reg .b32 %r<0>;\n.reg .b32 %r0;"}) {
        EXPECT_EQ(refusal(with_body(once)), "") << once;
    }
}

TEST(HostileText, OffsetsOfAddressesWrap) {
    const std::string wraps = "[%d+9223372036854775807+1+-9223372036854775808]";
    EXPECT_EQ(refusal(with_body(".reg .b64 %d;\n.reg .b32 %r;\nld.global.b32 %r, " + wraps + ";")), "");
    EXPECT_EQ(
        refusal(std::string(kHeader) + ".global .b64 g[2];\n.global .u64 a = generic(g-9223372036854775808)-1;\n"), "");
}

TEST(HostileText, ThreadsOfABlockDoNotWrap) {
    const auto module =
        Module::load(std::string(kHeader) + ".entry k() .maxntid 65536, 65536, 65536 { ret; }\n", "hostile.ptx");
    EXPECT_EQ(module->entries()[0].max_threads, 0xFFFFFFFFU);
}

TEST(HostileText, WhatIsSaidIsOneLineWithoutControlCharacters) {
    const std::string hostile = "\x1B[31m\x7F\xC2\x9B\t\x01";
    for (const std::string& text :
         {with_body("frobnicate /*" + hostile + "\n*/ 1;"), std::string(kHeader) + ".file 1 " + '"' + hostile + "\" \"",
          std::string(kHeader) + ".global .b8 g = \"" + hostile + "\";", with_body(".pragma \"" + hostile + "\", 1;"),
          with_body("mov.u32 \"" + hostile + "\", 1;")}) {
        const std::string message = refusal(text);
        EXPECT_NE(message, "") << text;
        EXPECT_TRUE(std::ranges::none_of(message, [](unsigned char c) { return c < 0x20 || c == 0x7F; })) << message;
        EXPECT_EQ(message.find("\xC2\x9B"), std::string::npos) << message;
    }
    EXPECT_EQ(one_line("a\nb\x7F\xC2\x9B\xC3\xA9"), "a\\x0ab\\x7f\\xc2\\x9b\xC3\xA9");
}

}  // namespace
}  // namespace gradguard::vgpu
