// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// An independent model of PTX's floating-point instructions: integers only, never the processor's floating-point unit.
/// A number is an integer significand, an exponent and a sticky bit; each result is rounded once.
namespace gradguard::conformance {

__extension__ typedef unsigned __int128 Wide;
__extension__ typedef __int128 SignedWide;

/// A bit pattern of up to 64 bits, in the low bits; the rest is zero.
using Bits = std::uint64_t;

enum class Format : std::uint8_t { F16, BF16, F32, F64 };

constexpr int fraction_bits(Format format) {
    constexpr int kBits[] = {10, 7, 23, 52};
    return kBits[static_cast<int>(format)];
}
constexpr int total_bits(Format format) { return format == Format::F64 ? 64 : format == Format::F32 ? 32 : 16; }
constexpr int exponent_bits(Format format) { return total_bits(format) - 1 - fraction_bits(format); }
constexpr int bias(Format format) { return (1 << (exponent_bits(format) - 1)) - 1; }
/// Exponent of the least normal number.
constexpr int least_exponent(Format format) { return 1 - bias(format); }
constexpr Bits sign_mask(Format format) { return Bits{1} << (total_bits(format) - 1); }
constexpr Bits magnitude_mask(Format format) { return sign_mask(format) - 1; }
constexpr Bits infinity(Format format) { return ((Bits{1} << exponent_bits(format)) - 1) << fraction_bits(format); }
constexpr Bits least_normal(Format format) { return Bits{1} << fraction_bits(format); }
constexpr Bits greatest_finite(Format format) { return infinity(format) - 1; }
constexpr Bits one(Format format) { return static_cast<Bits>(bias(format)) << fraction_bits(format); }
/// What arithmetic returns for NaN. The manual (PTX ISA "Floating Point Instructions") promises only "an unspecified
/// NaN" for .f32 and halves; the virtual GPU promises what GPUs return, 0x7fffffff and 0x7fff. For .f64 this one stands
/// for all.
constexpr Bits canonical_nan(Format format) { return magnitude_mask(format); }

constexpr bool is_negative(Format format, Bits bits) { return (bits & sign_mask(format)) != 0; }
constexpr bool is_nan(Format format, Bits bits) { return (bits & magnitude_mask(format)) > infinity(format); }
constexpr bool is_infinite(Format format, Bits bits) { return (bits & magnitude_mask(format)) == infinity(format); }
constexpr bool is_zero(Format format, Bits bits) { return (bits & magnitude_mask(format)) == 0; }
constexpr bool is_subnormal(Format format, Bits bits) {
    const Bits magnitude = bits & magnitude_mask(format);
    return magnitude != 0 && magnitude < least_normal(format);
}
/// A subnormal becomes a zero of its sign, everything else stays.
constexpr Bits flushed(Format format, Bits bits) {
    return is_subnormal(format, bits) ? bits & sign_mask(format) : bits;
}

enum class Rounding : std::uint8_t { NearestEven, TowardZero, Down, Up };

/// Modifiers of an arithmetic instruction.
struct Mode {
    Rounding rounding = Rounding::NearestEven;
    bool ftz = false;        ///< Subnormal inputs and results become zeros of the same sign.
    bool saturate = false;   ///< .sat: results are clamped to [0, 1], NaN becomes +0.
    bool relu = false;       ///< .relu: negative results become +0, NaN the canonical NaN.
    bool satfinite = false;  ///< .satfinite: results beyond the greatest finite number become it.
};

/// (-1)^negative * (significand + epsilon) * 2^exponent, where 0 < epsilon < 1 if sticky and epsilon = 0 if not.
struct Number {
    enum class Kind : std::uint8_t { Zero, Finite, Infinite, NotANumber };
    Kind kind = Kind::Zero;
    bool negative = false;
    bool sticky = false;
    int exponent = 0;
    Wide significand = 0;
};

Number unpack(Format format, Bits bits, bool ftz = false);
/// The one rounding. Sticky numbers must have at least two bits more than the format keeps.
Bits round(Format format, const Number& number, Rounding rounding);
/// round(), then what the modifiers say about results.
Bits finish(Format format, const Number& number, const Mode& mode);
/// What the modifiers say about a result that is already rounded.
Bits finish_bits(Format format, Bits bits, const Mode& mode);

/// Exact, but for the sticky bit. `rounding` decides the sign of a zero sum of numbers that are not zero.
Number exact_sum(const Number& a, const Number& b, Rounding rounding);
/// Exact for significands of up to 64 bits.
Number exact_product(const Number& a, const Number& b);
/// Significands of up to 64 bits; at least 62 bits and the sticky bit.
Number exact_quotient(const Number& a, const Number& b);
/// 62 bits and the sticky bit.
Number exact_root(const Number& a);

/// PTX ISA "Floating Point Instructions: add, sub, mul, fma, div, sqrt, rcp" in their IEEE 754 forms.
Bits add(Format format, Bits a, Bits b, const Mode& mode);
Bits sub(Format format, Bits a, Bits b, const Mode& mode);
Bits mul(Format format, Bits a, Bits b, const Mode& mode);
Bits fma(Format format, Bits a, Bits b, Bits c, const Mode& mode);
Bits div(Format format, Bits a, Bits b, const Mode& mode);
Bits sqrt(Format format, Bits a, const Mode& mode);
Bits rcp(Format format, Bits a, const Mode& mode);

/// Modifiers of min and max.
struct MinMaxMode {
    bool ftz = false;
    bool nan = false;          ///< .NaN: one NaN makes the result NaN.
    bool xorsign_abs = false;  ///< .xorsign.abs: of the magnitudes, with the product's sign.
};
/// -0 counts as less than +0; a single NaN loses, two give the canonical NaN.
Bits min(Format format, Bits a, Bits b, const MinMaxMode& mode);
Bits max(Format format, Bits a, Bits b, const MinMaxMode& mode);

/// Only the sign bit changes; NaN results are "unspecified NaN".
Bits abs(Format format, Bits a, bool ftz);
Bits neg(Format format, Bits a, bool ftz);
/// The magnitude of b with the sign of a.
Bits copysign(Format format, Bits a, Bits b);

enum class TestOp : std::uint8_t { Finite, Infinite, Number, NotANumber, Normal, Subnormal };
/// testp; zeros count as normal.
bool testp(Format format, TestOp op, Bits a);

enum class CompareOp : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
/// PTX ISA "Comparisons: Floating Point Comparisons".
bool compare(Format format, CompareOp op, Bits a, Bits b, bool ftz);

enum class BoolOp : std::uint8_t { And, Or, Xor };
constexpr bool combine(BoolOp op, bool a, bool b) {
    return op == BoolOp::And ? (a && b) : op == BoolOp::Or ? (a || b) : a != b;
}

}  // namespace gradguard::conformance
