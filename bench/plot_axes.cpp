// SPDX-License-Identifier: Apache-2.0
#include "bench/plot_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gradguard::bench {
namespace {

/// 1, 2 or 5 times a power of ten, so that `range` has about `parts` of them.
double nice_step(double range, int parts) {
    const double rough = range / parts;
    const double decade = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (rough <= factor * decade) return factor * decade;
    }
    return 10.0 * decade;
}

}  // namespace

double PlotAxis::at(double value) const {
    const double share = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return begin + share * (end - begin);
}

std::vector<std::pair<double, std::string>> PlotAxis::ticks(const std::function<std::string(double)>& text) const {
    std::vector<std::pair<double, std::string>> ticks;
    if (!logarithmic) {
        const double step = nice_step(high - low, 5);
        for (int i = 0; i * step <= high * (1 + 1e-9); ++i) ticks.emplace_back(i * step, text(i * step));
        return ticks;
    }
    const int first = static_cast<int>(std::floor(std::log10(low)));
    const int last = static_cast<int>(std::ceil(std::log10(high)));
    const bool dense = last - first <= 2;
    const int stride = std::max(1, (last - first + 5) / 6);
    for (int exponent = first; exponent <= last; ++exponent) {
        if (!dense && (exponent - first) % stride != 0) continue;
        for (const double factor : {1.0, 2.0, 5.0}) {
            const double value = factor * std::pow(10.0, exponent);
            if (factor > 1.0 && !dense) break;
            if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.emplace_back(value, text(value));
        }
    }
    return ticks;
}

PlotAxis axis_for(const std::vector<double>& values, bool logarithmic, double begin, double end) {
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    if (!logarithmic) return {false, 0.0, *greatest * 1.12, begin, end};
    const double room = std::max(std::pow(*greatest / *least, 0.06), 1.3);
    return {true, *least / room, *greatest * room, begin, end};
}

std::string number_text(double value) { return fmt::format("{:.4g}", value); }

std::string count_text(double count) {
    const char* const units[] = {"", "K", "M", "G"};
    for (int i = 3; i > 0; --i) {
        const double unit = std::exp2(10.0 * i);
        if (count >= unit && std::fmod(count, unit) == 0.0) return fmt::format("{:.0f}{}", count / unit, units[i]);
    }
    return fmt::format("{:.0f}", count);
}

std::string seconds_text(double seconds) {
    if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
    if (seconds < 1.0) return fmt::format("{:.3g} ms", seconds * 1e3);
    return fmt::format("{:.3g} s", seconds);
}

}  // namespace gradguard::bench
