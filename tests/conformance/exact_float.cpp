// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/exact_float.h"

#include <bit>
#include <stdexcept>

namespace gradguard::conformance {

namespace {

/// Normalised significands have their leading bit here: room for the carry of a sum above.
constexpr int kTopBit = 126;

int top_bit(Wide value) {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    const auto low = static_cast<std::uint64_t>(value);
    return high != 0 ? 127 - std::countl_zero(high) : 63 - std::countl_zero(low);
}

Number not_a_number() {
    Number number;
    number.kind = Number::Kind::NotANumber;
    return number;
}

Number zero(bool negative) {
    Number number;
    number.negative = negative;
    return number;
}

Number infinite(bool negative) {
    Number number;
    number.kind = Number::Kind::Infinite;
    number.negative = negative;
    return number;
}

/// The same number with its leading bit at `position`.
Number normalised(Number number, int position) {
    const int shift = position - top_bit(number.significand);
    if (shift < 0) throw std::logic_error("normalised: bits would be lost");
    number.significand <<= shift;
    number.exponent -= shift;
    return number;
}

/// Both have their leading bit at kTopBit, `a` has the greater exponent or an equal one.
Number aligned_sum(const Number& a, const Number& b, Rounding rounding) {
    const int distance = a.exponent - b.exponent;
    Wide small = 0;
    bool lost = true;
    if (distance <= kTopBit) {
        small = b.significand >> distance;
        lost = (small << distance) != b.significand;
    }
    Number sum = a;
    sum.sticky = lost;
    if (a.negative == b.negative) {
        sum.significand += small;
        return sum;
    }
    // a - (small + epsilon) = (a - small - 1) + (1 - epsilon).
    const Wide subtrahend = small + (lost ? 1 : 0);
    if (subtrahend == a.significand && !lost) return zero(rounding == Rounding::Down);
    if (subtrahend > a.significand) {
        sum.significand = subtrahend - a.significand;
        sum.negative = b.negative;
        if (lost) throw std::logic_error("exact_sum: a cancelled sum must be exact");
        return sum;
    }
    sum.significand = a.significand - subtrahend;
    return sum;
}

bool round_up(bool odd, Wide rest, Wide half, bool sticky, bool negative, Rounding rounding) {
    const bool inexact = rest != 0 || sticky;
    switch (rounding) {
        case Rounding::NearestEven:
            return rest > half || (rest == half && (sticky || odd));
        case Rounding::TowardZero:
            return false;
        case Rounding::Down:
            return inexact && negative;
        case Rounding::Up:
            return inexact && !negative;
    }
    return false;
}

Bits overflowed(Format format, bool negative, Rounding rounding) {
    const bool to_infinity =
        rounding == Rounding::NearestEven || rounding == (negative ? Rounding::Down : Rounding::Up);
    return (negative ? sign_mask(format) : 0) | (to_infinity ? infinity(format) : greatest_finite(format));
}

}  // namespace

Number unpack(Format format, Bits bits, bool ftz) {
    if (ftz) bits = flushed(format, bits);
    const bool negative = is_negative(format, bits);
    if (is_nan(format, bits)) return not_a_number();
    if (is_infinite(format, bits)) return infinite(negative);
    const Bits fraction = bits & (least_normal(format) - 1);
    const auto field = static_cast<int>((bits & magnitude_mask(format)) >> fraction_bits(format));
    Number number = zero(negative);
    if (field == 0 && fraction == 0) return number;
    number.kind = Number::Kind::Finite;
    number.significand = field == 0 ? fraction : fraction | least_normal(format);
    number.exponent = (field == 0 ? least_exponent(format) : field - bias(format)) - fraction_bits(format);
    return number;
}

Bits round(Format format, const Number& number, Rounding rounding) {
    const Bits sign = number.negative ? sign_mask(format) : 0;
    switch (number.kind) {
        case Number::Kind::NotANumber:
            return canonical_nan(format);
        case Number::Kind::Infinite:
            return sign | infinity(format);
        case Number::Kind::Zero:
            return sign;
        case Number::Kind::Finite:
            break;
    }
    const int leading = number.exponent + top_bit(number.significand);
    if (leading > bias(format)) return overflowed(format, number.negative, rounding);
    const bool at_least_exponent = leading <= least_exponent(format);
    const int quantum = (at_least_exponent ? least_exponent(format) : leading) - fraction_bits(format);
    const int shift = quantum - number.exponent;
    if (shift < 2 && number.sticky) throw std::logic_error("round: too few bits for a sticky number");
    Wide kept = 0;
    Wide rest = 0;
    Wide half = 1;
    if (shift <= 0) {
        kept = number.significand << -shift;
    } else if (shift <= kTopBit) {
        kept = number.significand >> shift;
        rest = number.significand - (kept << shift);
        half = Wide{1} << (shift - 1);
    } else {
        // Nothing is kept. From kTopBit + 2 on, all of it is less than half a quantum: any small rest says so.
        half = Wide{1} << kTopBit;
        rest = shift == kTopBit + 1 ? number.significand : 1;
    }
    auto encoded = static_cast<Bits>(kept);
    // A carry out of the fraction moves into the exponent by itself.
    if (round_up((kept & 1) != 0, rest, half, number.sticky, number.negative, rounding)) ++encoded;
    if (!at_least_exponent) encoded += static_cast<Bits>(leading + bias(format) - 1) << fraction_bits(format);
    if (encoded >= infinity(format)) return overflowed(format, number.negative, rounding);
    return sign | encoded;
}

Bits finish_bits(Format format, Bits bits, const Mode& mode) {
    if (is_nan(format, bits)) return mode.saturate ? 0 : mode.satfinite ? canonical_nan(format) : bits;
    if (mode.ftz) bits = flushed(format, bits);
    if (mode.satfinite && is_infinite(format, bits)) bits -= 1;
    if ((mode.saturate || mode.relu) && is_negative(format, bits)) return 0;
    if (mode.saturate && bits > one(format)) return one(format);
    return bits;
}

Bits finish(Format format, const Number& number, const Mode& mode) {
    return finish_bits(format, round(format, number, mode.rounding), mode);
}

Number exact_sum(const Number& a, const Number& b, Rounding rounding) {
    using Kind = Number::Kind;
    if (a.kind == Kind::NotANumber || b.kind == Kind::NotANumber) return not_a_number();
    if (a.kind == Kind::Infinite || b.kind == Kind::Infinite) {
        if (a.kind == b.kind && a.negative != b.negative) return not_a_number();
        return a.kind == Kind::Infinite ? a : b;
    }
    if (a.kind == Kind::Zero && b.kind == Kind::Zero) {
        return a.negative == b.negative ? a : zero(rounding == Rounding::Down);
    }
    if (a.kind == Kind::Zero) return b;
    if (b.kind == Kind::Zero) return a;
    const Number x = normalised(a, kTopBit - 1);
    const Number y = normalised(b, kTopBit - 1);
    return x.exponent >= y.exponent ? aligned_sum(x, y, rounding) : aligned_sum(y, x, rounding);
}

Number exact_product(const Number& a, const Number& b) {
    using Kind = Number::Kind;
    const bool negative = a.negative != b.negative;
    if (a.kind == Kind::NotANumber || b.kind == Kind::NotANumber) return not_a_number();
    if (a.kind == Kind::Infinite || b.kind == Kind::Infinite) {
        return a.kind == Kind::Zero || b.kind == Kind::Zero ? not_a_number() : infinite(negative);
    }
    if (a.kind == Kind::Zero || b.kind == Kind::Zero) return zero(negative);
    Number product = a;
    product.negative = negative;
    product.exponent = a.exponent + b.exponent;
    product.significand = a.significand * b.significand;
    return product;
}

Number exact_quotient(const Number& a, const Number& b) {
    using Kind = Number::Kind;
    const bool negative = a.negative != b.negative;
    if (a.kind == Kind::NotANumber || b.kind == Kind::NotANumber) return not_a_number();
    if (a.kind == Kind::Infinite) return b.kind == Kind::Infinite ? not_a_number() : infinite(negative);
    if (b.kind == Kind::Infinite) return zero(negative);
    if (b.kind == Kind::Zero) return a.kind == Kind::Zero ? not_a_number() : infinite(negative);
    if (a.kind == Kind::Zero) return zero(negative);
    const Number dividend = normalised(a, kTopBit);
    const Number divisor = normalised(b, 63);
    Number quotient = dividend;
    quotient.negative = negative;
    quotient.exponent = dividend.exponent - divisor.exponent;
    quotient.significand = dividend.significand / divisor.significand;
    quotient.sticky = quotient.significand * divisor.significand != dividend.significand;
    return quotient;
}

Number exact_root(const Number& a) {
    using Kind = Number::Kind;
    if (a.kind == Kind::NotANumber || a.kind == Kind::Zero) return a;
    if (a.negative) return not_a_number();
    if (a.kind == Kind::Infinite) return a;
    Number square = normalised(a, kTopBit - 1);
    if (square.exponent % 2 != 0) {
        square.significand >>= 1;  // Exact: at most 64 bits are in use.
        square.exponent += 1;
    }
    // The schoolbook method, one bit of the root at a time.
    Wide root = 0;
    Wide rest = square.significand;
    for (Wide bit = Wide{1} << kTopBit; bit != 0; bit >>= 2) {
        const Wide trial = root + bit;
        root >>= 1;
        if (rest >= trial) {
            rest -= trial;
            root += bit;
        }
    }
    square.significand = root;
    square.exponent /= 2;
    square.sticky = rest != 0;
    return square;
}

}  // namespace gradguard::conformance
