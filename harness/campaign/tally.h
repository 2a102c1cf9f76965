// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "harness/campaign/properties.h"

namespace gradguard::harness {

inline constexpr int kFractionBins = 20;  ///< Of [0, 1], equal.

/// The greatest seen of one quantity, and where; the case of least number among equals.
struct Record {
    double value = 0.0;
    std::uint64_t number = 0;  ///< Of the case in the campaign.
    std::uint64_t step = 0, entry = 0, index = 0;
    std::uint64_t elements = 0;  ///< Of the case's group.
    bool seen = false;

    void take(const Record& other);
};

/// Group sizes and errors of one quantity: how many cases fell into each pair of bins. Bins are quarter octaves of n
/// (bin b: 2^(b/4) <= n < 2^((b+1)/4)) and half octaves of the error in ulp.
using ErrorMap = std::map<std::pair<int, int>, std::uint64_t>;

struct QuantityTally {
    Record ulp, fraction;        ///< Finite errors only.
    std::uint64_t infinite = 0;  ///< Cases with an infinite error: an intermediate overflowed, and that is legal.
    std::array<std::uint64_t, kFractionBins>
        fractions{};  ///< Of each case's greatest fraction, where one was measured.
    ErrorMap errors;

    void merge(const QuantityTally& other);
};

/// What the cases of one property on one subject amount to. Merging does not depend on the order.
struct Tally {
    std::uint64_t cases = 0;
    std::uint64_t not_applicable = 0;
    Coverage coverage;
    std::array<QuantityTally, kQuantities> quantities{};
    /// Sum modulo 2^64 of a hash of each case's number, inputs and verdict: equal for equal runs, however they are
    /// divided among jobs and shards.
    std::uint64_t digest = 0;

    void add(std::uint64_t number, const Case& c, const PropertyVerdict& verdict);
    void merge(const Tally& other);

    double worst_ulp() const;
    double worst_fraction() const;
};

/// A hash of everything in the case that a subject sees.
std::uint64_t hash_of(const Case& c);

}  // namespace gradguard::harness
