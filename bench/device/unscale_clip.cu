// SPDX-License-Identifier: Apache-2.0
#include "bench/device/params.h"
#include "kernels/device/load.cuh"
#include "reference/contract/constants.h"

/// The launch that the guarded step saves: the staged baseline's pass that unscales and clips a gradient and writes it
/// as FP32 (contract section 6, the first two lines). Both products are rounded on their own, as everywhere.
namespace gradguard::bench {

template <class Stored>
__device__ inline void unscale_clip(const UnscaleClipArguments& arguments) {
    const Stored* gradients = reinterpret_cast<const Stored*>(arguments.gradients);
    float* clipped = reinterpret_cast<float*>(arguments.clipped);
    const unsigned int stride = kThreadsPerBlock * gridDim.x;
    // 4 x elements fits in 32 bits (contract section 3), and the grid is no greater than the elements need.
#pragma unroll 1
    for (unsigned int i = blockIdx.x * kThreadsPerBlock + threadIdx.x; i < arguments.elements; i += stride) {
        const float unscaled = __fmul_rn(kernels::widen(gradients[i]), arguments.reciprocal_scale);
        clipped[i] = __fmul_rn(unscaled, arguments.clip);
    }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) unscale_clip_f32(UnscaleClipArguments arguments) {
    unscale_clip<float>(arguments);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) unscale_clip_f16(UnscaleClipArguments arguments) {
    unscale_clip<kernels::F16>(arguments);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) unscale_clip_bf16(UnscaleClipArguments arguments) {
    unscale_clip<kernels::BF16>(arguments);
}

}  // namespace gradguard::bench
