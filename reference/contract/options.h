// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace gradguard {

/// Hyper-parameters of the update (contract section 1). All FP32; valid ranges in contract section 3.
/// The defaults of epsilon and weight decay are deliberately not PyTorch's.
struct AdamWOptions {
    float learning_rate = 1e-3F;
    float beta1 = 0.9F;
    float beta2 = 0.999F;
    float epsilon = 1e-5F;
    float weight_decay = 1e-4F;
    bool amsgrad = false;
    bool maximize = false;
};

/// What a caller says about one step (contract section 1).
struct StepControl {
    /// The loss scale that the gradients are still multiplied by; finite, positive, with a finite FP32 reciprocal.
    float gradient_scale = 1.0F;
    /// Return everything unchanged: no scan, no launch, no allocation.
    bool skip_update = false;
};

/// What to do with a group that holds a NaN or an infinity.
enum class NonFinitePolicy : unsigned char { kSkip, kError };

constexpr std::string_view to_string(NonFinitePolicy policy) {
    return policy == NonFinitePolicy::kSkip ? "Skip" : "Error";
}

/// Options of the guard (contract section 1).
struct GradientGuardOptions {
    /// Largest norm left alone; absent: no clipping, finiteness is still checked.
    std::optional<float> max_norm = 1.0F;
    float epsilon = 1e-6F;
    NonFinitePolicy nonfinite = NonFinitePolicy::kSkip;
};

}  // namespace gradguard
