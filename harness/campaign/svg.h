// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gradguard::harness {

/// An inline SVG picture in the making. Colours come from the page's style sheet, by class, so that the picture follows
/// a light or dark page. Coordinates in pixels, y downwards.
class Svg {
  public:
    /// `label`: what the picture shows, for readers who do not see it.
    Svg(double width, double height, const std::string& label);

    void rectangle(double x, double y, double width, double height, const char* style, double opacity = 1.0,
                   const std::string& tip = {});
    void line(double x1, double y1, double x2, double y2, const char* style);
    void path(const std::vector<std::pair<double, double>>& points, const char* style);
    void dot(double x, double y, double radius, const char* style);
    enum class Anchor { kStart, kMiddle, kEnd };
    void text(double x, double y, Anchor anchor, const char* style, const std::string& words);
    /// Text that runs upwards.
    void upright_text(double x, double y, const char* style, const std::string& words);

    /// A style sheet for a picture that stands alone.
    void style(const std::string& css) { body_ += "<style>" + css + "</style>\n"; }

    std::string finish() const { return body_ + "</svg>\n"; }

  private:
    std::string body_;
};

/// A logarithmic axis: from 2^low at pixel `begin` to 2^high at pixel `end`.
struct LogAxis {
    double low = 0.0, high = 1.0;
    double begin = 0.0, end = 1.0;

    double at(double log2_value) const { return begin + (log2_value - low) / (high - low) * (end - begin); }
    /// Powers of ten inside, as exponents, at most `most` of them.
    std::vector<int> decades(int most) const;
};

/// "10", "1000", "10^5": a power of ten for an axis.
std::string decade_text(int exponent);

}  // namespace gradguard::harness
