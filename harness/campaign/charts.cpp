// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "harness/campaign/summary.h"
#include "harness/campaign/svg.h"
#include "harness/compare/norm_bound.h"

namespace gradguard::harness {
namespace {

using Anchor = Svg::Anchor;

constexpr double kWidth = 340.0, kHeight = 250.0;
constexpr double kLeft = 52.0, kRight = 12.0, kTop = 26.0, kBottom = 40.0;
constexpr double kLeastUlp = -7.0;            ///< log2; what is smaller lies on the axis.
constexpr double kGreatestUlp = 28.0;         ///< log2; what is greater, by cancellation or overflow, lies at the top.
constexpr int kSizeParts = 4, kUlpParts = 2;  ///< Bins of ErrorMap for each octave.

std::string title_of(Quantity quantity) {
    switch (quantity) {
        case Quantity::kNorm:
            return "norm";
        case Quantity::kFirstMoment:
            return "first moment m";
        case Quantity::kSecondMoment:
            return "second moment v";
        case Quantity::kMaxSecondMoment:
            return "running maximum x";
        case Quantity::kParameters:
            return "parameters p";
    }
    return "?";
}

struct Panel {
    LogAxis x, y;
};

void draw_frame(Svg& svg, const Panel& panel, const std::string& title) {
    for (const int e : panel.x.decades(6)) {
        const double at = panel.x.at(e * std::log2(10.0));
        svg.line(at, kTop, at, kHeight - kBottom, "grid");
        svg.text(at, kHeight - kBottom + 14, Anchor::kMiddle, "tick", decade_text(e));
    }
    for (const int e : panel.y.decades(6)) {
        const double at = panel.y.at(e * std::log2(10.0));
        svg.line(kLeft, at, kWidth - kRight, at, "grid");
        svg.text(kLeft - 6, at + 3.5, Anchor::kEnd, "tick", decade_text(e));
    }
    svg.line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "axis");
    svg.line(kLeft, kTop, kLeft, kHeight - kBottom, "axis");
    svg.text(kLeft, 15, Anchor::kStart, "head", title);
    svg.text((kLeft + kWidth - kRight) / 2, kHeight - 8, Anchor::kMiddle, "label", "elements of the group");
    svg.upright_text(13, (kTop + kHeight - kBottom) / 2, "label", "error, ulp of the exact result");
}

double bin_low(int bin, int parts) { return static_cast<double>(bin) / parts; }

/// The closed form on the norm, in ulp: half of sumsq's relative error, and an ulp is at least 2^-24 of the value.
double closed_form_log2_ulp(double log2_elements) {
    const double n = std::max(1.0, std::floor(std::exp2(log2_elements)));
    return std::log2(closed_form_bound(static_cast<std::uint64_t>(n)) / 2) + 24;
}

Panel panel_of(Quantity quantity, const QuantityTally& tally) {
    double greatest_size = 4.0, greatest_ulp = 1.0;
    for (const auto& [bins, count] : tally.errors) {
        greatest_size = std::max(greatest_size, bin_low(bins.first + 1, kSizeParts));
        greatest_ulp = std::max(greatest_ulp, bin_low(bins.second + 1, kUlpParts));
    }
    if (quantity == Quantity::kNorm) greatest_ulp = std::max(greatest_ulp, closed_form_log2_ulp(greatest_size));
    return {{0.0, greatest_size + 0.25, kLeft, kWidth - kRight},
            {kLeastUlp, std::min(greatest_ulp + 0.5, kGreatestUlp), kHeight - kBottom, kTop}};
}

/// What lies beyond the panel, moved into its lowest and highest bin.
ErrorMap shown_errors(const Panel& panel, const ErrorMap& errors) {
    const int lowest = static_cast<int>(panel.y.low * kUlpParts);
    const int highest = static_cast<int>(panel.y.high * kUlpParts) - 1;
    ErrorMap shown;
    for (const auto& [bins, count] : errors) {
        shown[{bins.first, std::clamp(bins.second, lowest, highest)}] += count;
    }
    return shown;
}

}  // namespace

std::string error_chart(Quantity quantity, const QuantityTally& tally) {
    if (tally.errors.empty()) return {};
    const Panel panel = panel_of(quantity, tally);
    Svg svg(kWidth, kHeight, "error of the " + title_of(quantity) + " against the elements of the group");
    draw_frame(svg, panel, title_of(quantity));
    const ErrorMap errors = shown_errors(panel, tally.errors);
    std::uint64_t most = 1;
    std::map<int, int> greatest;  // by size bin
    for (const auto& [bins, count] : errors) {
        most = std::max(most, count);
        const auto [at, is_new] = greatest.try_emplace(bins.first, bins.second);
        if (!is_new) at->second = std::max(at->second, bins.second);
    }
    for (const auto& [bins, count] : errors) {
        const double left = panel.x.at(std::max(0.0, bin_low(bins.first, kSizeParts)));
        const double right = panel.x.at(bin_low(bins.first + 1, kSizeParts));
        const double low = bin_low(bins.second, kUlpParts), high = bin_low(bins.second + 1, kUlpParts);
        const double weight = std::log1p(static_cast<double>(count)) / std::log1p(static_cast<double>(most));
        svg.rectangle(
            left, panel.y.at(high), right - left - 0.5, panel.y.at(low) - panel.y.at(high) - 0.5, "density",
            0.12 + 0.88 * weight,
            fmt::format("n from {:.0f}: {} cases with about {} ulp", std::exp2(bin_low(bins.first, kSizeParts)), count,
                        short_number(std::exp2(bin_low(bins.second, kUlpParts)))));
    }
    for (const auto& [size, ulp] : greatest) {
        const double x = panel.x.at(bin_low(size, kSizeParts) + 0.5 / kSizeParts);
        svg.dot(x, panel.y.at(bin_low(ulp + 1, kUlpParts)), 2.2, "greatest");
    }
    if (quantity == Quantity::kNorm) {
        std::vector<std::pair<double, double>> bound;
        for (double size = 0.0; size <= panel.x.high; size += 0.125) {
            bound.emplace_back(panel.x.at(size), panel.y.at(closed_form_log2_ulp(size)));
        }
        svg.path(bound, "bound");
        svg.text(kWidth - kRight, panel.y.at(closed_form_log2_ulp(panel.x.high)) - 5, Anchor::kEnd, "tick",
                 "closed form, one tensor");
    }
    return svg.finish();
}

std::string fraction_chart(Quantity quantity, const QuantityTally& tally) {
    if (!tally.fraction.seen) return {};
    Svg svg(kWidth, kHeight, "share of the bound used by the " + title_of(quantity));
    const std::uint64_t most = *std::ranges::max_element(tally.fractions);
    const double bottom = kHeight - kBottom, height = bottom - kTop - 8, width = kWidth - kRight - kLeft;
    for (const double tick : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        svg.line(kLeft + tick * width, kTop, kLeft + tick * width, bottom, "grid");
        svg.text(kLeft + tick * width, bottom + 14, Anchor::kMiddle, "tick", fmt::format("{:g}", tick));
    }
    for (std::size_t i = 0; i < tally.fractions.size(); ++i) {
        const double bar = width / kFractionBins;
        const double share = static_cast<double>(tally.fractions[i]) / static_cast<double>(most);
        svg.rectangle(kLeft + static_cast<double>(i) * bar + 1, bottom - share * height, bar - 2, share * height,
                      "density", 1.0,
                      fmt::format("{:.2f} to {:.2f}: {} cases", static_cast<double>(i) / kFractionBins,
                                  static_cast<double>(i + 1) / kFractionBins, grouped_number(tally.fractions[i])));
    }
    const double greatest = kLeft + std::min(tally.fraction.value, 1.0) * width;
    svg.line(greatest, kTop, greatest, bottom, "bound");
    svg.text(std::clamp(greatest - 4, kLeft + 80, kWidth - kRight), kTop + 10, Anchor::kEnd, "tick",
             fmt::format("greatest {:.3f}", tally.fraction.value));
    svg.line(kLeft, bottom, kWidth - kRight, bottom, "axis");
    svg.text(kLeft - 6, kTop + 11, Anchor::kEnd, "tick", grouped_number(most));
    svg.text(kLeft - 6, bottom + 3, Anchor::kEnd, "tick", "0");
    svg.text(kLeft, 15, Anchor::kStart, "head", title_of(quantity));
    svg.text(kLeft + width / 2, kHeight - 8, Anchor::kMiddle, "label", "share of the bound");
    svg.upright_text(13, (kTop + bottom) / 2, "label", "cases");
    return svg.finish();
}

std::string coverage_chart(const std::string& group, const Coverage& coverage) {
    constexpr double kRow = 17.0, kNames = 190.0, kChart = 700.0, kCounts = 74.0;
    std::vector<std::pair<std::string, std::uint64_t>> rows;
    std::uint64_t most = 1;
    for (const auto& [name, count] : coverage) {
        if (!name.starts_with(group + "/")) continue;
        rows.emplace_back(name.substr(group.size() + 1), count);
        most = std::max(most, count);
    }
    if (rows.empty()) return {};
    // Sizes in their order; other names are sorted already.
    const auto number = [](const std::string& name) { return std::strtoull(name.c_str(), nullptr, 10); };
    std::ranges::stable_sort(rows, [&](const auto& a, const auto& b) { return number(a.first) < number(b.first); });
    const double height = kRow * static_cast<double>(rows.size()) + 8;
    Svg svg(kChart, height, "cases by class: " + group);
    const LogAxis axis{0.0, std::max(1.0, std::log2(static_cast<double>(most))), kNames, kChart - kCounts};
    for (const int e : axis.decades(8)) {
        svg.line(axis.at(e * std::log2(10.0)), 0, axis.at(e * std::log2(10.0)), height, "grid");
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double y = 4 + kRow * static_cast<double>(i);
        svg.text(kNames - 8, y + 12, Anchor::kEnd, "tick", rows[i].first);
        const double end = axis.at(std::log2(static_cast<double>(std::max<std::uint64_t>(rows[i].second, 1))));
        svg.rectangle(kNames, y + 2, std::max(end - kNames, 1.5), kRow - 5, "density");
        svg.text(kChart, y + 12, Anchor::kEnd, "count", grouped_number(rows[i].second));
    }
    return svg.finish();
}

}  // namespace gradguard::harness
