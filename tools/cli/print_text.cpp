// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/print_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "reference/contract/tensor_layout.h"
#include "tools/cli/number_text.h"
#include "tools/cli/text_table.h"

namespace gradguard::tools {
namespace {

using harness::EntryResult;
using harness::StepResult;
using harness::WorstUlp;
using Align = TextTable::Align;

/// Tensors that a table shows; the rest is counted, bad ones are always shown.
constexpr std::size_t kMostTensors = 24;

/// One line for each step of several: step, scale, norm, difference, maximum, decision or launches.
constexpr const char* kStepLine = "  {:>5}  {:>9}  {:>16}  {:>9}  {:>12}  {}";
constexpr std::size_t kDecisionWidth = 25;

bool colours() { return ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr; }

std::string coloured(const std::string& text, const char* code) {
    return colours() ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}
std::string good(const std::string& text) { return coloured(text, "32"); }
std::string wrong(const std::string& text) { return coloured(text, "1;31"); }
std::string remarkable(const std::string& text) { return coloured(text, "33"); }

std::string number(double value) { return fmt::format("{:.9g}", value); }

std::string ulp_text(double ulp) {
    if (ulp == 0.0) return "0";
    return ulp < 1000.0 ? fmt::format("{:.3f}", ulp) : fmt::format("{:.3g}", ulp);
}

std::string ulp_cell(const std::optional<WorstUlp>& worst) {
    if (!worst) return "-";
    return worst->ulp == 0.0 ? "0" : fmt::format("{} @{}", ulp_text(worst->ulp), worst->index);
}

double worst_ulp(const StepResult& result) {
    double worst = 0.0;
    for (const EntryResult& entry : result.entries) {
        for (const auto& operand : {entry.param, entry.exp_avg, entry.exp_avg_sq, entry.max_exp_avg_sq}) {
            if (operand) worst = std::max(worst, operand->ulp);
        }
    }
    return worst;
}

/// How far the device's norm is from the exact one.
std::string norm_difference(const StepResult& result) {
    const double norm = result.report->stats.total_norm;
    const double exact = *result.exact_norm;
    if (norm == exact || !(exact > 0.0) || !std::isfinite(exact)) return norm == exact ? "equal" : "-";
    return fmt::format("{:+.2e}", (norm - exact) / exact);
}

std::string decision_text(const StepResult& result) {
    if (result.skip_reason) return remarkable(fmt::format("skip ({})", to_string(*result.skip_reason)));
    if (result.clip_multiplier == 1.0F) return "update, not clipped";
    return fmt::format("update, clipped by {}", float_text(result.clip_multiplier));
}

/// Which rows a table shows: all of a small group, else the bad ones and those with the greatest norm, in input order.
std::vector<std::size_t> shown_entries(const StepResult& result) {
    std::vector<std::size_t> order(result.entries.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (order.size() <= kMostTensors) return order;
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) {
        const EntryResult& entry = result.entries[i];
        return std::pair(entry.bad.value_or(false), entry.norm.value_or(0.0));
    });
    order.resize(kMostTensors);
    std::ranges::sort(order);
    return order;
}

std::string share_cell(const EntryResult& entry) {
    if (entry.bad.value_or(false)) return wrong("bad");
    return entry.share ? fmt::format("{:.1f} %", *entry.share * 100.0) : "-";
}

std::string first_bad_cell(const EntryResult& entry) {
    return entry.first_bad ? remarkable(fmt::format("first bad @{}", *entry.first_bad)) : "";
}

std::string build_text(const ScanRequest& request) {
    return request.contracted ? "with contraction (--fmad on)" : "without contraction (--fmad off)";
}

}  // namespace

TextReport::TextReport(bool with_update, const ScanRequest& request, const std::string& device, std::size_t steps)
    : with_update_(with_update), request_(request), device_(device), steps_(steps) {}

void TextReport::begin(const GroupFile& group) const {
    std::uint64_t elements = 0;
    for (const FileEntry& entry : group.entries) {
        if (entry.grad == nullptr) continue;
        const auto bits = *harness::safetensors_element_bits(entry.grad->dtype);
        elements += (entry.grad->end - entry.grad->begin) * 8 / bits;
    }
    fmt::print("{}: {}, {}, {} in the first file\n", with_update_ ? "guarded step" : "statistics",
               counted(steps_, with_update_ ? "step" : "scan"), counted(group.entries.size(), "tensor"),
               counted(elements, "gradient"));
    fmt::print("device {}, schedule seed {}, kernels {}\n\n", device_, request_.schedule_seed, build_text(request_));
    if (steps_ == 1) return;
    const std::string columns = fmt::format(fmt::runtime(kStepLine), "step", "scale", "norm", "vs exact", "max",
                                            with_update_ ? "decision" : "launches");
    fmt::print("{}{}\n", columns, with_update_ ? std::string(kDecisionWidth - 8, ' ') + "  worst ulp" : "");
}

void TextReport::step(std::size_t index, const StepResult& result, const GroupFile& file) const {
    if (steps_ == 1) {
        step_in_full(result, file);
    } else {
        step_line(index, result);
    }
    if (result.within_bounds()) {
        if (index + 1 == steps_ && steps_ > 1) {
            fmt::print("\nstep {}, {}\n", index + 1, result.source);
            tensors(result, file);
        }
        return;
    }
    if (steps_ > 1) fmt::print("{}\n", wrong(fmt::format("step {} is out of bounds", index + 1)));
    fmt::print("\n{}", result.failures.front());
    if (result.failures.size() > 1) fmt::print("and {} more like it in this step\n", result.failures.size() - 1);
    fmt::print("\n");
}

void TextReport::step_in_full(const StepResult& result, const GroupFile& file) const {
    TextTable facts({Align::kLeft, Align::kLeft});
    facts.add({"gradients", fmt::format("{}, gradient_scale {}", result.source, float_text(result.gradient_scale))});
    if (result.report) {
        const GradientStats& stats = result.report->stats;
        facts.add({"norm", fmt::format("{:.17g}", stats.total_norm)});
        facts.add({"exact norm", fmt::format("{:.17g}  (difference {})", *result.exact_norm, norm_difference(result))});
        facts.add({"max |value|", float_text(stats.max_finite_abs) + (stats.all_finite ? "" : "  (good elements)")});
    }
    if (with_update_) facts.add({"decision", decision_text(result)});
    const GradientStatsReport accounting = result.report.value_or(GradientStatsReport{});
    std::string launches = counted(accounting.reduction_launches, "reduction launch");
    if (accounting.reduction_launches != 1) launches = grouped(accounting.reduction_launches) + " reduction launches";
    if (with_update_) launches += fmt::format(", {} of the update", result.update_launches);
    facts.add({"launches", launches});
    facts.add({"bytes", fmt::format("{} read back, {} of scratch", grouped(accounting.readback_bytes),
                                    grouped(accounting.scratch_bytes))});
    fmt::print("{}\n", facts.text());
    tensors(result, file);
}

void TextReport::step_line(std::size_t index, const StepResult& result) const {
    const auto cell = [&](const auto& show) { return result.report ? show(result.report->stats) : std::string("-"); };
    const std::string last =
        with_update_ ? decision_text(result) : grouped(result.report ? result.report->reduction_launches : 0);
    std::string line = fmt::format(fmt::runtime(kStepLine), index + 1, float_text(result.gradient_scale),
                                   cell([](const GradientStats& stats) { return number(stats.total_norm); }),
                                   cell([&](const GradientStats&) { return norm_difference(result); }),
                                   cell([](const GradientStats& stats) { return number(stats.max_finite_abs); }), last);
    if (with_update_) {
        const std::size_t width = display_width(last);
        line += std::string(width < kDecisionWidth ? kDecisionWidth - width : 0, ' ');
        line += fmt::format("  {:>9}", ulp_text(worst_ulp(result)));
    }
    fmt::print("{}\n", line);
}

void TextReport::tensors(const StepResult& result, const GroupFile& file) const {
    if (result.entries.empty()) return;
    std::vector<Align> columns{Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight, Align::kRight};
    std::vector<std::string> head{"tensor", "dtype", "shape", "norm", "share"};
    const bool amsgrad =
        std::ranges::any_of(result.entries, [](const EntryResult& e) { return e.max_exp_avg_sq.has_value(); });
    if (with_update_) {
        for (const char* name : {"step", "param", "exp_avg", "exp_avg_sq"}) {
            head.emplace_back(name);
            columns.push_back(Align::kRight);
        }
        if (amsgrad) {
            head.emplace_back("max_exp_avg_sq");
            columns.push_back(Align::kRight);
        }
    }
    head.emplace_back("");
    columns.push_back(Align::kLeft);
    TextTable table(columns);
    table.add(head);
    const std::vector<std::size_t> shown = shown_entries(result);
    for (const std::size_t i : shown) {
        const EntryResult& entry = result.entries[i];
        const harness::SafetensorsTensor& grad = *file.entries[i].grad;
        std::vector<std::string> row{printable(entry.name), grad.dtype, list_to_string(grad.shape),
                                     entry.norm ? number(*entry.norm) : "-", share_cell(entry)};
        if (with_update_) {
            row.push_back(std::to_string(entry.step));
            for (const auto& worst : {entry.param, entry.exp_avg, entry.exp_avg_sq}) row.push_back(ulp_cell(worst));
            if (amsgrad) row.push_back(ulp_cell(entry.max_exp_avg_sq));
        }
        row.push_back(first_bad_cell(entry));
        table.add(std::move(row));
    }
    if (with_update_)
        fmt::print(
            "  greatest error of each tensor, in FP32 ulp of the exact result, @ element (many ulp are legal where "
            "terms cancel):\n");
    fmt::print("{}", table.text());
    if (shown.size() < result.entries.size()) {
        fmt::print("  and {} of smaller norm (--json lists all)\n",
                   counted(result.entries.size() - shown.size(), "more tensor"));
    }
    fmt::print("\n");
}

void TextReport::finish(const harness::RunResult& run) const {
    if (run.within_bounds()) {
        fmt::print("{}: statistics equal the contract's tree bit for bit{}\n", good("within bounds"),
                   with_update_ ? ", every updated element is a legal result" : "");
        return;
    }
    const auto failed = std::ranges::count_if(run.steps, [](const StepResult& step) { return !step.within_bounds(); });
    fmt::print("{}: {} of {}\n", wrong("OUT OF BOUNDS"), failed,
               counted(run.steps.size(), with_update_ ? "step" : "scan"));
}

}  // namespace gradguard::tools
