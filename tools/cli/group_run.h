// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/io/results.h"
#include "kernels/host/guarded_adamw.h"
#include "tools/cli/group_file.h"
#include "tools/cli/judge.h"
#include "tools/cli/open_device.h"
#include "tools/cli/options.h"

namespace gradguard::tools {

/// A group on a device, stepped as a trainer would: each step starts from what the last one left in device memory, and
/// each is judged from the state that the subject itself produced.
class GroupRun {
  public:
    /// `files`: the first brings parameters and state, each its gradients. Validates every step that will be taken, as
    /// far as that is possible beforehand; throws Error as contract section 3 says, in its order, before any device
    /// call, and harness::FileError for a later file with other names.
    GroupRun(const StepRequest& request, const OpenDevice& device, std::vector<GroupFile> files, std::string replay);

    /// Takes step `index` of the run (from 0) and judges it. Throws Error, DeviceFinding.
    harness::StepResult step(std::size_t index);

    /// Writes the state after the last step, in the form of the input. Throws harness::FileError.
    void write(const std::string& path) const;

    const std::vector<GroupFile>& files() const { return files_; }

  private:
    const GroupFile& file_of(std::size_t index) const;
    StepControl control_of(const GroupFile& file) const;
    void validate(const GroupFile& file) const;
    void upload_first();
    void upload_gradients(const GroupFile& file);
    OpenDevice::ReadOnly mark_inputs() const;
    JudgedGroup judged_group(const GroupFile& file) const;
    std::vector<harness::OutcomeEntry> download(const std::vector<AdamWUpdate>& updates) const;
    void require_inputs_untouched(const std::vector<AdamWEntry>& inputs, const GroupFile& file,
                                  harness::StepResult& result) const;

    const StepRequest& request_;
    const OpenDevice& device_;
    std::vector<GroupFile> files_;
    std::string replay_;
    std::vector<AdamWEntry> entries_;
    std::vector<harness::OutcomeEntry> values_;
    const GroupFile* gradients_from_ = nullptr;
};

/// The scale of a file's gradients: the flag, else the metadata, else 1. Throws nothing; its rule is the library's.
float scale_of(const ScanRequest& request, const GroupFile& file);

/// Views of a file's gradients for the oracle.
JudgedGroup judged_gradients(const ScanRequest& request, const OpenDevice& device, const GroupFile& file,
                             std::string replay);

}  // namespace gradguard::tools
