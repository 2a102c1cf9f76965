// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

/// A loss scale that doubles after some good steps in a row and halves when a step was skipped, so that it stays just
/// below the largest one that F16 gradients bear.
class LossScale {
  public:
    LossScale(float initial, int good_steps_to_grow) : value_(initial), good_steps_to_grow_(good_steps_to_grow) {}

    float value() const { return value_; }

    void after_step(bool skipped) {
        if (skipped) {
            value_ = std::max(value_ / 2, 1.0F);
            good_steps_ = 0;
        } else if (++good_steps_ == good_steps_to_grow_) {
            value_ = std::min(value_ * 2, kLargest);
            good_steps_ = 0;
        }
    }

  private:
    static constexpr float kLargest = 0x1p40F;
    float value_;
    int good_steps_to_grow_;
    int good_steps_ = 0;
};
