// SPDX-License-Identifier: Apache-2.0
// The integer model against this processor's integers where C++ has the operation, against closed forms elsewhere.
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "tests/conformance/exact_warp.h"
#include "tests/conformance/operands.h"

namespace gradguard::conformance {
namespace {

constexpr int kTuples = 200'000;

template <class T, class Wider>
void arithmetic_agrees() {
    const IntFormat f{static_cast<int>(8 * sizeof(T)), std::is_signed_v<T>};
    OperandGenerator generator({int_operand(f.bits, f.is_signed), int_operand(f.bits, f.is_signed)},
                               Relation::Comparison, 3);
    using U = std::make_unsigned_t<T>;
    for (int i = 0; i < kTuples; ++i) {
        Bits t[2];
        generator.next(t);
        const T a = static_cast<T>(t[0]);
        const T b = static_cast<T>(t[1]);
        const auto bits = [](auto x) { return Bits{static_cast<U>(x)}; };
        ASSERT_EQ(add_with_carry(f, t[0], t[1], false).result, bits(static_cast<U>(a) + static_cast<U>(b)));
        ASSERT_EQ(sub_with_borrow(f, t[0], t[1], false).result, bits(static_cast<U>(a) - static_cast<U>(b)));
        const auto product = static_cast<Wider>(Wider{a} * Wider{b});
        ASSERT_EQ(multiply(f, Half::Lo, t[0], t[1]), bits(product));
        ASSERT_EQ(multiply(f, Half::Hi, t[0], t[1]), bits(product >> f.bits));
        ASSERT_EQ(int_min(f, t[0], t[1]), bits(std::min(a, b)));
        ASSERT_EQ(int_max(f, t[0], t[1]), bits(std::max(a, b)));
        ASSERT_EQ(int_compare(f, IntCompareOp::Lt, t[0], t[1]), a < b);
        if (b != 0 && !(f.is_signed && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min())) {
            ASSERT_EQ(divide(f, t[0], t[1]), bits(a / b));
            ASSERT_EQ(remainder(f, t[0], t[1]), bits(a % b));
        } else {
            ASSERT_FALSE(divide(f, t[0], t[1]).has_value());
        }
        const unsigned amount = static_cast<unsigned>(t[1] % static_cast<unsigned>(f.bits));
        ASSERT_EQ(shl(f.bits, t[0], amount), bits(static_cast<U>(static_cast<U>(a) << amount)));
        ASSERT_EQ(shr(f, t[0], amount), bits(a >> amount));
    }
    EXPECT_TRUE(generator.coverage().missing(std::vector<OperandKind>(2, int_operand(f.bits, f.is_signed))).empty());
}

TEST(ExactInt, ArithmeticAgreesWithTheProcessor) {
    arithmetic_agrees<std::int16_t, std::int32_t>();
    arithmetic_agrees<std::uint16_t, std::uint32_t>();
    arithmetic_agrees<std::int32_t, std::int64_t>();
    arithmetic_agrees<std::uint32_t, std::uint64_t>();
    arithmetic_agrees<std::int64_t, SignedWide>();
    arithmetic_agrees<std::uint64_t, Wide>();
}

TEST(ExactInt, BitCountsAgreeWithTheProcessor) {
    Random random(5);
    for (int i = 0; i < kTuples; ++i) {
        const Bits a = any_int({64, false}, random);
        const auto low = static_cast<std::uint32_t>(a);
        ASSERT_EQ(popc(64, a), static_cast<Bits>(std::popcount(a)));
        ASSERT_EQ(clz(64, a), static_cast<Bits>(std::countl_zero(a)));
        ASSERT_EQ(clz(32, low), static_cast<Bits>(std::countl_zero(low)));
        ASSERT_EQ(brev(64, brev(64, a)), a);
        ASSERT_EQ(lop3(32, low, a >> 32, 0, 0xC0), low & (a >> 32));
        ASSERT_EQ(lop3(32, low, a >> 32, i, 0x96), (low ^ (a >> 32) ^ static_cast<Bits>(i)) & ones(32));
        ASSERT_EQ(bfind({64, false}, a, false), a == 0 ? ones(32) : static_cast<Bits>(63 - std::countl_zero(a)));
        const auto position = static_cast<std::uint32_t>(random.below(32));
        ASSERT_EQ(bfe({32, false}, low, position, 32), low >> position);
        ASSERT_EQ(bfe({32, true}, low, position, 32),
                  Bits{static_cast<std::uint32_t>(static_cast<std::int32_t>(low) >> position)});
        ASSERT_EQ(bfi(32, a >> 32, low, position, 0), low);
        ASSERT_EQ(bfe({32, false}, bfi(32, a >> 32, low, position, 32 - position), position, 32 - position),
                  (a >> 32) & ones(32 - static_cast<int>(position)));
        ASSERT_EQ(bmsk(true, position, 5), bfi(32, 31, 0, position, 5));
    }
}

TEST(ExactInt, EdgesFollowTheManual) {
    const IntFormat s32{32, true};
    EXPECT_EQ(shl(32, 1, 32), 0U);
    EXPECT_EQ(shr(s32, 0x80000000, 200), ones(32));
    EXPECT_EQ(shr({16, true}, 0x8000, 16), 0xffffU);
    EXPECT_EQ(funnel(true, true, 0x80000000, 1, 33), 3U);
    EXPECT_EQ(funnel(true, false, 0x80000000, 1, 33), 0x80000000U);
    EXPECT_EQ(funnel(false, false, 7, 9, 32), 9U);
    EXPECT_EQ(funnel(false, true, 7, 9, 32), 7U);
    EXPECT_EQ(add_saturated(s32, 0x7fffffff, 1), 0x7fffffffU);
    EXPECT_EQ(sub_saturated(s32, 0x80000000, 1), 0x80000000U);
    EXPECT_EQ(int_abs(s32, 0x80000000), 0x80000000U);
    EXPECT_TRUE(add_with_carry({32, false}, ones(32), 0, true).carry);
    EXPECT_TRUE(sub_with_borrow({32, false}, 0, 0, true).carry);
    EXPECT_EQ(multiply24({32, true}, Half::Lo, 0xffffff, 5), ones(32) - 4);
    EXPECT_EQ(multiply24({32, false}, Half::Hi, 0xffffff, 0xffffff), 0xffffff * Bits{0xffffff} >> 16);
    EXPECT_EQ(bfind(s32, ones(32), false), ones(32));
    EXPECT_EQ(bfind(s32, 0xfffffff0, true), 28U);
    EXPECT_EQ(sad(s32, ones(32), 1, 10), 12U);
    EXPECT_EQ(prmt(PermuteMode::Index, 0x33221100, 0x77665544, 0x7531), 0x77553311U);
    EXPECT_EQ(prmt(PermuteMode::Index, 0x00008000, 0, 0x9999), ones(32));
    EXPECT_EQ(prmt(PermuteMode::B4e, 0x33221100, 0x77665544, 0), 0x55667700U);
    EXPECT_EQ(prmt(PermuteMode::Rc16, 0x33221100, 0, 1), 0x33223322U);
    EXPECT_EQ(dp4a(true, true, 0xff, 2, 10), 8U);
    EXPECT_EQ(dp2a(true, true, true, 0x0003ffff, 0x05040000, 0), 11U);
    EXPECT_EQ(szext(true, true, 0x1ff, 8), ones(32));
    EXPECT_EQ(szext(false, false, 0x1ff, 40), 0xffU);
    EXPECT_EQ(fns(0b10110, 0, 2), 2U);
    EXPECT_EQ(fns(0b10110, 4, -2), 2U);
    EXPECT_EQ(fns(0b10110, 1, 0), 1U);
    EXPECT_EQ(fns(0b10110, 0, 0), ones(32));
    EXPECT_EQ(atomic({32, false}, AtomicOp::Inc, 5, 5, 0), 0U);
    EXPECT_EQ(atomic({32, false}, AtomicOp::Dec, 0, 5, 0), 5U);
    EXPECT_EQ(atomic({32, false}, AtomicOp::Dec, 9, 5, 0), 5U);
    EXPECT_EQ(atomic({64, false}, AtomicOp::Cas, 9, 9, 1), 1U);
}

TEST(ExactWarp, ShufflesStayInTheirSegment) {
    Lanes values{};
    for (int lane = 0; lane < kLanes; ++lane) values[lane] = static_cast<Bits>(100 + lane);
    const std::uint32_t all = 0xffffffff;
    EXPECT_EQ(shuffle(ShuffleMode::Bfly, values, all, 5, 16, 31).value, Bits{121});
    EXPECT_EQ(shuffle(ShuffleMode::Down, values, all, 30, 4, 31).value, Bits{130});
    EXPECT_FALSE(shuffle(ShuffleMode::Down, values, all, 30, 4, 31).in_range);
    EXPECT_FALSE(shuffle(ShuffleMode::Down, values, all, 3, 5, 0x181f).in_range);
    EXPECT_EQ(shuffle(ShuffleMode::Down, values, all, 3, 4, 0x181f).value, Bits{107});
    EXPECT_EQ(shuffle(ShuffleMode::Up, values, all, 3, 4, 0).value, Bits{103});
    EXPECT_EQ(shuffle(ShuffleMode::Up, values, all, 9, 1, 0x1800).value, Bits{108});
    EXPECT_EQ(shuffle(ShuffleMode::Up, values, all, 8, 1, 0x1800).value, Bits{108});
    EXPECT_EQ(shuffle(ShuffleMode::Idx, values, all, 13, 2, 0x181f).value, Bits{110});
    EXPECT_FALSE(shuffle(ShuffleMode::Idx, values, 0x1, 0, 5, 31).value.has_value());
}

TEST(ExactWarp, VotesMatchesAndReductionsCountMembersOnly) {
    Lanes values{};
    values[0] = 1;
    values[1] = 1;
    values[2] = 2;
    EXPECT_TRUE(vote(VoteOp::All, values, 0b111));
    EXPECT_FALSE(vote(VoteOp::All, values, 0b1111));
    EXPECT_FALSE(vote(VoteOp::Uni, values, 0b1001));
    EXPECT_EQ(ballot(values, 0b1110), 0b0110U);
    EXPECT_EQ(match_any(values, 0b111, 0), 0b011U);
    EXPECT_EQ(match_all(values, 0b011), 0b011U);
    EXPECT_EQ(match_all(values, 0b111), 0U);
    EXPECT_EQ(redux(ReduxOp::Add, false, values, 0b110), 3U);
    EXPECT_EQ(redux(ReduxOp::Min, true, values, 0b101), 1U);
}

}  // namespace
}  // namespace gradguard::conformance
