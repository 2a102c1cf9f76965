// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/exact_convert.h"

namespace gradguard::conformance {

namespace {

/// Nearest integer of a finite number, by `rounding`; magnitudes from 2^66 on come out as 2^66, beyond every type.
SignedWide integer_of(const Number& number, Rounding rounding) {
    if (number.kind == Number::Kind::Zero) return 0;
    constexpr SignedWide kBeyond = SignedWide{1} << 66;
    Wide whole = 0;
    if (number.exponent >= 0) {
        if (number.exponent > 66 || (number.significand >> (66 - number.exponent)) != 0) {
            return number.negative ? -kBeyond : kBeyond;
        }
        whole = number.significand << number.exponent;
    } else {
        // Significands have at most 53 bits: shifting by 64 tells "less than a half" as well as any larger shift.
        const int shift = -number.exponent > 64 ? 64 : -number.exponent;
        whole = number.significand >> shift;
        const Wide rest = number.significand - (whole << shift);
        const Wide half = Wide{1} << (shift - 1);
        const bool up = rounding == Rounding::NearestEven ? rest > half || (rest == half && (whole & 1) != 0)
                        : rounding == Rounding::Down      ? number.negative && rest != 0
                        : rounding == Rounding::Up        ? !number.negative && rest != 0
                                                          : false;
        if (up) ++whole;
    }
    return number.negative ? -static_cast<SignedWide>(whole) : static_cast<SignedWide>(whole);
}

Number number_of(SignedWide value) {
    Number number;
    if (value == 0) return number;
    number.kind = Number::Kind::Finite;
    number.negative = value < 0;
    number.significand = static_cast<Wide>(value < 0 ? -value : value);
    return number;
}

Mode for_result(Format to, Mode mode) {
    mode.ftz = mode.ftz && to == Format::F32;
    return mode;
}

}  // namespace

Bits float_to_float(Format from, Format to, Bits bits, const Mode& mode) {
    return finish(to, unpack(from, bits, mode.ftz && from == Format::F32), for_result(to, mode));
}

Bits float_to_integral(Format format, Bits bits, const Mode& mode) {
    const Number number = unpack(format, bits, mode.ftz && format == Format::F32);
    // Numbers whose unit is 1 or more are integral already; so are zeros, infinities and NaN.
    if (number.kind != Number::Kind::Finite || number.exponent >= 0)
        return finish(format, number, for_result(format, mode));
    Number integral = number_of(integer_of(number, mode.rounding));
    integral.negative = number.negative;
    return finish(format, integral, for_result(format, mode));
}

Bits float_to_int(Format from, IntFormat to, Bits bits, Rounding rounding, bool ftz) {
    const Number number = unpack(from, bits, ftz && from == Format::F32);
    if (number.kind == Number::Kind::NotANumber) {
        return from != Format::F64 && to.bits != 64 ? 0 : Bits{1} << (to.bits - 1);
    }
    if (number.kind == Number::Kind::Infinite) return pattern_of(to, number.negative ? least(to) : greatest(to));
    return pattern_of(to, clamped(to, integer_of(number, rounding)));
}

Bits int_to_float(IntFormat from, Format to, Bits bits, const Mode& mode) {
    return finish(to, number_of(value_of(from, bits)), for_result(to, mode));
}

Bits int_to_int(IntFormat from, IntFormat to, Bits bits, bool saturate) {
    const SignedWide value = value_of(from, bits);
    return pattern_of(to, saturate ? clamped(to, value) : value);
}

}  // namespace gradguard::conformance
