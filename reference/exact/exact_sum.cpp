// SPDX-License-Identifier: Apache-2.0
#include "reference/exact/exact_sum.h"

#include <bit>
#include <cmath>

namespace gradguard::reference {
namespace {

using Wide = unsigned __int128;

/// The `count` (at most 128) bits of the integer from bit `from` up; bits beyond its ends, at negative places too, are
/// zero.
Wide bits_from(const std::array<std::uint64_t, ExactSumOfSquares::kLimbs>& limbs, int from) {
    Wide result = 0;
    for (int i = 0; i < ExactSumOfSquares::kLimbs; ++i) {
        const int place = 64 * i - from;
        if (place <= -64 || place >= 128) continue;
        result |= place >= 0 ? static_cast<Wide>(limbs[i]) << place : static_cast<Wide>(limbs[i] >> -place);
    }
    return result;
}

bool any_bit_below(const std::array<std::uint64_t, ExactSumOfSquares::kLimbs>& limbs, int end) {
    for (int i = 0; i < ExactSumOfSquares::kLimbs && 64 * i < end; ++i) {
        const int inside = end - 64 * i;
        const std::uint64_t mask = inside >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << inside) - 1;
        if ((limbs[i] & mask) != 0) return true;
    }
    return false;
}

int bit_length(const std::array<std::uint64_t, ExactSumOfSquares::kLimbs>& limbs) {
    for (int i = ExactSumOfSquares::kLimbs - 1; i >= 0; --i) {
        if (limbs[i] != 0) return 64 * i + 64 - std::countl_zero(limbs[i]);
    }
    return 0;
}

/// floor(sqrt(x)) for x < 2^112.
std::uint64_t integer_root(Wide x) {
    // The FP64 root is within 2 of the true one after its own errors (56-bit result, 53-bit format, so within 8).
    auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(x)));
    while (static_cast<Wide>(root) * root > x) --root;
    while (static_cast<Wide>(root + 1) * (root + 1) <= x) ++root;
    return root;
}

/// significand * 2^exponent rounded once to FP64; the last bit of the significand is sticky. significand < 2^63.
double round_once(std::uint64_t significand, int exponent) {
    return std::ldexp(static_cast<double>(static_cast<std::int64_t>(significand)), exponent);
}

}  // namespace

ExactSumOfSquares& ExactSumOfSquares::operator+=(const ExactSumOfSquares& other) {
    std::uint64_t carry = 0;
    for (int i = 0; i < kLimbs; ++i) {
        const Wide sum = static_cast<Wide>(limbs_[i]) + other.limbs_[i] + carry;
        limbs_[i] = static_cast<std::uint64_t>(sum);
        carry = static_cast<std::uint64_t>(sum >> 64U);
    }
    return *this;
}

std::strong_ordering ExactSumOfSquares::operator<=>(const ExactSumOfSquares& other) const {
    for (int i = kLimbs - 1; i >= 0; --i) {
        if (limbs_[i] != other.limbs_[i]) return limbs_[i] <=> other.limbs_[i];
    }
    return std::strong_ordering::equal;
}

bool ExactSumOfSquares::is_zero() const { return bit_length(limbs_) == 0; }

double ExactSumOfSquares::root() const {
    const int length = bit_length(limbs_);
    if (length == 0) return 0.0;
    // The leading 111 or 112 bits from an even place give a root of 56 bits; everything below is one sticky bit.
    int from = length - 112;
    if (from % 2 != 0) ++from;
    const Wide leading = bits_from(limbs_, from);
    const std::uint64_t root = integer_root(leading);
    const bool sticky = static_cast<Wide>(root) * root != leading || any_bit_below(limbs_, from);
    return round_once(root << 1U | (sticky ? 1U : 0U), (kUnitExponent + from) / 2 - 1);
}

double ExactSumOfSquares::value() const {
    const int length = bit_length(limbs_);
    if (length == 0) return 0.0;
    const int from = length - 60;
    const auto leading = static_cast<std::uint64_t>(bits_from(limbs_, from));
    return round_once(leading << 1U | (any_bit_below(limbs_, from) ? 1U : 0U), kUnitExponent + from - 1);
}

}  // namespace gradguard::reference
