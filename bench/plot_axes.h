// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gradguard::bench {

/// An axis of a panel, linear from 0 or logarithmic: [low, high] in data, [begin, end] in pixels.
struct PlotAxis {
    bool logarithmic = true;
    double low = 1.0, high = 10.0;
    double begin = 0.0, end = 1.0;

    double at(double value) const;
    /// Where to put which text; `text` writes a number.
    std::vector<std::pair<double, std::string>> ticks(const std::function<std::string(double)>& text) const;
};

/// An axis that holds `values` (one at least, all above 0) with some room.
PlotAxis axis_for(const std::vector<double>& values, bool logarithmic, double begin, double end);

/// "0.05", "2500".
std::string number_text(double value);
/// "64K", "1M": for counts that are powers of two; else in digits.
std::string count_text(double count);
/// "20 us", "1.5 ms".
std::string seconds_text(double seconds);

}  // namespace gradguard::bench
