// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/devices/hooked_device.h"
#include "harness/subjects/subject.h"
#include "kernels/host/guarded_adamw.h"

namespace gradguard::harness {

/// The operations under test. The defaults are the library's; a planted fault of the host puts its own in their place.
struct Operations {
    using Guarded = std::function<GuardedAdamWUpdate(std::span<const AdamWEntry>, const AdamWOptions&,
                                                     const StepControl&, const GradientGuardOptions&)>;
    using Unguarded = std::function<AdamWUpdate(const AdamWEntry&, const AdamWOptions&, const StepControl&)>;
    using Statistics = std::function<GradientStatsReport(std::span<const Tensor>, float gradient_scale)>;

    Guarded guarded = guarded_adamw_step;
    Unguarded unguarded = [](const AdamWEntry& entry, const AdamWOptions& options, const StepControl& control) {
        return adamw_step(entry.parameters, entry.gradients, entry.state, options, control);
    };
    Statistics statistics = gradient_stats_sync;
};

struct LibraryRecipe {
    std::string name;
    Abilities abilities;
    KernelSource kernels;
    Operations operations;
    std::vector<std::shared_ptr<DeviceHook>> hooks;  ///< Between the library and the device.
};

/// The library with a kernel module on the virtual GPU, observers attached and inputs marked read-only. Throws
/// DeviceUnavailable for another device, std::invalid_argument for an unknown observer, Error{DeviceFailure} for
/// kernels that cannot be loaded.
std::unique_ptr<Subject> make_library_subject(LibraryRecipe recipe, const SubjectOptions& options);

}  // namespace gradguard::harness
