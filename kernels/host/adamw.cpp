// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/adamw.h"

#include "kernels/host/option_rules.h"
#include "kernels/host/update.h"
#include "kernels/host/validation.h"

namespace gradguard {

void AdamWUpdate::wait() const {
    if (updated) parameters.queue->synchronize();
}

AdamWUpdate adamw_step(const Tensor& parameters, const Tensor& gradients, const std::optional<AdamWState>& state,
                       const AdamWOptions& options, const StepControl& control) {
    const AdamWEntry entry = {parameters, gradients, state};
    kernels::validate(options);
    kernels::validate(control);
    kernels::validate_entries(std::span(&entry, 1), options, control);
    if (control.skip_update || parameters.empty()) return kernels::unchanged(entry);
    kernels::validate_device(parameters.queue->device().properties(), false);
    return kernels::submit_update(entry, kernels::allocate_outputs(entry, options.amsgrad), options,
                                  control.gradient_scale, 1.0F);
}

}  // namespace gradguard
