// SPDX-License-Identifier: Apache-2.0
#include "harness/subjects/launch_watch.h"

#include <cstring>

#include "kernels/device/params.h"

namespace gradguard::harness {

void LaunchWatch::clear() {
    calls_ = 0;
    updates_.clear();
}

void LaunchWatch::before(const CallRecord& record) {
    if (record.call == DeviceCall::kLoadModule) return;
    if (record.call == DeviceCall::kReadbackWait) return;  // of the readback that counts
    ++calls_;
    kernels::UpdateArguments arguments = {};
    if (record.call != DeviceCall::kLaunch || !record.detail.starts_with("adamw_")) return;
    if (record.arguments.size() != sizeof arguments) return;
    std::memcpy(&arguments, record.arguments.data(), sizeof arguments);
    reference::UpdateCoefficients c;
    c.r = arguments.reciprocal_scale;
    // A kernel that does not clip does not look at the argument.
    c.clip = record.detail.ends_with("_clipped") ? arguments.clip : 1.0F;
    c.beta1 = arguments.beta1;
    c.one_minus_beta1 = arguments.one_minus_beta1;
    c.beta2 = arguments.beta2;
    c.one_minus_beta2 = arguments.one_minus_beta2;
    c.inverse_bias1 = arguments.inverse_bias1;
    c.inverse_bias2 = arguments.inverse_bias2;
    c.epsilon = arguments.epsilon;
    c.learning_rate = arguments.learning_rate;
    c.decay = arguments.decay;
    c.maximize = arguments.direction == -1.0F;
    c.amsgrad = record.detail.find("_amsgrad") != std::string::npos;
    updates_.push_back({arguments.new_parameters, c});
}

std::optional<reference::UpdateCoefficients> LaunchWatch::coefficients(DeviceAddress new_parameters) const {
    for (const Update& update : updates_) {
        if (update.new_parameters == new_parameters) return update.coefficients;
    }
    return std::nullopt;
}

}  // namespace gradguard::harness
