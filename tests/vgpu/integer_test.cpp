// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/vgpu/ptx_snippet.h"

namespace gradguard::vgpu::test {
namespace {

constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};
constexpr std::uint32_t kLeast = 0x80000000U;

TEST(Integer, AdditionAndSubtractionWrap) {
    EXPECT_EQ(evaluate_one("add.s32 %d_r, %a_r, %b_r;", 0x7FFFFFFF, 1), kLeast);
    EXPECT_EQ(evaluate_one("sub.u32 %d_r, %a_r, %b_r;", 0, 1), 0xFFFFFFFFU);
    EXPECT_EQ(evaluate_one("add.s64 %d_d, %a_d, %b_d;", kAllOnes, 2), 1U);
    EXPECT_EQ(evaluate_one("sub.s16 %d_h, %a_h, %b_h;", 0, 1), 0xFFFFU);
    EXPECT_EQ(evaluate_one("add.sat.s32 %d_r, %a_r, %b_r;", 0x7FFFFFFF, 1), 0x7FFFFFFFU);
    EXPECT_EQ(evaluate_one("sub.sat.s32 %d_r, %a_r, %b_r;", kLeast, 1), kLeast);
}

TEST(Integer, ProductsKeepTheHalfThatIsAskedFor) {
    EXPECT_EQ(evaluate_one("mul.lo.s32 %d_r, %a_r, %b_r;", 0x10001, 0x10001), 0x20001U);
    EXPECT_EQ(evaluate_one("mul.hi.u32 %d_r, %a_r, %b_r;", 0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFEU);
    EXPECT_EQ(evaluate_one("mul.hi.s32 %d_r, %a_r, %b_r;", 0xFFFFFFFF, 0xFFFFFFFF), 0U);
    EXPECT_EQ(evaluate_one("mul.wide.u32 %d_d, %a_r, %b_r;", 0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFE00000001U);
    EXPECT_EQ(evaluate_one("mul.wide.s32 %d_d, %a_r, %b_r;", 0xFFFFFFFF, 4), kAllOnes - 3);
    EXPECT_EQ(evaluate_one("mul.wide.s16 %d_r, %a_h, %b_h;", 0xFFFF, 2), 0xFFFFFFFEU);
    EXPECT_EQ(evaluate_one("mul.hi.u64 %d_d, %a_d, %b_d;", kAllOnes, kAllOnes), kAllOnes - 1);
    EXPECT_EQ(evaluate_one("mul.hi.s64 %d_d, %a_d, %b_d;", kAllOnes, 7), kAllOnes);
    EXPECT_EQ(evaluate_one("mad.lo.s32 %d_r, %a_r, %b_r, %c_r;", 3, 5, 0xFFFFFFFF), 14U);
    EXPECT_EQ(evaluate_one("mad.wide.s32 %d_d, %a_r, %b_r, %c_d;", 0xFFFFFFFF, 4, 10), 6U);
    EXPECT_EQ(evaluate_one("mad.hi.u32 %d_r, %a_r, %b_r, %c_r;", 0x80000000, 4, 1), 3U);
}

TEST(Integer, DivisionTruncatesAndNeverTraps) {
    EXPECT_EQ(evaluate_one("div.s32 %d_r, %a_r, %b_r;", static_cast<std::uint32_t>(-7), 2),
              static_cast<std::uint32_t>(-3));
    EXPECT_EQ(evaluate_one("rem.s32 %d_r, %a_r, %b_r;", static_cast<std::uint32_t>(-7), 2),
              static_cast<std::uint32_t>(-1));
    EXPECT_EQ(evaluate_one("div.u32 %d_r, %a_r, %b_r;", 0xFFFFFFF9, 2), 0x7FFFFFFCU);
    EXPECT_EQ(evaluate_one("div.s32 %d_r, %a_r, %b_r;", kLeast, 0xFFFFFFFF), kLeast);
    EXPECT_EQ(evaluate_one("rem.s64 %d_d, %a_d, %b_d;", std::uint64_t{1} << 63, kAllOnes), 0U);
    EXPECT_EQ(evaluate_one("div.u32 %d_r, %a_r, %b_r;", 5, 0), 0xFFFFFFFFU);
    EXPECT_EQ(evaluate_one("rem.u32 %d_r, %a_r, %b_r;", 5, 0), 5U);
    EXPECT_EQ(evaluate_one("div.u64 %d_d, %a_d, %b_d;", kAllOnes, 10), 0x1999999999999999U);
}

TEST(Integer, MinMaxAbsNegRespectTheSign) {
    EXPECT_EQ(evaluate_one("min.s32 %d_r, %a_r, %b_r;", 0xFFFFFFFF, 1), 0xFFFFFFFFU);
    EXPECT_EQ(evaluate_one("min.u32 %d_r, %a_r, %b_r;", 0xFFFFFFFF, 1), 1U);
    EXPECT_EQ(evaluate_one("max.s64 %d_d, %a_d, %b_d;", kAllOnes, 1), 1U);
    EXPECT_EQ(evaluate_one("max.u16 %d_h, %a_h, %b_h;", 0xFFFF, 1), 0xFFFFU);
    EXPECT_EQ(evaluate_one("abs.s32 %d_r, %a_r;", 0xFFFFFFFE), 2U);
    EXPECT_EQ(evaluate_one("neg.s32 %d_r, %a_r;", 5), 0xFFFFFFFBU);
}

TEST(Integer, ShiftsClampAtTheWidth) {
    EXPECT_EQ(evaluate_one("shl.b32 %d_r, %a_r, %b_r;", 1, 31), kLeast);
    EXPECT_EQ(evaluate_one("shl.b32 %d_r, %a_r, %b_r;", 1, 32), 0U);
    EXPECT_EQ(evaluate_one("shl.b32 %d_r, %a_r, %b_r;", 1, 0xFFFFFFFF), 0U);
    EXPECT_EQ(evaluate_one("shr.u32 %d_r, %a_r, %b_r;", kLeast, 40), 0U);
    EXPECT_EQ(evaluate_one("shr.s32 %d_r, %a_r, %b_r;", kLeast, 40), 0xFFFFFFFFU);
    EXPECT_EQ(evaluate_one("shr.s32 %d_r, %a_r, %b_r;", kLeast, 4), 0xF8000000U);
    EXPECT_EQ(evaluate_one("shl.b64 %d_d, %a_d, %b_r;", 1, 63), std::uint64_t{1} << 63);
    EXPECT_EQ(evaluate_one("shl.b64 %d_d, %a_d, %b_r;", 1, 64), 0U);
    EXPECT_EQ(evaluate_one("shr.s64 %d_d, %a_d, %b_r;", std::uint64_t{1} << 63, 100), kAllOnes);
    EXPECT_EQ(evaluate_one("shl.b16 %d_h, %a_h, %b_r;", 1, 15), 0x8000U);
    EXPECT_EQ(evaluate_one("shl.b16 %d_h, %a_h, %b_r;", 1, 16), 0U);
    EXPECT_EQ(evaluate_one("shf.l.wrap.b32 %d_r, %a_r, %b_r, %c_r;", 0x80000000, 1, 33), 3U);
    EXPECT_EQ(evaluate_one("shf.r.clamp.b32 %d_r, %a_r, %b_r, %c_r;", 1, 0xABCD, 99), 0xABCDU);
}

TEST(Integer, LogicAndBitOperations) {
    EXPECT_EQ(evaluate_one("and.b32 %d_r, %a_r, %b_r;", 0xF0F0, 0xFF00), 0xF000U);
    EXPECT_EQ(evaluate_one("or.b64 %d_d, %a_d, %b_d;", 1, std::uint64_t{1} << 40), (std::uint64_t{1} << 40) + 1);
    EXPECT_EQ(evaluate_one("xor.b32 %d_r, %a_r, -1;", 0x0F), 0xFFFFFFF0U);
    EXPECT_EQ(evaluate_one("not.b32 %d_r, %a_r;", 0), 0xFFFFFFFFU);
    EXPECT_EQ(evaluate_one("cnot.b32 %d_r, %a_r;", 0), 1U);
    EXPECT_EQ(evaluate_one("popc.b32 %d_r, %a_r;", 0xFFFF0001), 17U);
    EXPECT_EQ(evaluate_one("popc.b64 %d_r, %a_d;", kAllOnes), 64U);
    EXPECT_EQ(evaluate_one("clz.b32 %d_r, %a_r;", 0), 32U);
    EXPECT_EQ(evaluate_one("clz.b64 %d_r, %a_d;", 1), 63U);
    EXPECT_EQ(evaluate_one("bfind.u32 %d_r, %a_r;", 0x00010000), 16U);
    EXPECT_EQ(evaluate_one("bfind.s32 %d_r, %a_r;", 0xFFFFFFFF), 0xFFFFFFFFU);
    EXPECT_EQ(evaluate_one("brev.b32 %d_r, %a_r;", 1), kLeast);
    EXPECT_EQ(evaluate_one("brev.b64 %d_d, %a_d;", 2), std::uint64_t{1} << 62);
    EXPECT_EQ(evaluate_one("bfe.u32 %d_r, %a_r, 4, 8;", 0xABCDE), 0xCDU);
    EXPECT_EQ(evaluate_one("bfe.s32 %d_r, %a_r, 4, 8;", 0xABCDE), 0xFFFFFFCDU);
    EXPECT_EQ(evaluate_one("bfe.s32 %d_r, %a_r, 28, 8;", kLeast), 0xFFFFFFF8U);
    EXPECT_EQ(evaluate_one("bfe.u64 %d_d, %a_d, 60, 64;", kAllOnes), 15U);
    EXPECT_EQ(evaluate_one("bfi.b32 %d_r, %a_r, %b_r, 8, 4;", 0xFF, 0), 0xF00U);
    EXPECT_EQ(evaluate_one("prmt.b32 %d_r, %a_r, %b_r, %c_r;", 0x33221180, 0x77665544, 0x7408), 0x774480FFU);
    EXPECT_EQ(evaluate_one("lop3.b32 %d_r, %a_r, %b_r, %c_r, 0xE8;", 0xF0, 0xCC, 0xAA), 0xE8U);
}

TEST(Integer, ComparisonsRespectTheSign) {
    EXPECT_EQ(evaluate_one("setp.lt.s32 %d_p, %a_r, %b_r;", 0xFFFFFFFF, 0), 1U);
    EXPECT_EQ(evaluate_one("setp.lt.u32 %d_p, %a_r, %b_r;", 0xFFFFFFFF, 0), 0U);
    EXPECT_EQ(evaluate_one("setp.hs.u32 %d_p, %a_r, %b_r;", 5, 5), 1U);
    EXPECT_EQ(evaluate_one("setp.gt.s64 %d_p, %a_d, %b_d;", kAllOnes, 0), 0U);
    EXPECT_EQ(evaluate_one("setp.hi.u64 %d_p, %a_d, %b_d;", kAllOnes, 0), 1U);
    EXPECT_EQ(evaluate_one("setp.ge.s16 %d_p, %a_h, %b_h;", 0xFFFF, 0), 0U);
    EXPECT_EQ(evaluate_one("setp.ne.b16 %d_p, %a_h, %b_h;", 0x10001, 1), 0U) << "only 16 bits count";
}

TEST(Integer, PredicatesCombine) {
    EXPECT_EQ(evaluate_one("setp.lt.and.s32 %d_p, %a_r, %b_r, %c_p;", 1, 2, 1), 1U);
    EXPECT_EQ(evaluate_one("setp.lt.and.s32 %d_p, %a_r, %b_r, !%c_p;", 1, 2, 1), 0U);
    EXPECT_EQ(evaluate_one("setp.lt.xor.s32 %d_p, %a_r, %b_r, %c_p;", 1, 2, 1), 0U);
    EXPECT_EQ(evaluate_one("setp.lt.or.f32 %d_p, %a_f, %b_f, %c_p;", bits(2.0F), bits(1.0F), 1), 1U);
    EXPECT_EQ(evaluate_one("setp.eq.s32 %a_p|%d_p, %a_r, %b_r;", 1, 2), 1U) << "q is the complement";
    EXPECT_EQ(evaluate_one("setp.lt.and.s32 %a_p|%d_p, %a_r, %b_r, %c_p;", 1, 2, 0), 0U) << "q is (not p) and c";
    EXPECT_EQ(evaluate_one("and.pred %d_p, %a_p, %b_p;", 1, 1), 1U);
    EXPECT_EQ(evaluate_one("xor.pred %d_p, %a_p, %b_p;", 1, 1), 0U);
    EXPECT_EQ(evaluate_one("not.pred %d_p, %a_p;", 0), 1U);
    EXPECT_EQ(evaluate_one("mov.pred %d_p, -1;", 0), 1U);
    EXPECT_EQ(evaluate_one("selp.b32 %d_r, %a_r, %b_r, !%c_p;", 7, 9, 1), 9U);
    EXPECT_EQ(evaluate_one("selp.b64 %d_d, %a_d, %b_d, %c_p;", 7, 9, 1), 7U);
}

TEST(Integer, GuardsHoldLanesBack) {
    const auto results =
        evaluate("@%a_p add.u32 %d_r, %b_r, 1;\n@!%a_p add.u32 %d_r, %b_r, 2;", {{0, 10, 0}, {1, 10, 0}, {0, 20, 0}});
    EXPECT_EQ(results, (std::vector<std::uint64_t>{12, 11, 22}));
}

TEST(Integer, VectorMovesSplitAndJoinRegisters) {
    EXPECT_EQ(evaluate_one("mov.b64 %d_d, {%a_r, %b_r};", 0x11111111, 0x22222222), 0x2222222211111111U);
    EXPECT_EQ(evaluate_one("mov.b64 {%t8, %d_r}, %a_d;", 0x2222222211111111U), 0x22222222U);
    EXPECT_EQ(evaluate_one("mov.b32 %d_r, {%a_h, %b_h};", 0x1111, 0x2222), 0x22221111U);
    EXPECT_EQ(evaluate_one("mov.b32 {_, %d_h}, %a_r;", 0x22221111), 0x2222U);
    EXPECT_EQ(evaluate_one("mov.b64 %d_d, {%a_h, %b_h, %c_h, %a_h};", 1, 2, 3), 0x0001000300020001U);
}

}  // namespace
}  // namespace gradguard::vgpu::test
