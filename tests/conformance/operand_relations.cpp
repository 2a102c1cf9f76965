// SPDX-License-Identifier: Apache-2.0
// Tuples whose operands depend on each other: cancellation, ties, double rounding, the edges of the range.
#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/conformance/operands.h"

namespace gradguard::conformance {

namespace {

using Kind = OperandKind::Kind;

int exponent_of(Format format, Bits bits) {
    const auto field = static_cast<int>((bits & magnitude_mask(format)) >> fraction_bits(format));
    return (field == 0 ? 1 : field) - bias(format);
}

Bits random_sign(Format format, Random& random) { return random.chance(2) ? sign_mask(format) : 0; }

/// A positive number of that exponent; below the normal range a subnormal or 0, above it infinity.
Bits scaled(Format format, int exponent, Bits fraction) {
    Number number;
    number.kind = Number::Kind::Finite;
    number.significand = least_normal(format) | (fraction & ones(fraction_bits(format)));
    number.exponent = exponent - fraction_bits(format);
    return round(format, number, Rounding::NearestEven);
}

/// `steps` patterns up or down in magnitude, kept among the finite numbers.
Bits neighbour(Format format, Bits bits, int steps) {
    const auto magnitude = static_cast<SignedWide>(bits & magnitude_mask(format)) + steps;
    const auto last = static_cast<SignedWide>(greatest_finite(format));
    return (bits & sign_mask(format)) | static_cast<Bits>(std::clamp<SignedWide>(magnitude, 0, last));
}

/// An odd integer of exactly `bits` bits, times 2^exponent.
Bits odd_significand(Format format, int bits, int exponent, Random& random) {
    Number number;
    number.kind = Number::Kind::Finite;
    number.significand = (random.bits() & ones(bits)) | (Bits{1} << (bits - 1)) | 1;
    number.exponent = exponent;
    return round(format, number, Rounding::NearestEven);
}

bool is_finite_nonzero(Format format, Bits bits) {
    return !is_zero(format, bits) && !is_infinite(format, bits) && !is_nan(format, bits);
}

Bits usable(Format format, Random& random) {
    for (;;) {
        const Bits bits = any_float(format, random);
        if (is_finite_nonzero(format, bits)) return bits;
    }
}

/// Beside a: cancelling, or at a tie of its last place, or overlapping.
Bits addend(Format format, Bits a, Random& random) {
    const int last_place = exponent_of(format, a) - fraction_bits(format);
    switch (random.below(4)) {
        case 0:
            return neighbour(format, a ^ sign_mask(format), random.between(-3, 3));
        case 1:
            return neighbour(format, scaled(format, last_place - 1, 0), random.between(-1, 1)) |
                   random_sign(format, random);
        case 2:
            return scaled(format, last_place - random.below(3), random.bits()) | random_sign(format, random);
        default: {
            const int distance = random.between(-3, fraction_bits(format) + 3);
            return scaled(format, exponent_of(format, a) - distance, random.bits()) | random_sign(format, random);
        }
    }
}

/// Factors whose product has one bit too many (a tie), lies near the least normal number or near overflow.
std::pair<Bits, Bits> factors(Format format, Random& random) {
    const int precision = fraction_bits(format) + 1;
    const Bits sign = random_sign(format, random);
    if (random.chance(2)) {
        const int bits = random.between(2, precision - 1);
        const int spread = bias(format) / 4;
        const Bits a = odd_significand(format, bits, random.between(-spread, spread), random);
        const Bits b =
            odd_significand(format, precision + random.between(1, 2) - bits, random.between(-spread, spread), random);
        return {a | sign, b};
    }
    const int target = random.chance(3) ? bias(format) + random.between(-1, 1)
                                        : least_exponent(format) - random.between(-2, precision + 2);
    const int first = random.between(std::max(target - bias(format), least_exponent(format)),
                                     std::min(target - least_exponent(format), bias(format)));
    const Bits fraction = random.chance(2) ? 0 : random.bits();
    return {scaled(format, first, random.bits()) | sign, scaled(format, target - first, fraction)};
}

/// c beside a * b.
Bits fused_addend(Format format, Bits a, Bits b, Random& random) {
    const Bits product = mul(format, a, b, Mode{});
    if (!is_finite_nonzero(format, product)) return usable(format, random);
    switch (random.below(5)) {
        case 0:
            return neighbour(format, product ^ sign_mask(format), random.between(-2, 2));
        case 1:
            return float_of_class(format, FloatClass::LeastSubnormal, random);
        case 2:
            return scaled(format, random.between(least_exponent(format), exponent_of(format, product)), 0) |
                   random_sign(format, random);
        case 3: {
            // The product is half of c's last place, or close to it.
            const int exponent = exponent_of(format, product) + fraction_bits(format) + 1;
            return scaled(format, std::min(exponent, bias(format)), random.bits()) | random_sign(format, random);
        }
        default:
            return addend(format, product, random);
    }
}

/// A number of `format` at, or one pattern beside, the middle between two neighbours of the target: `kept` fraction
/// bits survive there.
Bits near_tie(Format format, int exponent, int kept, Random& random) {
    const int dropped = fraction_bits(format) - kept;
    Bits fraction = random.bits();
    if (dropped >= 1 && dropped <= fraction_bits(format)) {
        fraction = (fraction & ~ones(dropped)) | (Bits{1} << (dropped - 1));
    } else if (dropped == fraction_bits(format) + 1) {
        fraction = 0;  // Half of the least quantum.
    }
    return neighbour(format, scaled(format, exponent, fraction), random.between(-1, 1)) | random_sign(format, random);
}

Bits narrow_float(Format format, Format target, Random& random) {
    if (random.chance(2)) {
        const int exponent = random.between(-2, 65);
        return near_tie(format, exponent, exponent, random);
    }
    const int exponent = random.between(least_exponent(target) - fraction_bits(target) - 2, bias(target) + 1);
    const int kept = fraction_bits(target) + std::min(0, exponent - least_exponent(target));
    return near_tie(format, exponent, kept, random);
}

/// An integer with more bits than `target` keeps, at a tie or beside it.
Bits narrow_int(IntFormat format, Format target, Random& random) {
    const int precision = fraction_bits(target) + 1;
    const int usable_bits = format.bits - (format.is_signed ? 1 : 0);
    if (usable_bits <= precision + 1) return any_int(format, random);
    const int length = random.between(precision + 1, usable_bits);
    const Bits tie = Bits{1} << (length - precision - 1);
    const Bits top = ((random.bits() & ones(precision)) | (Bits{1} << (precision - 1))) << (length - precision);
    const Bits value = (top | tie) + static_cast<Bits>(random.between(-1, 1));
    return pattern_of(format, format.is_signed && random.chance(2) ? -static_cast<SignedWide>(value)
                                                                   : static_cast<SignedWide>(value));
}

}  // namespace

OperandGenerator::OperandGenerator(std::vector<OperandKind> kinds, Relation relation, std::uint64_t seed, Format narrow)
    : kinds_(std::move(kinds)), relation_(relation), random_(seed), narrow_(narrow) {}

Bits OperandGenerator::any(const OperandKind& kind) {
    switch (kind.kind) {
        case Kind::Predicate:
            return random_.bits() & 1;
        case Kind::Integer:
            return any_int(kind.int_format, random_);
        case Kind::Float:
            return any_float(kind.float_format, random_);
        case Kind::FloatPair:
            return any_float(kind.float_format, random_) << 16 | any_float(kind.float_format, random_);
        case Kind::IntPair:
            return any_int(kind.int_format, random_) << 16 | any_int(kind.int_format, random_);
        case Kind::Small:
            return !kind.is_exact && random_.chance(8) ? any_int({32, false}, random_)
                                                       : static_cast<Bits>(random_.below(static_cast<int>(kind.limit)));
        case Kind::Selector:
            return random_.bits() & ones(32);
    }
    return 0;
}

void OperandGenerator::next(std::span<Bits> tuple) {
    for (std::size_t i = 0; i < kinds_.size(); ++i) tuple[i] = any(kinds_[i]);
    if (relation_ != Relation::Independent && !random_.chance(3)) relate(tuple);
    for (std::size_t i = 0; i < kinds_.size(); ++i) coverage_.count(i, kinds_[i], tuple[i]);
}

void OperandGenerator::relate(std::span<Bits> tuple) {
    const Kind kind = kinds_[0].kind;
    const Format format = kinds_[0].float_format;
    if (kind == Kind::FloatPair) {
        // The halves are tuples of their own.
        std::vector<OperandKind> halves(kinds_.size(), float_operand(format));
        OperandGenerator inner(std::move(halves), relation_, random_.bits());
        std::vector<Bits> low(kinds_.size());
        std::vector<Bits> high(kinds_.size());
        inner.next(low);
        inner.next(high);
        for (std::size_t i = 0; i < kinds_.size(); ++i) tuple[i] = high[i] << 16 | low[i];
        return;
    }
    if (kind == Kind::Integer) {
        const IntFormat ints = kinds_[0].int_format;
        if (relation_ == Relation::Narrow) tuple[0] = narrow_int(ints, narrow_, random_);
        if (relation_ == Relation::Comparison && kinds_.size() >= 2) {
            tuple[1] = (tuple[0] + static_cast<Bits>(random_.between(-1, 1))) & ones(ints.bits);
        }
        return;
    }
    switch (relation_) {
        case Relation::Independent:
            break;
        case Relation::Sum:
            tuple[0] = usable(format, random_);
            tuple[1] = addend(format, tuple[0], random_);
            if (random_.chance(2)) std::swap(tuple[0], tuple[1]);
            break;
        case Relation::Product:
            std::tie(tuple[0], tuple[1]) = factors(format, random_);
            break;
        case Relation::Quotient: {
            const auto [quotient, divisor] = factors(format, random_);
            tuple[0] = neighbour(format, mul(format, quotient, divisor, Mode{}), random_.between(-1, 1));
            tuple[1] = divisor;
            break;
        }
        case Relation::Root: {
            const Bits root =
                scaled(format, random_.between(least_exponent(format) / 2 - 2, bias(format) / 2), random_.bits());
            tuple[0] = neighbour(format, mul(format, root, root, Mode{}), random_.between(-1, 1));
            break;
        }
        case Relation::Fused:
            if (random_.chance(2)) {
                std::tie(tuple[0], tuple[1]) = factors(format, random_);
            } else {
                tuple[0] = usable(format, random_);
                tuple[1] = usable(format, random_);
            }
            tuple[2] = fused_addend(format, tuple[0], tuple[1], random_);
            break;
        case Relation::Narrow:
            tuple[0] = narrow_float(format, narrow_, random_);
            break;
        case Relation::Comparison:
            tuple[1] =
                neighbour(format, tuple[0], random_.between(-1, 1)) ^ (random_.chance(4) ? sign_mask(format) : 0);
            break;
    }
}

}  // namespace gradguard::conformance
