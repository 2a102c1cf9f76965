// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace gradguard::harness {

/// All FP32 values that something may have. Ends are values in FP64, infinities ordinary ends; lo > hi means that no
/// number is possible. -0 and +0 are one value here.
struct Interval {
    double lo = 0.0;
    double hi = 0.0;
    bool may_be_nan = false;

    bool holds_no_number() const { return !(lo <= hi); }
};

/// A set of FP32 values that the contract's lines are evaluated over (BOUNDS.md, "Interval"): every operation gives all
/// that its exact result may have become by `kRoundings` roundings to nearest. `kFlushes`: a subnormal may have been
/// taken for zero, going in or coming out. A number type for reference::Lines.
template <int kRoundings, bool kFlushes>
struct RoundedInterval {
    static constexpr double kInfinity = std::numeric_limits<double>::infinity();
    static constexpr double kRelative = kRoundings * 0x1p-24;
    static constexpr double kAbsolute = kRoundings * 0x1p-150;
    static constexpr double kLeastNormal = 0x1p-126;
    static constexpr double kOverflows = 0x1p128 - 0x1p103;  ///< Rounds to infinity from here up.

    double lo = 0.0;
    double hi = 0.0;
    bool nan = false;

    RoundedInterval() = default;
    explicit RoundedInterval(float x) : lo(x), hi(x) {
        if (std::isnan(x)) *this = nothing(true);
        if constexpr (kFlushes) include_flushed();
    }
    RoundedInterval(double low, double high, bool may_be_nan) : lo(low), hi(high), nan(may_be_nan) {}

    static RoundedInterval nothing(bool may_be_nan) { return {kInfinity, -kInfinity, may_be_nan}; }
    bool empty() const { return !(lo <= hi); }
    bool is(double x) const { return lo == x && hi == x; }
    bool holds(double x) const { return lo <= x && x <= hi; }
    bool holds_infinity() const { return lo == -kInfinity || hi == kInfinity; }
    Interval interval() const { return {lo, hi, nan}; }

    /// What [low, high] may have become. `always`: it was rounded for certain, so that an overflow is one; a product
    /// that may be fused into an addition may also go on unrounded.
    static RoundedInterval rounded(double low, double high, bool may_be_nan, bool always = true) {
        RoundedInterval result(low, high, may_be_nan);
        if (result.empty()) return nothing(may_be_nan);
        // An infinity that is the only value left stays one.
        if (low < kInfinity) result.lo = low - (std::fabs(low) * kRelative + kAbsolute);
        if (high > -kInfinity) result.hi = high + (std::fabs(high) * kRelative + kAbsolute);
        // Rounding keeps signs.
        if (low >= 0.0) result.lo = std::max(result.lo, 0.0);
        if (high <= 0.0) result.hi = std::min(result.hi, 0.0);
        result.overflow(low, high, always && kRoundings == 1);
        if constexpr (kFlushes) result.include_flushed();
        return result;
    }

    static RoundedInterval product(const RoundedInterval& a, const RoundedInterval& b, bool always) {
        const bool may_be_nan = a.nan || b.nan;
        if (a.empty() || b.empty()) return nothing(may_be_nan);
        if (a.is(1.0)) return {b.lo, b.hi, may_be_nan};
        if (b.is(1.0)) return {a.lo, a.hi, may_be_nan};
        if (a.is(-1.0)) return {-b.hi, -b.lo, may_be_nan};
        const bool zero_times_infinity = (a.holds(0.0) && b.holds_infinity()) || (b.holds(0.0) && a.holds_infinity());
        if (!zero_times_infinity && (a.is(0.0) || b.is(0.0))) return {0.0, 0.0, may_be_nan};
        if (zero_times_infinity && a.holds_no_other(b)) return nothing(true);
        return over_corners({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi}, zero_times_infinity,
                            may_be_nan || zero_times_infinity, always);
    }

    friend RoundedInterval operator*(const RoundedInterval& a, const RoundedInterval& b) { return product(a, b, true); }

    friend RoundedInterval operator+(const RoundedInterval& a, const RoundedInterval& b) {
        bool may_be_nan = a.nan || b.nan;
        if (a.empty() || b.empty()) return nothing(may_be_nan);
        if (a.is(0.0)) return {b.lo, b.hi, may_be_nan};
        if (b.is(0.0)) return {a.lo, a.hi, may_be_nan};
        may_be_nan =
            may_be_nan || (a.hi == kInfinity && b.lo == -kInfinity) || (a.lo == -kInfinity && b.hi == kInfinity);
        double low = a.lo + b.lo;
        double high = a.hi + b.hi;
        // Only with the other's infinity: every number left is this end's own infinity.
        if (std::isnan(low)) low = kInfinity;
        if (std::isnan(high)) high = -kInfinity;
        return rounded(low, high, may_be_nan);
    }

    friend RoundedInterval operator/(const RoundedInterval& a, const RoundedInterval& b) {
        const bool may_be_nan = a.nan || b.nan;
        if (a.empty() || b.empty()) return nothing(may_be_nan);
        if (b.holds(0.0)) return {-kInfinity, kInfinity, may_be_nan || a.holds(0.0) || a.holds_infinity()};
        const bool both = a.holds_infinity() && b.holds_infinity();
        if (both && a.lo == a.hi && b.lo == b.hi) return nothing(true);
        return over_corners({a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi}, false, may_be_nan || both, true);
    }

    friend RoundedInterval operator-(const RoundedInterval& a) { return {-a.hi, -a.lo, a.nan}; }

    friend RoundedInterval sqrt(const RoundedInterval& a) {
        const bool may_be_nan = a.nan || a.lo < 0.0;
        if (a.empty() || a.hi < 0.0) return nothing(may_be_nan);
        return rounded(std::sqrt(std::max(a.lo, 0.0)), std::sqrt(a.hi), may_be_nan);
    }

    /// One value times itself.
    friend RoundedInterval square(const RoundedInterval& a) {
        if (a.empty()) return a;
        const double low = std::fabs(a.lo);
        const double high = std::fabs(a.hi);
        const double least = a.holds(0.0) ? 0.0 : std::min(low, high);
        const double greatest = std::max(low, high);
        if (greatest == 0.0 || (least == 1.0 && greatest == 1.0)) return {greatest, greatest, a.nan};
        return rounded(least * least, greatest * greatest, a.nan);
    }

    friend RoundedInterval maximum(const RoundedInterval& a, const RoundedInterval& b) {
        if (a.empty() || b.empty()) return nothing(a.nan || b.nan);
        return {std::max(a.lo, b.lo), std::max(a.hi, b.hi), a.nan || b.nan};
    }

  private:
    void overflow(double low, double high, bool certain) {
        // Over several roundings each may add its share before the last one overflows.
        if ((kRoundings == 1 ? high : hi) >= kOverflows) hi = kInfinity;
        if ((kRoundings == 1 ? low : lo) <= -kOverflows) lo = -kInfinity;
        if (!certain) return;
        if (low >= kOverflows) lo = kInfinity;
        if (high <= -kOverflows) hi = -kInfinity;
    }
    void include_flushed() {
        if (lo > 0.0 && lo < kLeastNormal) lo = 0.0;
        if (hi < 0.0 && hi > -kLeastNormal) hi = 0.0;
    }
    /// 0 times an infinity and nothing else.
    bool holds_no_other(const RoundedInterval& b) const { return lo == hi && b.lo == b.hi; }

    /// The hull of the corners; NaN ones stand for zero times infinity, beside which zero itself is possible, or for
    /// infinity over infinity, beside which the other corners have all that is possible.
    static RoundedInterval over_corners(std::initializer_list<double> corners, bool zero_for_nan, bool may_be_nan,
                                        bool always) {
        double low = kInfinity;
        double high = -kInfinity;
        for (double corner : corners) {
            if (std::isnan(corner)) {
                if (!zero_for_nan) continue;
                corner = 0.0;
            }
            low = std::min(low, corner);
            high = std::max(high, corner);
        }
        return rounded(low, high, may_be_nan, always);
    }
};

/// How two products meet where either may be fused into the addition: neither is rounded for certain.
struct EitherFused {
    template <class T>
    static T sum_of_products(const T& a, const T& b, const T& c, const T& d) {
        return T::product(a, b, false) + T::product(c, d, false);
    }
};

/// What `within` found.
struct Within {
    bool ok = false;
    /// |got - centre| over the distance from the centre to the end on that side: the share of the bound that was used;
    /// above 1 outside, +inf where the judge admits nothing there, 0 where the bound is infinite or the result no
    /// number.
    double fraction = 0.0;
};

/// Whether `got` is one of the interval's values. NaN passes only where the interval admits it, an infinity only where
/// it is an end. `centre`: the exact result in FP64.
Within within(float got, const Interval& interval, double centre);

}  // namespace gradguard::harness
