// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/exact_int.h"

namespace gradguard::conformance {

namespace {

IntFormat unsigned_of(IntFormat format) { return {format.bits, false}; }

/// The product as a pattern of twice the size; both factors fit in 64 bits, so the two's complement product is exact.
Wide full_product(IntFormat format, Bits a, Bits b) {
    if (!format.is_signed) return static_cast<Wide>(a & ones(format.bits)) * (b & ones(format.bits));
    return static_cast<Wide>(value_of(format, a) * value_of(format, b));
}

SignedWide signed_low_bits(IntFormat format, Bits a, int bits) { return value_of({bits, format.is_signed}, a); }

}  // namespace

Carried add_with_carry(IntFormat format, Bits a, Bits b, bool carry_in) {
    const IntFormat plain = unsigned_of(format);
    const SignedWide sum = value_of(plain, a) + value_of(plain, b) + (carry_in ? 1 : 0);
    return {pattern_of(format, sum), sum > greatest(plain)};
}

Carried sub_with_borrow(IntFormat format, Bits a, Bits b, bool borrow_in) {
    const IntFormat plain = unsigned_of(format);
    const SignedWide difference = value_of(plain, a) - value_of(plain, b) - (borrow_in ? 1 : 0);
    return {pattern_of(format, difference), difference < 0};
}

Bits add_saturated(IntFormat format, Bits a, Bits b) {
    return pattern_of(format, clamped(format, value_of(format, a) + value_of(format, b)));
}

Bits sub_saturated(IntFormat format, Bits a, Bits b) {
    return pattern_of(format, clamped(format, value_of(format, a) - value_of(format, b)));
}

Bits multiply(IntFormat format, Half half, Bits a, Bits b) {
    const Wide product = full_product(format, a, b);
    if (half == Half::Full) return static_cast<Bits>(product) & ones(2 * format.bits);
    return static_cast<Bits>(half == Half::Lo ? product : product >> format.bits) & ones(format.bits);
}

Bits multiply_add(IntFormat format, Half half, Bits a, Bits b, Bits c) {
    const int result_bits = half == Half::Full ? 2 * format.bits : format.bits;
    return (multiply(format, half, a, b) + c) & ones(result_bits);
}

Bits multiply_add_saturated(IntFormat format, Bits a, Bits b, Bits c) {
    const SignedWide product = value_of(format, multiply(format, Half::Hi, a, b));
    return pattern_of(format, clamped(format, product + value_of(format, c)));
}

Bits multiply24(IntFormat format, Half half, Bits a, Bits b) {
    const SignedWide product = signed_low_bits(format, a, 24) * signed_low_bits(format, b, 24);
    return pattern_of(format, half == Half::Hi ? product >> 16 : product);
}

std::optional<Bits> divide(IntFormat format, Bits a, Bits b) {
    const SignedWide divisor = value_of(format, b);
    if (divisor == 0) return std::nullopt;
    const SignedWide quotient = value_of(format, a) / divisor;
    if (quotient > greatest(format)) return std::nullopt;
    return pattern_of(format, quotient);
}

std::optional<Bits> remainder(IntFormat format, Bits a, Bits b) {
    const SignedWide divisor = value_of(format, b);
    if (divisor == 0 || !divide(format, a, b)) return std::nullopt;
    return pattern_of(format, value_of(format, a) % divisor);
}

Bits int_min(IntFormat format, Bits a, Bits b) {
    return pattern_of(format, value_of(format, a) < value_of(format, b) ? value_of(format, a) : value_of(format, b));
}

Bits int_max(IntFormat format, Bits a, Bits b) {
    return pattern_of(format, value_of(format, a) > value_of(format, b) ? value_of(format, a) : value_of(format, b));
}

Bits int_abs(IntFormat format, Bits a) {
    const SignedWide value = value_of(format, a);
    return pattern_of(format, value < 0 ? -value : value);
}

Bits int_neg(IntFormat format, Bits a) { return pattern_of(format, -value_of(format, a)); }

Bits sad(IntFormat format, Bits a, Bits b, Bits c) {
    const SignedWide difference = value_of(format, a) - value_of(format, b);
    return pattern_of(format, value_of(format, c) + (difference < 0 ? -difference : difference));
}

Bits dp4a(bool a_signed, bool b_signed, Bits a, Bits b, Bits c) {
    SignedWide sum = value_of({32, a_signed || b_signed}, c);
    for (int i = 0; i < 4; ++i) sum += value_of({8, a_signed}, a >> (8 * i)) * value_of({8, b_signed}, b >> (8 * i));
    return pattern_of({32, false}, sum);
}

Bits dp2a(bool a_signed, bool b_signed, bool high, Bits a, Bits b, Bits c) {
    SignedWide sum = value_of({32, a_signed || b_signed}, c);
    for (int i = 0; i < 2; ++i) {
        sum += value_of({16, a_signed}, a >> (16 * i)) * value_of({8, b_signed}, b >> (8 * i + (high ? 16 : 0)));
    }
    return pattern_of({32, false}, sum);
}

bool int_compare(IntFormat format, IntCompareOp op, Bits a, Bits b) {
    const SignedWide x = value_of(format, a);
    const SignedWide y = value_of(format, b);
    switch (op) {
        case IntCompareOp::Eq:
            return x == y;
        case IntCompareOp::Ne:
            return x != y;
        case IntCompareOp::Lt:
            return x < y;
        case IntCompareOp::Le:
            return x <= y;
        case IntCompareOp::Gt:
            return x > y;
        case IntCompareOp::Ge:
            return x >= y;
    }
    return false;
}

Bits atomic(IntFormat format, AtomicOp op, Bits memory, Bits b, Bits c) {
    const Bits mask = ones(format.bits);
    const Bits old = memory & mask;
    const Bits operand = b & mask;
    switch (op) {
        case AtomicOp::Add:
            return (old + operand) & mask;
        case AtomicOp::Min:
            return int_min(format, old, operand);
        case AtomicOp::Max:
            return int_max(format, old, operand);
        case AtomicOp::And:
            return old & operand;
        case AtomicOp::Or:
            return old | operand;
        case AtomicOp::Xor:
            return old ^ operand;
        case AtomicOp::Exch:
            return operand;
        case AtomicOp::Inc:
            return old >= operand ? 0 : old + 1;
        case AtomicOp::Dec:
            return old == 0 || old > operand ? operand : old - 1;
        case AtomicOp::Cas:
            return old == operand ? c & mask : old;
    }
    return old;
}

}  // namespace gradguard::conformance
