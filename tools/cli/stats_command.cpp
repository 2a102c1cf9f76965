// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "harness/io/results.h"
#include "kernels/host/guarded_adamw.h"
#include "tools/cli/commands.h"
#include "tools/cli/error_text.h"
#include "tools/cli/group_file.h"
#include "tools/cli/group_run.h"
#include "tools/cli/judge.h"
#include "tools/cli/open_device.h"
#include "tools/cli/print_text.h"
#include "tools/cli/progress.h"
#include "tools/cli/traffic.h"

namespace gradguard::tools {
namespace {

GradientStatsReport scan(const OpenDevice& device, const GroupFile& file, float scale) {
    // The scale's rule comes before anything about the tensors (contract section 3, order).
    gradient_stats_sync({}, scale);
    std::vector<Tensor> gradients;
    OpenDevice::ReadOnly inputs;
    for (const FileEntry& entry : file.entries) {
        if (entry.defect) {
            gradient_stats_sync(gradients, scale);  // an earlier tensor that offends is the one named
            throw *entry.defect;
        }
        gradients.push_back(device.upload(*file.file, *entry.grad));
        device.mark_read_only(gradients.back(), inputs);
    }
    return gradient_stats_sync(gradients, scale);
}

harness::StepResult judged_scan(const ScanRequest& request, const OpenDevice& device, const GroupFile& file,
                                const std::string& replay) {
    GradientStatsReport report;
    try {
        report = scan(device, file, scale_of(request, file));
    } catch (const Error& error) {
        // A finding says more than the failure that follows from it.
        device.require_no_findings();
        throw located(error, file, request);
    }
    device.require_no_findings();
    harness::StepResult result = judge_scan(judged_gradients(request, device, file, replay), report);
    result.source = file.file->path();
    return result;
}

}  // namespace

int run_stats(const ScanRequest& request, const std::string& replay) {
    std::vector<GroupFile> files;
    for (const std::string& path : request.files) files.push_back(read_gradients(path));
    const OpenDevice device(request);
    const TextReport text(false, request, device.name(), files.size());
    harness::RunResult run{device.name(), {}};
    Work work;
    Progress progress("file", files.size());
    if (!request.json) text.begin(files.front());
    for (std::size_t i = 0; i < files.size(); ++i) {
        progress.begin(i, files[i].file->path());
        run.steps.push_back(judged_scan(request, device, files[i], replay));
        progress.clear();
        work.add(run.steps.back(), files[i], false);
        if (!request.json) text.step(i, run.steps.back(), files[i]);
    }
    device.require_no_findings_at_end();
    if (request.json) {
        print_run_json(harness::stats_run_to_json(run), request, device.observations(), work);
    } else {
        text.finish(run);
        print_observations(device.observations(), work);
    }
    return run.within_bounds() ? kWithinBounds : kOutOfBounds;
}

}  // namespace gradguard::tools
