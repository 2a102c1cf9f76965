// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Loading a stored gradient as FP32 (contract section 4: raw = float32(g)). Both widenings are exact. F16 takes one
/// conversion instruction and BF16 a shift, so no toolkit header is needed.
namespace gradguard::kernels {

struct F16 {
    unsigned short bits;
};
struct BF16 {
    unsigned short bits;
};

__device__ inline float widen(float value) { return value; }

__device__ inline float widen(F16 value) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
}

__device__ inline float widen(BF16 value) { return __uint_as_float(static_cast<unsigned int>(value.bits) << 16); }

}  // namespace gradguard::kernels
