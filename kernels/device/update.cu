// SPDX-License-Identifier: Apache-2.0
#include "kernels/device/adamw_math.cuh"
#include "kernels/device/load.cuh"
#include "kernels/device/params.h"
#include "reference/contract/constants.h"

/// The update: entry points and transport of contract section 6. The formula is in adamw_math.cuh.
namespace gradguard::kernels {

template <class Stored, bool kFirst, bool kAmsgrad, bool kClipped>
__device__ inline void update(const UpdateArguments& arguments) {
    const float* parameters = reinterpret_cast<const float*>(arguments.parameters);
    const Stored* gradients = reinterpret_cast<const Stored*>(arguments.gradients);
    const float* first_moment = reinterpret_cast<const float*>(arguments.first_moment);
    const float* second_moment = reinterpret_cast<const float*>(arguments.second_moment);
    const float* max_second_moment = reinterpret_cast<const float*>(arguments.max_second_moment);
    float* new_parameters = reinterpret_cast<float*>(arguments.new_parameters);
    float* new_first_moment = reinterpret_cast<float*>(arguments.new_first_moment);
    float* new_second_moment = reinterpret_cast<float*>(arguments.new_second_moment);
    float* new_max_second_moment = reinterpret_cast<float*>(arguments.new_max_second_moment);
    const unsigned int stride = kThreadsPerBlock * gridDim.x;
#pragma unroll 1
    for (unsigned int i = blockIdx.x * kThreadsPerBlock + threadIdx.x; i < arguments.elements; i += stride) {
        Element old = {parameters[i], 0.0F, 0.0F, 0.0F};
        if constexpr (!kFirst) {
            old.first_moment = first_moment[i];
            old.second_moment = second_moment[i];
            if constexpr (kAmsgrad) old.max_second_moment = max_second_moment[i];
        }
        const Element fresh = adamw<kAmsgrad, kClipped>(arguments, widen(gradients[i]), old);
        new_parameters[i] = fresh.parameter;
        new_first_moment[i] = fresh.first_moment;
        new_second_moment[i] = fresh.second_moment;
        if constexpr (kAmsgrad) new_max_second_moment[i] = fresh.max_second_moment;
    }
}

// Every combination that decides which memory is touched is an entry of its own, and so is clipping, which the
// unguarded operator must not pay for. `maximize` is one exact product and needs no variant.
#define GRADGUARD_ADAMW(suffix, Stored, first, amsgrad, clipped)                                               \
    extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) adamw_##suffix(UpdateArguments arguments) { \
        update<Stored, first, amsgrad, clipped>(arguments);                                                    \
    }
#define GRADGUARD_ADAMW_OF_DTYPE(dtype, Stored)                         \
    GRADGUARD_ADAMW(dtype, Stored, false, false, false)                 \
    GRADGUARD_ADAMW(dtype##_clipped, Stored, false, false, true)        \
    GRADGUARD_ADAMW(dtype##_amsgrad, Stored, false, true, false)        \
    GRADGUARD_ADAMW(dtype##_amsgrad_clipped, Stored, false, true, true) \
    GRADGUARD_ADAMW(dtype##_first, Stored, true, false, false)          \
    GRADGUARD_ADAMW(dtype##_first_clipped, Stored, true, false, true)   \
    GRADGUARD_ADAMW(dtype##_first_amsgrad, Stored, true, true, false)   \
    GRADGUARD_ADAMW(dtype##_first_amsgrad_clipped, Stored, true, true, true)

GRADGUARD_ADAMW_OF_DTYPE(f32, float)
GRADGUARD_ADAMW_OF_DTYPE(f16, F16)
GRADGUARD_ADAMW_OF_DTYPE(bf16, BF16)

}  // namespace gradguard::kernels
