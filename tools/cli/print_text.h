// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/io/results.h"
#include "tools/cli/group_file.h"
#include "tools/cli/options.h"

namespace gradguard::tools {

/// The results for a person: one screen. A single step is told in full; of several, a line each as they come and the
/// tensors of the last.
class TextReport {
  public:
    /// `with_update`: a step; false: a scan alone.
    TextReport(bool with_update, const ScanRequest& request, const std::string& device, std::size_t steps);

    /// Before the first result.
    void begin(const GroupFile& group) const;
    /// Step `index` (from 0) is judged; `file` brought its gradients.
    void step(std::size_t index, const harness::StepResult& result, const GroupFile& file) const;
    /// After the last.
    void finish(const harness::RunResult& run) const;

  private:
    void step_in_full(const harness::StepResult& result, const GroupFile& file) const;
    void step_line(std::size_t index, const harness::StepResult& result) const;
    void tensors(const harness::StepResult& result, const GroupFile& file) const;

    bool with_update_;
    const ScanRequest& request_;
    std::string device_;
    std::size_t steps_;
};

}  // namespace gradguard::tools
