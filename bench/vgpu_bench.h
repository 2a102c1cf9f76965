// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace gradguard::bench {

struct VgpuBenchOptions {
    std::uint32_t elements = 1U << 20;
    std::uint32_t samples = 7;
    std::string observers = "none";  ///< Whose cost to measure; see observers::make_observers().
};

/// Runs the F32 first-stage scan and the clipped AdamW update of a later step on the virtual GPU (kernels without
/// contraction) and in native loops, alternating which goes first; checks that both give the same bits. Times are CPU
/// times of this thread, so that a busy machine does not count; medians over the samples.
/// {"scan": {"elements_per_second", "lane_instructions_per_second", "native_ratio"}, "update": {the same}}
/// native_ratio: the virtual GPU's time over the native loop's. With observers also "observer_ratio", the time with
/// them over the time without, and "observed_elements_per_second". Throws std::runtime_error when the bits differ or
/// an observer has a finding.
nlohmann::json measure_vgpu(const VgpuBenchOptions& options = {});

/// The command: measures and prints, as JSON or as text. Returns the exit status.
int run_vgpu_bench(bool json, const std::string& observers = "none");

}  // namespace gradguard::bench
