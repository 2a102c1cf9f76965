// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "harness/campaign/climb.h"
#include "harness/compare/case_judge.h"
#include "reference/contract/options.h"
#include "reference/model/update.h"

namespace gradguard::harness {

/// One element of an unguarded step, clip 1, with the options that its coefficients come from.
struct HuntedElement {
    float raw = 0.0F;
    reference::ElementState<float> old;  ///< x is 0: without AMSGrad.
    AdamWOptions options;
    float gradient_scale = 1.0F;
    std::uint64_t step = 1;  ///< Completed steps.

    reference::UpdateCoefficients coefficients() const {
        return reference::update_coefficients(options, {.gradient_scale = gradient_scale}, 1.0F, step + 1);
    }
};

/// Which product of each line a build fuses into its addition: 0 none, 1 the first, 2 the second.
struct FusedProducts {
    int m = 0;
    int v = 0;
    int p = 0;
};

/// What an element is driven to.
enum class ElementGoal : std::uint8_t {
    kFillM,  ///< The share of m's bound, on balanced inputs.
    kFillV,
    kFillP,
    kOverflowV,  ///< (1 - beta2) * (g * g) where unfused it overflows and fused into the sum it does not.
    kOverflowP,  ///< learning_rate * ratio likewise.
    kUnderflow,  ///< g * g at the edge of underflowing to zero.
};

struct ElementFind {
    HuntedElement element;
    double score = 0.0;  ///< A share of the bound; or minus the distance from the edge, as a share of it.
};

ElementFind climb_element(ElementGoal goal, const FusedProducts& fused, Random& random, ClimbBudget& budget);

}  // namespace gradguard::harness
