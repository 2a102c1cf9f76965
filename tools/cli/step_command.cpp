// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "harness/io/results.h"
#include "tools/cli/commands.h"
#include "tools/cli/group_file.h"
#include "tools/cli/group_run.h"
#include "tools/cli/open_device.h"
#include "tools/cli/print_text.h"
#include "tools/cli/progress.h"
#include "tools/cli/traffic.h"

namespace gradguard::tools {
namespace {

std::vector<GroupFile> read_files(const std::vector<std::string>& paths) {
    std::vector<GroupFile> files;
    for (const std::string& path : paths) files.push_back(files.empty() ? read_group(path) : read_gradients(path));
    for (const std::string& note : files.front().notes) fmt::print(stderr, "gradguard: note: {}\n", note);
    return files;
}

/// The group is bad and the policy makes that an error: say where. An oracle that finds it good contradicts the
/// subject.
void explain_nonfinite(const JudgedGroup& group) {
    const std::vector<std::string> places = bad_places(group);
    for (const std::string& place : places) fmt::print(stderr, "gradguard: bad: {}\n", place);
    if (places.empty()) fmt::print(stderr, "gradguard: the oracle finds every element good: out of bounds\n");
}

}  // namespace

int run_step(const StepRequest& request, const std::string& replay) {
    const ScanRequest& scan = request.scan;
    std::vector<GroupFile> read = read_files(scan.files);
    const OpenDevice device(scan);
    std::optional<GroupRun> group(std::in_place, request, device, std::move(read), replay);
    const std::vector<GroupFile>& files = group->files();
    const std::size_t steps = request.steps.value_or(files.size());
    const TextReport text(true, scan, device.name(), steps);
    harness::RunResult run{device.name(), {}};
    Work work;
    Progress progress("step", steps);
    if (!scan.json) text.begin(files.front());
    for (std::size_t i = 0; i < steps; ++i) {
        const GroupFile& file = files[std::min(i, files.size() - 1)];
        progress.begin(i, file.file->path());
        try {
            run.steps.push_back(group->step(i));
        } catch (const Error& error) {
            progress.clear();
            if (error.kind() != ErrorKind::kNonFiniteGradients) throw;
            const JudgedGroup judged = judged_gradients(scan, device, file, replay);
            explain_nonfinite(judged);
            if (bad_places(judged).empty()) return kOutOfBounds;
            throw;
        }
        progress.clear();
        work.add(run.steps.back(), file, request.options.amsgrad);
        if (!scan.json) text.step(i, run.steps.back(), file);
    }
    if (request.out) group->write(*request.out);
    group.reset();  // with all its tensors: what is still allocated then has leaked
    device.require_no_findings_at_end();
    if (scan.json) {
        print_run_json(harness::step_run_to_json(run), scan, device.observations(), work);
    } else {
        text.finish(run);
        print_observations(device.observations(), work);
        if (request.out) fmt::print("wrote {}\n", *request.out);
    }
    return run.within_bounds() ? kWithinBounds : kOutOfBounds;
}

}  // namespace gradguard::tools
