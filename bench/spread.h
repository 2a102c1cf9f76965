// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

namespace gradguard::bench {

/// What is reported of several samples. The median of an even number is the mean of the two in the middle.
struct Spread {
    double median = 0.0;
    double minimum = 0.0;
    double maximum = 0.0;
};

/// `samples` must not be empty.
inline Spread spread_of(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    const std::size_t middle = samples.size() / 2;
    const double median = samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
    return {median, samples.front(), samples.back()};
}

}  // namespace gradguard::bench
