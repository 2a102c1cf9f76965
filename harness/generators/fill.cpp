// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <cstring>

#include "harness/generators/float_format.h"
#include "harness/generators/random.h"
#include "harness/generators/recipe.h"

namespace gradguard::harness {
namespace {

/// Where numerics change their ways: 2^-63 and sqrt(FLT_MAX) (squares leave the range), 2^52, the least normal number,
/// the least subnormal, 1, the greatest number.
constexpr std::array<std::uint32_t, 7> kThresholdsF32{0x20000000U, 0x59800000U, 0x5F7FFFFFU, 0x00800000U,
                                                      0x00000001U, 0x3F800000U, 0x7F7FFFFFU};
constexpr std::array<std::uint32_t, 7> kThresholdsBF16{0x2000U, 0x5980U, 0x5F7FU, 0x0080U, 0x0001U, 0x3F80U, 0x7F7FU};
constexpr std::array<std::uint32_t, 7> kThresholdsF16{0x0400U, 0x0800U, 0x5C00U, 0x0001U, 0x3C00U, 0x7800U, 0x7BFFU};

/// A class of magnitudes: `least` and the following ones, `spread` + 1 of them, a power of two.
struct Class {
    std::uint32_t least;
    std::uint32_t spread;
};
using Classes = std::array<Class, 32>;

/// What kAnyBits draws from, each row as likely as the others. A table, because a branch for each class would be
/// mispredicted for each element.
Classes classes_of(const FloatFormat& format, const std::array<std::uint32_t, 7>& thresholds, bool bad) {
    const std::uint32_t normal = format.least_normal();
    const std::uint32_t infinity = format.infinity();
    const std::uint32_t half = format.sign() >> 1U;
    // Below 2 and from 1 up: together every finite number.
    const Class lower{0, half - 1};
    const Class upper{infinity - half, half - 1};
    const Class ordinary{encode(format, -8, 0), 16 * normal - 1};
    const Class huge{infinity - 4 * normal, 4 * normal - 1};
    const Class subnormal{0, normal - 1};
    Classes classes{{{0, 0},
                     {0, 0},
                     subnormal,
                     {0, 15},
                     {normal - 1, 1},
                     {normal, 1},
                     huge,
                     huge,
                     {infinity - 2, 1},
                     {infinity - 1, 0},
                     ordinary,
                     ordinary,
                     ordinary,
                     ordinary,
                     ordinary,
                     ordinary,
                     ordinary,
                     ordinary}};
    for (std::size_t i = 0; i + 1 < thresholds.size(); ++i) classes[18 + i] = {thresholds[i] - 1, 3};
    const Class quiet{infinity | normal >> 1U, (normal >> 1U) - 1};
    const Class signalling{infinity + 1, (normal >> 2U) - 1};
    classes[24] = lower;
    classes[25] = upper;
    classes[26] = lower;
    classes[27] = upper;
    classes[28] = bad ? Class{infinity, 0} : lower;
    classes[29] = bad ? Class{infinity, 0} : upper;
    classes[30] = bad ? quiet : lower;
    classes[31] = bad ? signalling : upper;
    return classes;
}

/// Draws the elements of one array in order. Every number is made of bits and integers: no library function whose last
/// bit could differ between machines.
template <DType kDType>
class Filler {
  public:
    explicit Filler(const ArrayRecipe& recipe) : recipe_(recipe), random_(recipe.seed) {}

    template <class Word>
    void fill(std::uint64_t n, std::byte* out) {
        if (n == 0) return;  // `out` may be null then
        const auto each = [&](auto&& word_at) {
            const std::uint32_t kept = recipe_.absolute ? kFormat.sign() - 1 : 0xFFFFFFFFU;
            for (std::uint64_t i = 0; i < n; ++i) {
                const auto word = static_cast<Word>(word_at(i) & kept);
                std::memcpy(out + i * sizeof(Word), &word, sizeof(Word));
            }
        };
        switch (recipe_.fill) {
            case Fill::kZero:
                std::memset(out, 0, n * sizeof(Word));
                break;
            case Fill::kOrdinary:
                if (is_fast(recipe_.exponent)) {
                    const float unit = std::bit_cast<float>(encode(kF32Format, recipe_.exponent - 21, 0));
                    each([&](std::uint64_t) { return fast_ordinary(random_.next(), unit); });
                    break;
                }
                each([&](std::uint64_t) { return ordinary(random_.next(), recipe_.exponent); });
                break;
            case Fill::kHeavyTailed:
                each([&](std::uint64_t) { return heavy_tailed(random_.next()); });
                break;
            case Fill::kMountain:
                each([&](std::uint64_t i) { return mountain(i, n, random_.next()); });
                break;
            case Fill::kOneHot:
                std::memset(out, 0, n * sizeof(Word));
                put_one<Word>(n, out);
                break;
            case Fill::kThresholds:
                each([&](std::uint64_t) { return threshold(random_.next()); });
                break;
            case Fill::kCancelling:
                each([&](std::uint64_t i) { return cancelling(i); });
                break;
            case Fill::kSubnormal:
                each([&](std::uint64_t) { return subnormal(random_.next()); });
                break;
            case Fill::kHuge:
                each([&](std::uint64_t) { return huge(random_.next()); });
                break;
            case Fill::kAnyBits:
                each([&, classes = classes_of(kFormat, thresholds(), recipe_.bad)](std::uint64_t) {
                    return any_bits(classes, random_.next());
                });
                break;
            case Fill::kBalanced:
                each([&](std::uint64_t i) { return balanced(i, random_.next()); });
                break;
        }
    }

  private:
    static constexpr FloatFormat kFormat = format_of(kDType);

    static std::uint32_t sign_from(std::uint64_t word) { return (word >> 63U) != 0 ? kFormat.sign() : 0; }
    static std::uint32_t fraction_from(std::uint64_t word) { return static_cast<std::uint32_t>(word) & 0x7FFFFFU; }
    /// 8 bits that neither sign nor fraction uses.
    static unsigned choice_from(std::uint64_t word) { return static_cast<unsigned>(word >> 32U) & 0xFFU; }

    /// Bell-shaped with standard deviation 2^21: the sum of three numbers of 21 bits; below 2^23 in size.
    static std::int32_t bell(std::uint64_t word) {
        constexpr std::uint64_t kPart = (1U << 21U) - 1;
        const auto sum = static_cast<std::int32_t>((word & kPart) + (word >> 21U & kPart) + (word >> 42U & kPart));
        return 2 * (sum - 3 * (1 << 20U)) + static_cast<std::int32_t>(word >> 63U);
    }

    /// Bell-shaped with standard deviation 2^exponent.
    static std::uint32_t ordinary(std::uint64_t word, int exponent) {
        const std::int32_t centred = bell(word);
        if (centred == 0) return 0;
        const auto magnitude = static_cast<std::uint32_t>(centred < 0 ? -centred : centred);
        const int place = 31 - std::countl_zero(magnitude);
        const std::uint32_t fraction = magnitude << static_cast<unsigned>(23 - place) & 0x7FFFFFU;
        return encode(kFormat, place - 21 + exponent, fraction) | (centred < 0 ? kFormat.sign() : 0);
    }

    /// The same bits as ordinary() in a third of the time, where every value is normal and every operation exact.
    static constexpr bool kHasFastOrdinary = kDType != DType::kF16;
    static bool is_fast(int exponent) { return kHasFastOrdinary && exponent >= -100 && exponent <= 100; }
    static std::uint32_t fast_ordinary(std::uint64_t word, float unit) {
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(bell(word)) * unit);
        return bits >> (kF32Format.bits - kFormat.bits);
    }

    std::uint32_t heavy_tailed(std::uint64_t word) const {
        // The greatest of 2 draws from 32 binades: the tail gets thinner upwards.
        const int low = static_cast<int>(word >> 32U & 31U);
        const int high = static_cast<int>(word >> 37U & 31U);
        return encode(kFormat, recipe_.exponent + 10 - (low > high ? low : high), fraction_from(word)) |
               sign_from(word);
    }

    std::uint32_t mountain(std::uint64_t i, std::uint64_t n, std::uint64_t word) const {
        const std::uint64_t from_top = 2 * i > n ? 2 * i - n : n - 2 * i;
        return encode(kFormat, recipe_.exponent + 4 - static_cast<int>(24 * from_top / n), fraction_from(word)) |
               sign_from(word);
    }

    template <class Word>
    void put_one(std::uint64_t n, std::byte* out) {
        const std::uint64_t place = random_.next() % n;
        const std::uint64_t word = random_.next();
        // 3 at the place, so that a norm without error is exactly 3; or any number.
        const std::uint32_t fraction = choice_from(word) < 128 ? 0x400000U : fraction_from(word);
        const std::uint32_t sign = recipe_.absolute ? 0 : sign_from(word);
        const auto value = static_cast<Word>(encode(kFormat, recipe_.exponent + 1, fraction) | sign);
        std::memcpy(out + place * sizeof(Word), &value, sizeof(Word));
    }

    static const std::array<std::uint32_t, 7>& thresholds() {
        return kDType == DType::kF32 ? kThresholdsF32 : kDType == DType::kF16 ? kThresholdsF16 : kThresholdsBF16;
    }
    static std::uint32_t threshold(std::uint64_t word) {
        const auto& all = thresholds();
        const std::uint32_t moved = all[word % all.size()] + static_cast<std::uint32_t>((word >> 32U) % 3) - 1;
        return (moved > kFormat.greatest() ? kFormat.greatest() : moved) | sign_from(word);
    }

    std::uint32_t cancelling(std::uint64_t i) {
        const std::uint64_t word = random_.next();
        if (i % 2 == 0) return before_ = ordinary(word, recipe_.exponent);
        const std::uint32_t magnitude = before_ & (kFormat.sign() - 1);
        const std::uint32_t opposite = ~before_ & kFormat.sign();
        if (magnitude < 2 || magnitude >= kFormat.greatest()) return opposite | magnitude;
        return opposite | (magnitude + static_cast<std::uint32_t>(word % 3) - 1);
    }

    static std::uint32_t subnormal(std::uint64_t word) {
        const std::uint32_t magnitude = fraction_from(word) & (kFormat.least_normal() - 1);
        return magnitude >> (choice_from(word) % kFormat.mantissa_bits) | sign_from(word);
    }

    static std::uint32_t huge(std::uint64_t word) {
        const int below = static_cast<int>(choice_from(word) % 8);
        // One in 8 saturates to the greatest number itself.
        const int exponent = below == 0 ? kFormat.greatest_exponent + 1 : kFormat.greatest_exponent - below / 2;
        return encode(kFormat, exponent, fraction_from(word)) | sign_from(word);
    }

    static std::uint32_t any_bits(const Classes& classes, std::uint64_t word) {
        const Class& drawn = classes[choice_from(word) % classes.size()];
        return (drawn.least + (static_cast<std::uint32_t>(word) & drawn.spread)) | sign_from(word);
    }

    /// The sign belongs to the index alone: gradients and first moments that share it do not cancel.
    std::uint32_t balanced(std::uint64_t i, std::uint64_t word) const {
        const std::uint32_t sign = ((mix(i) ^ recipe_.seed) & 1U) != 0 ? kFormat.sign() : 0;
        return encode(kFormat, recipe_.exponent, fraction_from(word) >> 1U) | sign;
    }

    const ArrayRecipe& recipe_;
    Random random_;
    std::uint32_t before_ = 0;
};

template <class Word>
void put_overrides(const std::vector<Override>& overrides, std::uint64_t n, std::byte* out) {
    for (const Override& o : overrides) {
        if (o.index >= n) continue;
        const auto word = static_cast<Word>(o.bits);
        std::memcpy(out + o.index * sizeof(Word), &word, sizeof(Word));
    }
}

}  // namespace

std::string_view to_string(Fill fill) {
    constexpr std::array<std::string_view, kFills> kNames{"zero",    "ordinary",   "heavy-tailed", "mountain",
                                                          "one-hot", "thresholds", "cancelling",   "subnormal",
                                                          "huge",    "any bits",   "balanced"};
    return kNames[static_cast<std::size_t>(fill)];
}

void fill_array(const ArrayRecipe& recipe, DType dtype, std::uint64_t n, std::byte* out) {
    switch (dtype) {
        case DType::kF32:
            Filler<DType::kF32>(recipe).template fill<std::uint32_t>(n, out);
            put_overrides<std::uint32_t>(recipe.overrides, n, out);
            break;
        case DType::kF16:
            Filler<DType::kF16>(recipe).template fill<std::uint16_t>(n, out);
            put_overrides<std::uint16_t>(recipe.overrides, n, out);
            break;
        case DType::kBF16:
            Filler<DType::kBF16>(recipe).template fill<std::uint16_t>(n, out);
            put_overrides<std::uint16_t>(recipe.overrides, n, out);
            break;
    }
}

}  // namespace gradguard::harness
