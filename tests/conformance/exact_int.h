// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "tests/conformance/exact_convert.h"

/// An independent model of PTX's integer, logic and shift instructions, by 128-bit arithmetic or bit by bit.
/// Operands are bit patterns in the low `bits` of a Bits; so are results.
namespace gradguard::conformance {

/// PTX ISA "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic Instructions".
struct Carried {
    Bits result = 0;
    bool carry = false;  ///< CC.CF: for subtractions a borrow.
};
Carried add_with_carry(IntFormat format, Bits a, Bits b, bool carry_in);
Carried sub_with_borrow(IntFormat format, Bits a, Bits b, bool borrow_in);
/// .sat: clamped to the type's range (.s32).
Bits add_saturated(IntFormat format, Bits a, Bits b);
Bits sub_saturated(IntFormat format, Bits a, Bits b);

enum class Half : std::uint8_t { Lo, Hi, Full };
/// Lo and Hi give half of the product, Full all of it (twice the operands' size).
Bits multiply(IntFormat format, Half half, Bits a, Bits b);
/// multiply() + c, cut; c has the size of the result.
Bits multiply_add(IntFormat format, Half half, Bits a, Bits b, Bits c);
/// mad.hi.sat.s32.
Bits multiply_add_saturated(IntFormat format, Bits a, Bits b, Bits c);
/// mul24: product of the low 24 bits; Lo: its bits 0 to 31, Hi: 16 to 47.
Bits multiply24(IntFormat format, Half half, Bits a, Bits b);
/// Nothing where the manual leaves the result open (divisor 0; the least number by -1).
std::optional<Bits> divide(IntFormat format, Bits a, Bits b);
std::optional<Bits> remainder(IntFormat format, Bits a, Bits b);

Bits int_min(IntFormat format, Bits a, Bits b);
Bits int_max(IntFormat format, Bits a, Bits b);
Bits int_abs(IntFormat format, Bits a);
Bits int_neg(IntFormat format, Bits a);
/// c + |a - b|.
Bits sad(IntFormat format, Bits a, Bits b, Bits c);

Bits cnot(int bits, Bits a);
/// Bit (a << 2 | b << 1 | c) of the table, for each bit of the operands.
Bits lop3(int bits, Bits a, Bits b, Bits c, unsigned table);
/// Amounts above the size count as the size.
Bits shl(int bits, Bits a, std::uint32_t amount);
Bits shr(IntFormat format, Bits a, std::uint32_t amount);
/// shf: the 64 bits b:a shifted, 32 of them.
Bits funnel(bool left, bool wrap, Bits a, Bits b, std::uint32_t amount);

Bits popc(int bits, Bits a);
Bits clz(int bits, Bits a);
Bits brev(int bits, Bits a);
/// Position of the most significant bit that is not a sign bit, 0xffffffff when there is none.
Bits bfind(IntFormat format, Bits a, bool shift_amount);
Bits bfe(IntFormat format, Bits a, std::uint32_t position, std::uint32_t length);
Bits bfi(int bits, Bits a, Bits b, std::uint32_t position, std::uint32_t length);
Bits bmsk(bool clamp, std::uint32_t position, std::uint32_t width);
Bits szext(bool clamp, bool is_signed, Bits a, std::uint32_t width);
Bits fns(std::uint32_t mask, std::uint32_t base, std::int32_t offset);

enum class PermuteMode : std::uint8_t { Index, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };
Bits prmt(PermuteMode mode, Bits a, Bits b, Bits c);

/// c + sum of the products of four bytes, or of two halves of a with two bytes of b (the upper two if `high`).
Bits dp4a(bool a_signed, bool b_signed, Bits a, Bits b, Bits c);
Bits dp2a(bool a_signed, bool b_signed, bool high, Bits a, Bits b, Bits c);

enum class IntCompareOp : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
bool int_compare(IntFormat format, IntCompareOp op, Bits a, Bits b);

/// PTX ISA "Parallel Synchronization and Communication Instructions: atom, red".
enum class AtomicOp : std::uint8_t { Add, Min, Max, And, Or, Xor, Exch, Inc, Dec, Cas };
/// What memory holds afterwards; `c` is for Cas alone (b is compared, c stored).
Bits atomic(IntFormat format, AtomicOp op, Bits memory, Bits b, Bits c);

}  // namespace gradguard::conformance
