// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bench_text.h"

#include <fmt/format.h>

#include "bench/plot_axes.h"
#include "tools/cli/text_table.h"

namespace gradguard::tools {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

std::string seconds_of(const Json& seconds) {
    return seconds.is_null() ? "-" : bench::seconds_text(seconds.get<double>());
}

std::string rate_text(const Json& bytes_per_second) {
    return bytes_per_second.is_null() ? "-" : fmt::format("{:.3f} TB/s", bytes_per_second.get<double>() / 1e12);
}

std::string count_of(const Json& count) { return count.is_null() ? "-" : grouped(count.get<std::uint64_t>()); }

std::string device_text(const Json& device) {
    const auto name = device.at("name").get<std::string>(), kind = device.at("kind").get<std::string>();
    const std::string driver = device.at("driver").is_null() ? "" : ", " + device.at("driver").get<std::string>();
    return name == kind ? "the " + kind : name + " (" + kind + driver + ")";
}

std::string what_ran(const Json& report) {
    const Json& c = report.at("configuration");
    return fmt::format("{} of {} elements, {} gradients, {}, kernels {} ({}), on {}",
                       counted(c.at("tensors"), "tensor"), grouped(c.at("elements").get<std::uint64_t>()),
                       c.at("dtype").get<std::string>(), c.at("amsgrad").get<bool>() ? "AMSGrad" : "AdamW",
                       c.at("compiler").get<std::string>(),
                       report.at("environment").at("kernels").at("source").get<std::string>(),
                       device_text(report.at("environment").at("device")));
}

std::string times_text(const Json& report) {
    TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                     Align::kRight, Align::kRight, Align::kRight});
    table.add({"one step", "median", "least", "greatest", "device clock", "two-read rate", "launches",
               "allocated bytes", "readbacks"});
    for (const Json& path : report.at("paths")) {
        const Json& seconds = path.at("step_seconds");
        const Json& device = path.at("device_step_seconds");
        const Json& rate = path.at("bytes_per_second");
        const Json& calls = path.at("calls");
        table.add({path.at("name").get<std::string>(), seconds_of(seconds.at("median")),
                   seconds_of(seconds.at("minimum")), seconds_of(seconds.at("maximum")),
                   device.is_null() ? "-" : seconds_of(device.at("median")),
                   rate.is_null() ? "-" : rate_text(rate.at("two_reads")), count_of(calls.at("launches")),
                   count_of(calls.at("allocated_bytes")), count_of(calls.at("readbacks"))});
    }
    return table.text();
}

std::string ratios_text(const Json& report) {
    std::string text;
    for (const Json& ratio : report.at("ratios")) {
        const Json& each = ratio.at("of_each_sample");
        text += fmt::format("{} / {}: {:.3f} of the medians; sample by sample {:.3f} to {:.3f}\n",
                            ratio.at("path").get<std::string>(), ratio.at("to").get<std::string>(),
                            ratio.at("median").get<double>(), each.at("minimum").get<double>(),
                            each.at("maximum").get<double>());
    }
    return text;
}

std::string floor_text(const Json& report) {
    const Json& once = report.at("floor").at("read_once");
    const Json& twice = report.at("floor").at("read_twice");
    std::string text = fmt::format("floor: {} bytes per element with the gradient read once, {} read twice",
                                   once.at("bytes_per_element").get<std::uint64_t>(),
                                   twice.at("bytes_per_element").get<std::uint64_t>());
    if (!report.at("copy").is_null()) {
        text += fmt::format("; at the copy bandwidth of {} measured here: {} and {}",
                            rate_text(report.at("copy").at("bytes_per_second")), seconds_of(once.at("step_seconds")),
                            seconds_of(twice.at("step_seconds")));
    }
    return text + "\n";
}

std::string savings_text(const Json& report) {
    const Json& savings = report.at("savings");
    const Json& counted_savings = savings.at("counted");
    std::string text =
        fmt::format("saved against the staged baseline: {}, {} bytes of temporary, {} bytes of traffic",
                    savings.at("launches") == 1 ? "1 launch" : count_of(savings.at("launches")) + " launches",
                    count_of(savings.at("temporary_bytes")), count_of(savings.at("traffic_bytes")));
    if (!counted_savings.is_null()) {
        text += fmt::format(" (counted: {}, {}, {})", counted_savings.at("launches").get<std::int64_t>(),
                            counted_savings.at("temporary_bytes").get<std::int64_t>(),
                            counted_savings.at("traffic_bytes").is_null()
                                ? "-"
                                : std::to_string(counted_savings.at("traffic_bytes").get<std::int64_t>()));
    }
    return text + "\n";
}

std::string comparisons_text(const Json& report) {
    std::uint64_t values = 0, enclosed = 0;
    for (const Json& comparison : report.at("comparisons")) {
        values += comparison.at("values").get<std::uint64_t>();
        enclosed += comparison.at("enclosed").get<std::uint64_t>();
    }
    return fmt::format("compared {} times: {} values, {}\n", report.at("comparisons").size(), grouped(values),
                       enclosed == 0 ? "the same bits"
                                     : grouped(enclosed) + " with other bits, all within the enclosure of contraction");
}

std::string work_text(const Json& report) {
    TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
    table.add({"one step, by kernel", "launches", "lane instructions", "per element", "sectors", "per element"});
    for (const Json& path : report.at("paths")) {
        if (path.at("work").is_null()) return "";
        const auto add = [&](const Json& row, const std::string& name) {
            table.add(
                {name, count_of(row.at("launches")), count_of(row.at("lane_instructions")),
                 fmt::format("{:.3f}", row.at("lane_instructions_per_element").get<double>()),
                 grouped(row.at("sectors_read").get<std::uint64_t>() + row.at("sectors_written").get<std::uint64_t>()),
                 fmt::format("{:.4f}", row.at("sectors_per_element").get<double>())});
        };
        for (const Json& row : path.at("work").at("kernels"))
            add(row, path.at("name").get<std::string>() + " " + row.at("kernel").get<std::string>());
        add(path.at("work").at("all"), path.at("name").get<std::string>() + ", all");
    }
    return "\ncounts of the virtual GPU; no time of any hardware\n" + table.text();
}

}  // namespace

std::string bench_report_text(const Json& report) {
    return what_ran(report) + "\ntimes: " + report.at("clock").get<std::string>() + "\n\n" + times_text(report) + "\n" +
           ratios_text(report) + floor_text(report) + savings_text(report) + comparisons_text(report) +
           work_text(report);
}

std::string bench_table_text(std::span<const Json> reports) {
    TextTable table({Align::kRight, Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight,
                     Align::kRight, Align::kRight, Align::kRight, Align::kRight});
    table.add({"elements", "tensors", "gradients", "kernels", "path", "step", "to the first", "two-read rate",
               "of copy", "sectors/element"});
    for (const Json& report : reports) {
        const Json& c = report.at("configuration");
        const double first = report.at("paths").at(0).at("step_seconds").at("median").get<double>();
        for (const Json& path : report.at("paths")) {
            const Json& rate = path.at("bytes_per_second");
            const bool has_share = !rate.is_null() && !report.at("copy").is_null();
            const double median = path.at("step_seconds").at("median").get<double>();
            table.add({grouped(c.at("elements").get<std::uint64_t>()), count_of(c.at("tensors")),
                       c.at("dtype").get<std::string>() + (c.at("amsgrad").get<bool>() ? " AMSGrad" : ""),
                       c.at("compiler").get<std::string>() + (c.at("fmad").get<bool>() ? " fmad" : " nofmad"),
                       path.at("name").get<std::string>(), bench::seconds_text(median),
                       fmt::format("{:.3f}", median / first), rate.is_null() ? "-" : rate_text(rate.at("two_reads")),
                       has_share ? fmt::format("{:.1f} %", 100 * rate.at("two_reads").get<double>() /
                                                               report.at("copy").at("bytes_per_second").get<double>())
                                 : "-",
                       path.at("work").is_null()
                           ? "-"
                           : fmt::format("{:.4f}", path.at("work").at("all").at("sectors_per_element").get<double>())});
        }
    }
    return table.text();
}

}  // namespace gradguard::tools
