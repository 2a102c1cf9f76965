// SPDX-License-Identifier: Apache-2.0
// Runs groups from files on the virtual GPU, for tests in other languages: one process, any number of files.
//
// Each line of standard input names a job, its parts separated by tabs: "on" or "off" (kernels with or without
// contraction), a file of groups (read_group()), a file to write. The answer is one line: "ok", or "error: ...".
// Written are the groups' new tensors under the names of the old ones and, for each group, metadata:
//   error (kind, or null), skip_reason (or null), clip_multiplier, entries ([{updated, step}], step 0: no state), stats
//   (null when nothing was scanned, else total_norm, max_finite_abs, all_finite, elements, tensors, reduction_launches,
//   readback_bytes, scratch_bytes, summaries ([[scale, sumsq, bad]])). Floats are bits as text.
#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include "harness/devices/virtual_device.h"
#include "tests/vectors/group.h"

namespace gradguard::testing {
namespace {

using nlohmann::json;

json stats_json(const GradientStatsReport& report) {
    const GradientStats& stats = report.stats;
    json summaries = json::array();
    for (const GradientSummary& s : report.summaries) {
        summaries.push_back({bits_text(s.scale), bits_text(s.sumsq), bits_text(s.bad)});
    }
    return {{"total_norm", bits_text(stats.total_norm)},
            {"max_finite_abs", bits_text(stats.max_finite_abs)},
            {"all_finite", stats.all_finite},
            {"elements", stats.elements},
            {"tensors", stats.tensors},
            {"reduction_launches", report.reduction_launches},
            {"readback_bytes", report.readback_bytes},
            {"scratch_bytes", report.scratch_bytes},
            {"summaries", std::move(summaries)}};
}

json result_json(const GroupResult& result) {
    json entries = json::array();
    for (const reference::HostUpdate& entry : result.entries) {
        entries.push_back({{"updated", entry.updated}, {"step", entry.state ? entry.state->step : 0}});
    }
    json object = {{"clip_multiplier", bits_text(result.clip_multiplier)}, {"entries", std::move(entries)}};
    object["error"] = result.error.empty() ? json(nullptr) : json(result.error);
    object["skip_reason"] = result.skip_reason ? json(std::string(to_string(*result.skip_reason))) : json(nullptr);
    object["stats"] = result.report ? stats_json(*result.report) : json(nullptr);
    return object;
}

/// Results of one file; they own what is written from them.
struct Output {
    std::map<std::string, GroupResult> results;
    std::map<std::string, harness::SafetensorsOutput> tensors;
    std::map<std::string, std::string> metadata;

    void add(const std::string& key, const Group& group, GroupResult result) {
        metadata[key] = result_json(result).dump();
        const GroupResult& kept = results.emplace(key, std::move(result)).first->second;
        for (std::size_t i = 0; i < kept.entries.size(); ++i) {
            const std::string prefix = key + "/" + group.names[i];
            const auto put = [&](const char* suffix, const std::vector<float>& values) {
                tensors[prefix + suffix] = {"F32", {values.size()}, std::as_bytes(std::span(values))};
            };
            put(".param", kept.entries[i].parameters);
            if (!kept.entries[i].state) continue;
            put(".exp_avg", kept.entries[i].state->first_moment);
            put(".exp_avg_sq", kept.entries[i].state->second_moment);
            if (kept.entries[i].state->max_second_moment) {
                put(".max_exp_avg_sq", *kept.entries[i].state->max_second_moment);
            }
        }
    }
};

/// A device and a queue for one build of the kernels, kept from job to job.
struct Runner {
    explicit Runner(bool contracted) {
        device->set_kernel_source(KernelSource::embedded(contracted));
        queue = device->create_queue();
    }
    std::shared_ptr<harness::VirtualDevice> device = harness::VirtualDevice::create();
    std::shared_ptr<Queue> queue;
};

void run_job(const std::string& line) {
    const std::size_t first = line.find('\t');
    const std::size_t second = line.find('\t', first + 1);
    const std::string fmad = line.substr(0, first);
    if (first == std::string::npos || second == std::string::npos || (fmad != "on" && fmad != "off")) {
        throw std::invalid_argument("want 'on' or 'off', a file to read and a file to write, with tabs between");
    }
    static std::map<std::string, Runner> runners;
    const Runner& runner = runners.try_emplace(fmad, fmad == "on").first->second;
    const harness::SafetensorsFile file(line.substr(first + 1, second - first - 1));
    Output output;
    for (const auto& [key, text] : file.metadata()) {
        const Group group = read_group(file, key);
        output.add(key, group, run_group(runner.queue, group));
    }
    harness::write_safetensors(line.substr(second + 1), output.tensors, output.metadata);
}

}  // namespace
}  // namespace gradguard::testing

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        try {
            gradguard::testing::run_job(line);
            std::cout << "ok" << std::endl;
        } catch (const std::exception& error) {
            std::cout << "error: " << error.what() << std::endl;
        }
    }
    return 0;
}
