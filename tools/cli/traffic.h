// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/io/results.h"
#include "harness/observers/counts.h"
#include "tools/cli/group_file.h"
#include "tools/cli/observations.h"
#include "tools/cli/options.h"

namespace gradguard::tools {

/// Sums over the steps of a run: how many elements were scanned and updated, and the bytes of global memory that this
/// needs at least: every operand read or written once.
class Work {
  public:
    /// `amsgrad`: as the step was asked for. `file` brought the gradients of `result`.
    void add(const harness::StepResult& result, const GroupFile& file, bool amsgrad);

    std::uint64_t scanned_elements = 0;
    std::uint64_t scanned_bytes = 0;  ///< Of gradients.
    std::uint64_t updated_elements = 0;
    std::uint64_t updated_gradient_bytes = 0;
    std::uint64_t updated_other_bytes = 0;  ///< Parameters and moments, read and written.
};

/// Global memory traffic in bytes per element; absent where there was no such element.
struct TrafficPerElement {
    std::optional<double> scan;
    std::optional<double> update;
    std::optional<double> floor_scan;        ///< The gradient, once.
    std::optional<double> floor_read_once;   ///< A step that reads each gradient once, for scan and update together.
    std::optional<double> floor_read_twice;  ///< A step that scans first, then updates.
};

/// `kernels`: what was counted, by kernel.
TrafficPerElement traffic_per_element(const std::map<std::string, observers::Totals>& kernels, const Work& work);

/// The run as JSON on standard output; with what observers and counters saw where `request` asks for them.
void print_run_json(const std::string& run, const ScanRequest& request, const Observations& observations,
                    const Work& work);
/// The same for people, after the run's own text. Prints nothing where nobody observed or counted.
void print_observations(const Observations& observations, const Work& work);

std::string traffic_text(const TrafficPerElement& traffic);
nlohmann::ordered_json traffic_json(const TrafficPerElement& traffic);

}  // namespace gradguard::tools
