// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// What a user would write in plain C++ for the same work: the yardstick of the virtual GPU. Compiled at -O3 for the
/// baseline processor, apart from the project's own options. The arithmetic is that of the kernels built without
/// contraction, so both sides can be compared bit for bit.
namespace gradguard::bench {

/// First stage of the scan (contract section 4): `gradients` [elements] to `triples` [3 * blocks], flag as 0.0 or 1.0.
void native_scan(const float* gradients, std::uint32_t elements, float reciprocal_scale, std::uint32_t blocks,
                 float* triples);

struct NativeUpdate {
    const float* parameters;
    const float* gradients;
    const float* first_moment;
    const float* second_moment;
    float* new_parameters;
    float* new_first_moment;
    float* new_second_moment;
    std::uint32_t elements;
    float reciprocal_scale;
    float clip;
    float direction;
    float beta1;
    float one_minus_beta1;
    float beta2;
    float one_minus_beta2;
    float inverse_bias1;
    float inverse_bias2;
    float epsilon;
    float learning_rate;
    float decay;
};

/// AdamW, clipped, a later step (contract section 6).
void native_update(const NativeUpdate& arguments);

}  // namespace gradguard::bench
