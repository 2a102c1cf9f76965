// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/conformance/exact_float.h"

/// PTX ISA "Data Movement and Conversion Instructions: cvt" as an independent model, integers only.
namespace gradguard::conformance {

/// An integer type of 8, 16, 32 or 64 bits.
struct IntFormat {
    int bits = 32;
    bool is_signed = false;

    bool operator==(const IntFormat&) const = default;
};

constexpr Bits ones(int bits) { return bits >= 64 ? ~Bits{0} : (Bits{1} << bits) - 1; }
/// The value of the low bits of a pattern.
constexpr SignedWide value_of(IntFormat format, Bits bits) {
    bits &= ones(format.bits);
    const bool negative = format.is_signed && ((bits >> (format.bits - 1)) & 1) != 0;
    return static_cast<SignedWide>(bits) - (negative ? SignedWide{1} << format.bits : 0);
}
constexpr SignedWide least(IntFormat format) { return format.is_signed ? -(SignedWide{1} << (format.bits - 1)) : 0; }
constexpr SignedWide greatest(IntFormat format) {
    return (SignedWide{1} << (format.is_signed ? format.bits - 1 : format.bits)) - 1;
}
/// Two's complement, cut to the type's size.
constexpr Bits pattern_of(IntFormat format, SignedWide value) { return static_cast<Bits>(value) & ones(format.bits); }
constexpr SignedWide clamped(IntFormat format, SignedWide value) {
    return value < least(format) ? least(format) : value > greatest(format) ? greatest(format) : value;
}

/// Float to float. ftz touches .f32 alone ("applies only to single-precision inputs and results"). NaN comes out
/// canonical; the manual leaves the payload open.
Bits float_to_float(Format from, Format to, Bits bits, const Mode& mode);
/// cvt.rni/.rzi/.rmi/.rpi between equal float types: to an integral value, the zero's sign kept.
Bits float_to_integral(Format format, Bits bits, const Mode& mode);
/// Out of range: clamped. NaN: 0 unless the source is .f64 or the result has 64 bits, else only the leading bit is set.
Bits float_to_int(Format from, IntFormat to, Bits bits, Rounding rounding, bool ftz);
Bits int_to_float(IntFormat from, Format to, Bits bits, const Mode& mode);
/// Cut, or extended by the source's sign; .sat clamps.
Bits int_to_int(IntFormat from, IntFormat to, Bits bits, bool saturate);

}  // namespace gradguard::conformance
