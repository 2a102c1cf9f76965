// SPDX-License-Identifier: Apache-2.0
#include "bench/step_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include "bench/plot_axes.h"
#include "harness/campaign/svg.h"

namespace gradguard::bench {
namespace {

using harness::Svg;
using Anchor = Svg::Anchor;
using Json = nlohmann::ordered_json;

constexpr double kWidth = 360.0, kHeight = 260.0, kHeader = 68.0, kRowHead = 26.0;
constexpr double kLeft = 58.0, kRight = 14.0, kTop = 30.0, kBottom = 42.0;
constexpr int kColours = 5;
constexpr double kSectorBytes = 32.0;

constexpr const char* kStyle = R"(
svg { --ink: #1b1f24; --soft: #5b6570; --paper: #ffffff; --rule: #d8dde3; background: var(--paper); }
@media (prefers-color-scheme: dark) { svg { --ink: #e4e8ec; --soft: #9aa5b1; --paper: #14181d; --rule: #333b45; } }
text { fill: var(--ink); font: 11px system-ui, "DejaVu Sans", sans-serif; }
.tick, .label { fill: var(--soft); } .tick { font-size: 10px; } .head { font-weight: 600; font-size: 12px; }
.title { font-weight: 600; font-size: 15px; } .grid { stroke: var(--rule); stroke-width: .6; }
.axis { stroke: var(--soft); stroke-width: 1; } .paper { fill: var(--paper); }
.floor { fill: none; stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 5 3; }
.once { fill: none; stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 1.5 3; }
.p0 { stroke: #2166ac; } .p1 { stroke: #d6604d; } .p2 { stroke: #1b7837; } .p3 { stroke: #9970ab; } .p4 { stroke: #8c510a; }
.line { fill: none; stroke-width: 1.8; } .range { stroke-width: 1; }
.d0 { fill: #2166ac; } .d1 { fill: #d6604d; } .d2 { fill: #1b7837; } .d3 { fill: #9970ab; } .d4 { fill: #8c510a; }
)";

/// What the reports are of, and so what is drawn.
enum class Mode { kHardware, kSimulatedTime, kCounts };

struct Value {
    double median = 0.0, minimum = 0.0, maximum = 0.0;
};

/// One path of one report at one place of an axis.
struct Point {
    double x = 0.0;
    Value y;
};

/// What one panel shows: a line for each path, and floors under (or above) them.
struct Panel {
    std::string title, x_label, y_label;
    bool times = false;                               ///< On a logarithmic axis.
    std::map<std::string, std::vector<Point>> lines;  ///< By path.
    std::vector<std::pair<double, double>> twice, once;
};

Mode mode_of(std::span<const Json> reports) {
    if (reports.empty()) throw std::invalid_argument("want at least one report, got none");
    std::set<std::string> kinds;
    bool counts = true;
    for (const Json& report : reports) {
        if (report.at("paths").empty()) throw std::invalid_argument("want reports with paths, got one without");
        kinds.insert(report.at("environment").at("device").at("kind").get<std::string>());
        for (const Json& path : report.at("paths")) counts = counts && !path.at("work").is_null();
    }
    if (kinds.size() > 1) {
        throw std::invalid_argument("want reports of one kind of device, got " + *kinds.begin() + " and " +
                                    *kinds.rbegin());
    }
    if (reports.front().at("hardware_time").get<bool>()) return Mode::kHardware;
    return counts ? Mode::kCounts : Mode::kSimulatedTime;
}

double elements_of(const Json& report) { return report.at("configuration").at("elements").get<double>(); }
double tensors_of(const Json& report) { return report.at("configuration").at("tensors").get<double>(); }

/// A step's cost: its time, or the sectors that it moves for each element.
Value cost(Mode mode, const Json& path) {
    if (mode == Mode::kCounts) {
        const double sectors = path.at("work").at("all").at("sectors_per_element").get<double>();
        return {sectors, sectors, sectors};
    }
    const Json& seconds = path.at("step_seconds");
    return {seconds.at("median").get<double>(), seconds.at("minimum").get<double>(),
            seconds.at("maximum").get<double>()};
}

/// The least cost of a step that reads its gradients once or twice, where that is known.
std::optional<double> floor_cost(Mode mode, const Json& report, const char* reads) {
    const Json& floor = report.at("floor").at(reads);
    if (mode == Mode::kCounts) return floor.at("bytes_per_element").get<double>() / kSectorBytes;
    if (floor.at("step_seconds").is_null()) return std::nullopt;
    return floor.at("step_seconds").get<double>();
}

/// Bytes per second by the two-read count, or lane instructions per element, or elements per second of a simulation.
Value rate(Mode mode, const Json& report, const Json& path) {
    if (mode == Mode::kCounts) {
        const double each = path.at("work").at("all").at("lane_instructions_per_element").get<double>();
        return {each, each, each};
    }
    const double amount =
        elements_of(report) * tensors_of(report) *
        (mode == Mode::kHardware ? report.at("floor").at("read_twice").at("bytes_per_element").get<double>() : 1.0);
    const Value seconds = cost(mode, path);
    return {amount / seconds.median, amount / seconds.maximum, amount / seconds.minimum};
}

/// The value of `fixed` for which the reports have the most different values of `varied`.
double most_varied(std::span<const Json* const> reports, double (*fixed)(const Json&), double (*varied)(const Json&)) {
    std::map<double, std::set<double>> found;
    for (const Json* report : reports) found[fixed(*report)].insert(varied(*report));
    return std::ranges::max_element(found, {}, [](const auto& entry) { return entry.second.size(); })->first;
}

Panel cost_panel(Mode mode, std::span<const Json* const> reports, bool over_elements) {
    const auto fixed = over_elements ? tensors_of : elements_of;
    const auto varied = over_elements ? elements_of : tensors_of;
    const double held = most_varied(reports, fixed, varied);
    Panel panel;
    panel.title = over_elements ? fmt::format("{} tensor{}", count_text(held), held == 1 ? "" : "s")
                                : fmt::format("{} elements in each tensor", count_text(held));
    panel.x_label = over_elements ? "elements in each tensor" : "tensors";
    panel.y_label = mode == Mode::kCounts     ? "32-byte sectors per element"
                    : mode == Mode::kHardware ? "time of one step"
                                              : "time of one simulated step";
    panel.times = mode != Mode::kCounts;
    for (const Json* report : reports) {
        if (fixed(*report) != held) continue;
        const double x = varied(*report);
        for (const Json& path : (*report).at("paths")) {
            panel.lines[path.at("name").get<std::string>()].push_back({x, cost(mode, path)});
        }
        if (const auto floor = floor_cost(mode, *report, "read_twice")) panel.twice.emplace_back(x, *floor);
        if (const auto floor = floor_cost(mode, *report, "read_once")) panel.once.emplace_back(x, *floor);
    }
    return panel;
}

Panel rate_panel(Mode mode, std::span<const Json* const> reports) {
    const double held = most_varied(reports, tensors_of, elements_of);
    constexpr double kTera = 1e12;
    Panel panel;
    panel.title = fmt::format("{} tensor{}", count_text(held), held == 1 ? "" : "s");
    panel.x_label = "elements in each tensor";
    const double unit = mode == Mode::kHardware ? kTera : mode == Mode::kCounts ? 1.0 : 1e6;
    panel.y_label = mode == Mode::kHardware ? "TB/s, gradient read twice"
                    : mode == Mode::kCounts ? "lane instructions per element"
                                            : "million elements per simulated second";
    for (const Json* report : reports) {
        if (tensors_of(*report) != held) continue;
        const double x = elements_of(*report);
        for (const Json& path : (*report).at("paths")) {
            const Value value = rate(mode, *report, path);
            panel.lines[path.at("name").get<std::string>()].push_back(
                {x, {value.median / unit, value.minimum / unit, value.maximum / unit}});
        }
        if (mode != Mode::kHardware || (*report).at("copy").is_null()) continue;
        const double copy = (*report).at("copy").at("bytes_per_second").get<double>() / unit;
        const Json& floor = (*report).at("floor");
        panel.twice.emplace_back(x, copy);
        panel.once.emplace_back(x, copy * floor.at("read_twice").at("bytes_per_element").get<double>() /
                                       floor.at("read_once").at("bytes_per_element").get<double>());
    }
    return panel;
}

class PanelPainter {
  public:
    PanelPainter(Svg& svg, const Panel& panel, double left, double top, const std::vector<std::string>& paths)
        : svg_(svg), panel_(panel), left_(left), top_(top), paths_(paths) {
        std::vector<double> xs, ys;
        for (const auto& [name, points] : panel.lines) {
            for (const Point& point : points) {
                xs.push_back(point.x);
                ys.insert(ys.end(), {point.y.minimum, point.y.maximum});
            }
        }
        for (const auto& floor : {panel.twice, panel.once}) {
            for (const auto& [x, y] : floor) ys.push_back(y);
        }
        x_ = axis_for(xs, true, left + kLeft, left + kWidth - kRight);
        y_ = axis_for(ys, panel.times, top + kHeight - kBottom, top + kTop);
    }

    void paint() {
        frame();
        floor(panel_.twice, "floor");
        floor(panel_.once, "once");
        for (const auto& [name, points] : panel_.lines) line(name, points);
    }

  private:
    void frame() {
        std::set<double> sizes;
        for (const auto& [name, points] : panel_.lines) {
            for (const Point& point : points) sizes.insert(point.x);
        }
        double free_from = 0;
        for (const double size : sizes) {
            svg_.line(x_.at(size), y_.begin, x_.at(size), y_.end, "grid");
            if (x_.at(size) < free_from) continue;
            svg_.text(x_.at(size), y_.begin + 14, Anchor::kMiddle, "tick", count_text(size));
            free_from = x_.at(size) + 30;
        }
        for (const auto& [value, text] : y_.ticks(panel_.times ? seconds_text : number_text)) {
            svg_.line(x_.begin, y_.at(value), x_.end, y_.at(value), "grid");
            svg_.text(x_.begin - 6, y_.at(value) + 3.5, Anchor::kEnd, "tick", text);
        }
        svg_.line(x_.begin, y_.begin, x_.end, y_.begin, "axis");
        svg_.line(x_.begin, y_.begin, x_.begin, y_.end, "axis");
        svg_.text(x_.begin, top_ + 18, Anchor::kStart, "head", panel_.title);
        svg_.text((x_.begin + x_.end) / 2, top_ + kHeight - 10, Anchor::kMiddle, "label", panel_.x_label);
        svg_.upright_text(left_ + 12, (y_.begin + y_.end) / 2, "label", panel_.y_label);
    }

    void floor(std::vector<std::pair<double, double>> points, const char* style) {
        if (points.empty()) return;
        std::ranges::sort(points);
        std::vector<std::pair<double, double>> pixels;
        // From edge to edge where it is level, so that a single size shows a line as well.
        if (!panel_.times) pixels.emplace_back(x_.begin, y_.at(points.front().second));
        for (const auto& [x, y] : points) pixels.emplace_back(x_.at(x), y_.at(y));
        if (!panel_.times) pixels.emplace_back(x_.end, y_.at(points.back().second));
        svg_.path(pixels, style);
    }

    void line(const std::string& name, std::vector<Point> points) {
        const auto which = std::ranges::find(paths_, name) - paths_.begin();
        const std::string colour = std::to_string(which % kColours);
        std::ranges::sort(points, {}, &Point::x);
        std::vector<std::pair<double, double>> pixels;
        for (const Point& point : points) {
            const double x = x_.at(point.x);
            pixels.emplace_back(x, y_.at(point.y.median));
            svg_.line(x, y_.at(point.y.minimum), x, y_.at(point.y.maximum), ("range p" + colour).c_str());
        }
        svg_.path(pixels, ("line p" + colour).c_str());
        for (const auto& [x, y] : pixels) svg_.dot(x, y, 2.6, ("d" + colour).c_str());
    }

    Svg& svg_;
    const Panel& panel_;
    double left_, top_;
    const std::vector<std::string>& paths_;
    PlotAxis x_, y_;
};

void draw_legend(Svg& svg, Mode mode, const std::vector<std::string>& paths) {
    constexpr double kY = 60.0;
    double x = 16;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        svg.rectangle(x, kY - 8, 12, 8, ("d" + std::to_string(i % kColours)).c_str());
        svg.text(x + 17, kY, Anchor::kStart, "tick", paths[i]);
        x += 40 + 6.5 * static_cast<double>(paths[i].size());
    }
    if (mode == Mode::kSimulatedTime) return;
    const std::string where = mode == Mode::kHardware ? " at the measured copy bandwidth" : "";
    for (const auto& [style, words] : {std::pair("floor", "floor, gradient read twice" + where),
                                       std::pair("once", "floor, gradient read once" + where)}) {
        svg.path({{x, kY - 4}, {x + 26, kY - 4}}, style);
        svg.text(x + 32, kY, Anchor::kStart, "tick", words);
        x += 52 + 5.6 * static_cast<double>(words.size());
    }
}

std::string variant_of(const Json& report) {
    const Json& configuration = report.at("configuration");
    return fmt::format("{} gradients, {}, kernels: {}, contraction {}", configuration.at("dtype").get<std::string>(),
                       configuration.at("amsgrad").get<bool>() ? "AMSGrad" : "AdamW",
                       configuration.at("compiler").get<std::string>(),
                       configuration.at("fmad").get<bool>() ? "on" : "off");
}

std::string subtitle(Mode mode, const Json& report) {
    const std::string device = report.at("environment").at("device").at("name").get<std::string>();
    if (mode == Mode::kCounts) return device + ": counts of the virtual GPU; no time of any hardware";
    return device + ": " + report.at("clock").get<std::string>() + "; median, and least to greatest of the samples";
}

}  // namespace

std::string step_plot(std::span<const Json> reports) {
    const Mode mode = mode_of(reports);
    std::map<std::string, std::vector<const Json*>> variants;
    std::vector<std::string> paths;
    for (const Json& report : reports) {
        variants[variant_of(report)].push_back(&report);
        for (const Json& path : report.at("paths")) {
            const std::string name = path.at("name").get<std::string>();
            if (std::ranges::find(paths, name) == paths.end()) paths.push_back(name);
        }
    }
    const double width = 3 * kWidth + 16;
    const double height = kHeader + static_cast<double>(variants.size()) * (kHeight + kRowHead) + 8;
    Svg svg(width, height, "one optimizer step: guarded against other paths");
    svg.style(kStyle);
    svg.rectangle(0, 0, width, height, "paper");
    svg.text(16, 24, Anchor::kStart, "title", "One whole optimizer step");
    svg.text(16, 42, Anchor::kStart, "label", subtitle(mode, reports.front()));
    draw_legend(svg, mode, paths);
    double top = kHeader;
    for (const auto& [variant, members] : variants) {
        svg.text(16, top + 18, Anchor::kStart, "head", variant);
        top += kRowHead;
        const Panel panels[] = {cost_panel(mode, members, true), cost_panel(mode, members, false),
                                rate_panel(mode, members)};
        double left = 8;
        for (const Panel& panel : panels) {
            PanelPainter(svg, panel, left, top, paths).paint();
            left += kWidth;
        }
        top += kHeight;
    }
    return svg.finish();
}

}  // namespace gradguard::bench
