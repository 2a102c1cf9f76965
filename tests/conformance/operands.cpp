// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/operands.h"

#include <bit>

namespace gradguard::conformance {

namespace {

int greatest_field(Format format) { return (1 << exponent_bits(format)) - 2; }
int eighth(Format format) { return greatest_field(format) / 8; }

Bits normal(Format format, int field, Bits fraction) {
    return (static_cast<Bits>(field) << fraction_bits(format)) | (fraction & ones(fraction_bits(format)));
}

Bits sparse_fraction(Format format, Random& random) {
    Bits fraction = 0;
    for (int i = random.below(3); i >= 0; --i) fraction |= Bits{1} << random.below(fraction_bits(format));
    return fraction;
}

/// Values where instructions change their behaviour: limits of integer types, unit in the last place 1, squares that
/// overflow or vanish; and halves of small integers.
Bits threshold(Format format, Random& random) {
    static constexpr int kExponents[] = {-63, -2, -1, 0, 1, 7, 8, 15, 16, 24, 31, 32, 52, 53, 63, 64};
    const int choice = random.below(20);
    if (choice < 16) {
        const int field = kExponents[choice] + bias(format);
        if (field < 2 || field > greatest_field(format)) return one(format);
        return normal(format, field, 0) + static_cast<Bits>(random.between(-1, 1));
    }
    if (choice == 16) return normal(format, bias(format) + bias(format) / 2, ~Bits{0}) + random.below(3);
    const Mode exact;
    const Bits twice = int_to_float({32, false}, format, static_cast<Bits>(random.below(64)), exact);
    const Bits half = mul(format, twice, one(format) - (Bits{1} << fraction_bits(format)), exact);
    return half == 0 ? half : half + static_cast<Bits>(random.between(-1, 1));
}

}  // namespace

const char* name_of(FloatClass c) {
    static constexpr const char* kNames[] = {
        "Zero",   "LeastSubnormal", "Subnormal", "GreatestSubnormal", "NearLeastNormal", "Tiny",     "PowerOfTwo",
        "Sparse", "Ordinary",       "Huge",      "GreatestFinite",    "Infinite",        "QuietNaN", "SignallingNaN"};
    return kNames[static_cast<int>(c)];
}

FloatClass classify(Format format, Bits bits) {
    const Bits magnitude = bits & magnitude_mask(format);
    const Bits fraction = magnitude & ones(fraction_bits(format));
    const auto field = static_cast<int>(magnitude >> fraction_bits(format));
    if (is_nan(format, bits)) {
        const bool quiet = (fraction >> (fraction_bits(format) - 1)) != 0;
        return quiet ? FloatClass::QuietNaN : FloatClass::SignallingNaN;
    }
    if (magnitude == 0) return FloatClass::Zero;
    if (magnitude == 1) return FloatClass::LeastSubnormal;
    if (magnitude == least_normal(format) - 1) return FloatClass::GreatestSubnormal;
    if (field == 0) return FloatClass::Subnormal;
    if (magnitude <= least_normal(format) + 1) return FloatClass::NearLeastNormal;
    if (magnitude == infinity(format)) return FloatClass::Infinite;
    if (magnitude == greatest_finite(format)) return FloatClass::GreatestFinite;
    if (field <= eighth(format)) return FloatClass::Tiny;
    if (field > greatest_field(format) - eighth(format)) return FloatClass::Huge;
    if (fraction <= 1 || fraction == ones(fraction_bits(format))) return FloatClass::PowerOfTwo;
    return std::popcount(fraction) <= 3 ? FloatClass::Sparse : FloatClass::Ordinary;
}

Bits float_of_class(Format format, FloatClass c, Random& random) {
    const Bits sign = random.chance(2) ? sign_mask(format) : 0;
    const Bits fraction_ones = ones(fraction_bits(format));
    const Bits quiet = Bits{1} << (fraction_bits(format) - 1);
    const Bits fraction = random.bits() & fraction_ones;
    const int middle = random.between(eighth(format) + 1, greatest_field(format) - eighth(format));
    switch (c) {
        case FloatClass::Zero:
            return sign;
        case FloatClass::LeastSubnormal:
            return sign | 1;
        case FloatClass::Subnormal:
            return sign | (fraction >> random.below(fraction_bits(format) - 1)) | 2;
        case FloatClass::GreatestSubnormal:
            return sign | fraction_ones;
        case FloatClass::NearLeastNormal:
            return sign | (least_normal(format) + static_cast<Bits>(random.below(2)));
        case FloatClass::Tiny:
            return sign | normal(format, random.between(1, eighth(format)), fraction);
        case FloatClass::PowerOfTwo:
            return (sign | normal(format, middle, 0)) + static_cast<Bits>(random.between(-1, 1));
        case FloatClass::Sparse:
            return sign | normal(format, middle, sparse_fraction(format, random));
        case FloatClass::Ordinary: {
            const int field = random.chance(2) ? middle : bias(format) + random.between(-4, 4);
            return sign | normal(format, field, fraction);
        }
        case FloatClass::Huge:
            return sign | normal(format, greatest_field(format) - random.below(eighth(format)), fraction);
        case FloatClass::GreatestFinite:
            return sign | greatest_finite(format);
        case FloatClass::Infinite:
            return sign | infinity(format);
        case FloatClass::QuietNaN:
            return sign | infinity(format) | quiet | (random.chance(2) ? 0 : fraction);
        case FloatClass::SignallingNaN:
            return sign | infinity(format) | (fraction & (quiet - 1)) | 1;
    }
    return 0;
}

Bits any_float(Format format, Random& random) {
    const int choice = random.below(kFloatClasses + 6);
    if (choice < kFloatClasses) return float_of_class(format, static_cast<FloatClass>(choice), random);
    if (choice < kFloatClasses + 2) {
        return (threshold(format, random) & magnitude_mask(format)) | (random.chance(2) ? sign_mask(format) : 0);
    }
    if (choice == kFloatClasses + 2) return random.bits() & ones(total_bits(format));
    return float_of_class(format, random.chance(2) ? FloatClass::Ordinary : FloatClass::Sparse, random);
}

const char* name_of(IntClass c) {
    static constexpr const char* kNames[] = {"Zero",     "One",        "AllOnes", "Least",
                                             "Greatest", "PowerOfTwo", "Small",   "Random"};
    return kNames[static_cast<int>(c)];
}

IntClass classify(IntFormat format, Bits bits) {
    const Bits all = ones(format.bits);
    const Bits value = bits & all;
    const Bits top = Bits{1} << (format.bits - 1);
    if (value == 0) return IntClass::Zero;
    if (value == 1) return IntClass::One;
    if (value == all) return IntClass::AllOnes;
    if (value == top) return IntClass::Least;
    if (value == top - 1) return IntClass::Greatest;
    for (const Bits near : {value - 1, value, value + 1}) {
        if (std::has_single_bit(near)) return IntClass::PowerOfTwo;
    }
    const Bits half = ones(format.bits / 2);
    return value <= half || ((0 - value) & all) <= half ? IntClass::Small : IntClass::Random;
}

Bits int_of_class(IntFormat format, IntClass c, Random& random) {
    const Bits all = ones(format.bits);
    const Bits top = Bits{1} << (format.bits - 1);
    switch (c) {
        case IntClass::Zero:
            return 0;
        case IntClass::One:
            return 1;
        case IntClass::AllOnes:
            return all;
        case IntClass::Least:
            return top;
        case IntClass::Greatest:
            return top - 1;
        case IntClass::PowerOfTwo: {
            const Bits power = Bits{1} << random.below(format.bits);
            const Bits near = power + static_cast<Bits>(random.between(-1, 1));
            return (random.chance(2) ? near : 0 - near) & all;
        }
        case IntClass::Small: {
            const Bits value = random.bits() & ones(format.bits / 2);
            return (random.chance(2) ? value : 0 - value) & all;
        }
        case IntClass::Random:
            return (random.bits() >> random.below(8)) & all;
    }
    return 0;
}

Bits any_int(IntFormat format, Random& random) {
    // Half of them random: products and quotients of special values are mostly trivial.
    const int choice = random.below(2 * kIntClasses);
    return int_of_class(format, choice < kIntClasses ? static_cast<IntClass>(choice) : IntClass::Random, random);
}

OperandKind predicate_operand() {
    OperandKind kind;
    kind.kind = OperandKind::Kind::Predicate;
    return kind;
}

OperandKind int_operand(int bits, bool is_signed) {
    OperandKind kind;
    kind.int_format = {bits, is_signed};
    return kind;
}

OperandKind float_operand(Format format) {
    OperandKind kind;
    kind.kind = OperandKind::Kind::Float;
    kind.float_format = format;
    return kind;
}

OperandKind pair_operand(Format format) {
    OperandKind kind = float_operand(format);
    kind.kind = OperandKind::Kind::FloatPair;
    return kind;
}

OperandKind small_operand(std::uint32_t limit) {
    OperandKind kind;
    kind.kind = OperandKind::Kind::Small;
    kind.limit = limit;
    return kind;
}

void Coverage::count(std::size_t operand, const OperandKind& kind, Bits bits) {
    if (met_.size() <= operand) met_.resize(operand + 1);
    if (kind.kind == OperandKind::Kind::Float) {
        ++met_[operand][static_cast<std::size_t>(classify(kind.float_format, bits))];
    } else if (kind.kind == OperandKind::Kind::Integer) {
        ++met_[operand][static_cast<std::size_t>(classify(kind.int_format, bits))];
    }
}

std::vector<std::string> Coverage::missing(std::span<const OperandKind> kinds) const {
    std::vector<std::string> result;
    for (std::size_t operand = 0; operand < kinds.size(); ++operand) {
        const bool is_float = kinds[operand].kind == OperandKind::Kind::Float;
        const bool is_int = kinds[operand].kind == OperandKind::Kind::Integer;
        for (int c = 0; c < (is_float ? kFloatClasses : is_int ? kIntClasses : 0); ++c) {
            if (operand < met_.size() && met_[operand][static_cast<std::size_t>(c)] != 0) continue;
            result.push_back("operand " + std::to_string(operand) + ": " +
                             (is_float ? name_of(static_cast<FloatClass>(c)) : name_of(static_cast<IntClass>(c))));
        }
    }
    return result;
}

}  // namespace gradguard::conformance
