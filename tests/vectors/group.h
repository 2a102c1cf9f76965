// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/io/safetensors.h"
#include "kernels/host/device.h"
#include "reference/contract/options.h"
#include "reference/contract/report.h"
#include "reference/model/guarded_step.h"

namespace gradguard::testing {

/// One guarded step to run: names, values and options.
struct Group {
    std::vector<std::string> names;             ///< One for each entry, in input order.
    std::vector<reference::HostEntry> entries;  ///< Values of rank 1.
    AdamWOptions options;
    StepControl control;
    GradientGuardOptions guard;
};

/// What came of it. After an error everything else is as it was before.
struct GroupResult {
    std::vector<reference::HostUpdate> entries;
    std::optional<GradientStatsReport> report;  ///< Absent for Requested, Empty and an error.
    float clip_multiplier = 1.0F;
    std::optional<SkipReason> skip_reason;
    std::string error;  ///< Kind of the library's error; empty without one.
};

/// A float as its bits, "0x3F800000", and back. Throws std::invalid_argument.
std::string bits_text(float value);
std::string bits_text(double value);
float float_of_text(const std::string& text);

/// Options, scale and guard from an object with the members learning_rate, beta1, beta2, epsilon, weight_decay,
/// gradient_scale, max_norm (null: absent), guard_epsilon (bits as text), amsgrad and maximize; sets nothing else.
void read_options(const nlohmann::json& json, Group& group);

/// [n] values of a tensor of F32. Throws std::invalid_argument when there is no such tensor or it has another dtype.
std::vector<float> floats_at(const harness::SafetensorsFile& file, const std::string& name);
/// dtype and bytes of an entry's gradients.
void read_gradients(const harness::SafetensorsFile& file, const std::string& name, reference::HostEntry& entry);
/// Moments PREFIX.exp_avg, .exp_avg_sq and, with AMSGrad, .max_exp_avg_sq.
reference::HostState read_state(const harness::SafetensorsFile& file, const std::string& prefix, std::uint64_t step,
                                bool amsgrad);

/// The group KEY of a file: metadata[KEY] is an object as read_options() wants it, with a list `entries` of names and a
/// list `steps` (completed steps, 0: no state); tensors KEY/NAME.param, .grad and, with a state, the moments.
Group read_group(const harness::SafetensorsFile& file, const std::string& key);

/// Uploads, runs guarded_adamw_step(), waits and downloads. An error of the library becomes a result.
GroupResult run_group(const std::shared_ptr<Queue>& queue, const Group& group);

}  // namespace gradguard::testing
