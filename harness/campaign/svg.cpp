// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/campaign/summary.h"

namespace gradguard::harness {

Svg::Svg(double width, double height, const std::string& label)
    : body_(fmt::format("<svg viewBox=\"0 0 {:g} {:g}\" width=\"{:g}\" height=\"{:g}\" role=\"img\" "
                        "aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">\n",
                        width, height, width, height, escaped(label))) {}

void Svg::rectangle(double x, double y, double width, double height, const char* style, double opacity,
                    const std::string& tip) {
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"", x, y,
                         std::max(width, 0.0), std::max(height, 0.0), style);
    if (opacity < 1.0) body_ += fmt::format(" fill-opacity=\"{:.2f}\"", opacity);
    body_ += tip.empty() ? std::string("/>\n") : "><title>" + escaped(tip) + "</title></rect>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, const char* style) {
    body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
                         y2, style);
}

void Svg::path(const std::vector<std::pair<double, double>>& points, const char* style) {
    if (points.size() < 2) return;
    body_ += "<polyline points=\"";
    for (const auto& [x, y] : points) body_ += fmt::format("{:.1f},{:.1f} ", x, y);
    body_ += fmt::format("\" class=\"{}\"/>\n", style);
}

void Svg::dot(double x, double y, double radius, const char* style) {
    body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"/>\n", x, y, radius, style);
}

void Svg::text(double x, double y, Anchor anchor, const char* style, const std::string& words) {
    const char* const anchors[] = {"start", "middle", "end"};
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y,
                         anchors[static_cast<int>(anchor)], style, escaped(words));
}

void Svg::upright_text(double x, double y, const char* style, const std::string& words) {
    body_ += fmt::format(
        "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" text-anchor=\"middle\" class=\"{}\">{}</text>\n", x,
        y, style, escaped(words));
}

std::vector<int> LogAxis::decades(int most) const {
    const double per_decade = std::log2(10.0);
    const int first = static_cast<int>(std::ceil(low / per_decade - 1e-9));
    const int last = static_cast<int>(std::floor(high / per_decade + 1e-9));
    const int step = std::max(1, (last - first + most) / std::max(most, 1));
    std::vector<int> exponents;
    for (int e = first; e <= last; ++e) {
        if (e % step == 0) exponents.push_back(e);
    }
    return exponents;
}

std::string decade_text(int exponent) {
    const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    if (exponent >= 0 && exponent <= 3) return std::string("1") + std::string(static_cast<std::size_t>(exponent), '0');
    if (exponent == -1) return "0.1";
    std::string text = "10";
    if (exponent < 0) text += "⁻";
    for (const char digit : std::to_string(std::abs(exponent))) text += digits[digit - '0'];
    return text;
}

}  // namespace gradguard::harness
