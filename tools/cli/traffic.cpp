// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/traffic.h"

#include <fmt/format.h>

#include "reference/contract/dtype.h"

namespace gradguard::tools {
namespace {

/// Parameters and moments of one element: parameters are read and written, moments written and, after the first step,
/// read.
std::uint64_t other_bytes(bool first_step, bool amsgrad) {
    const std::uint64_t moments = amsgrad ? 3 : 2;
    return 4 * (2 + moments * (first_step ? 1 : 2));
}

std::optional<double> ratio(std::uint64_t bytes, std::uint64_t elements) {
    if (elements == 0) return std::nullopt;
    return static_cast<double>(bytes) / static_cast<double>(elements);
}

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

void Work::add(const harness::StepResult& result, const GroupFile& file, bool amsgrad) {
    for (std::size_t i = 0; i < result.entries.size(); ++i) {
        const harness::EntryResult& entry = result.entries[i];
        const std::uint64_t gradient = element_bytes(*harness::contract_dtype(file.entries[i].grad->dtype));
        if (result.report) {
            scanned_elements += entry.elements;
            scanned_bytes += entry.elements * gradient;
        }
        if (!entry.updated) continue;
        updated_elements += entry.elements;
        updated_gradient_bytes += entry.elements * gradient;
        updated_other_bytes += entry.elements * other_bytes(entry.step == 1, amsgrad);
    }
}

TrafficPerElement traffic_per_element(const std::map<std::string, observers::Totals>& kernels, const Work& work) {
    std::uint64_t scan = 0, update = 0;
    for (const auto& [kernel, totals] : kernels) {
        (kernel.starts_with("adamw") ? update : scan) += totals.global_reads.bytes + totals.global_writes.bytes;
    }
    const std::uint64_t once = work.updated_other_bytes + work.updated_gradient_bytes;
    TrafficPerElement traffic;
    traffic.scan = ratio(scan, work.scanned_elements);
    traffic.floor_scan = ratio(work.scanned_bytes, work.scanned_elements);
    traffic.update = ratio(update, work.updated_elements);
    traffic.floor_read_once = ratio(once, work.updated_elements);
    traffic.floor_read_twice = ratio(once + work.updated_gradient_bytes, work.updated_elements);
    return traffic;
}

void print_run_json(const std::string& run, const ScanRequest& request, const Observations& observations,
                    const Work& work) {
    auto json = nlohmann::ordered_json::parse(run);
    if (request.observers != "none" || request.count) add_json(json, observations);
    if (request.count)
        json["counts"]["traffic_per_element"] = traffic_json(traffic_per_element(observations.kernels, work));
    fmt::print("{}\n", json.dump(2));
}

void print_observations(const Observations& observations, const Work& work) {
    fmt::print("{}", checked_text(observations));
    if (observations.kernels.empty()) return;
    fmt::print("\n{}\n{}", counts_text(observations.kernels),
               traffic_text(traffic_per_element(observations.kernels, work)));
}

std::string traffic_text(const TrafficPerElement& traffic) {
    if (!traffic.scan) return "traffic: nothing was scanned\n";
    if (!traffic.update) {
        return fmt::format("traffic: {:.3f} bytes per element scanned; floor {:.3f}, the gradient read once\n",
                           *traffic.scan, *traffic.floor_scan);
    }
    return fmt::format(
        "traffic: {:.3f} bytes per element scanned + {:.3f} per element updated = {:.3f}; floor {:.3f} with the "
        "gradient read once, {:.3f} read twice\n",
        *traffic.scan, *traffic.update, *traffic.scan + *traffic.update, *traffic.floor_read_once,
        *traffic.floor_read_twice);
}

nlohmann::ordered_json traffic_json(const TrafficPerElement& traffic) {
    nlohmann::ordered_json json;
    json["scan_bytes"] = number_or_null(traffic.scan);
    json["update_bytes"] = number_or_null(traffic.update);
    const bool both = traffic.scan && traffic.update;
    json["bytes"] = both ? nlohmann::ordered_json(*traffic.scan + *traffic.update) : nlohmann::ordered_json(nullptr);
    json["floor_scan"] = number_or_null(traffic.floor_scan);
    json["floor_read_once"] = number_or_null(traffic.floor_read_once);
    json["floor_read_twice"] = number_or_null(traffic.floor_read_twice);
    return json;
}

}  // namespace gradguard::tools
