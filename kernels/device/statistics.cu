// SPDX-License-Identifier: Apache-2.0
#include "kernels/device/load.cuh"
#include "kernels/device/params.h"
#include "kernels/device/scaled_pair.cuh"
#include "reference/contract/constants.h"

/// The scan: entry points, geometry and tree of contract section 4. The formula is in scaled_pair.cuh.
namespace gradguard::kernels {

__device__ inline Triple load_triple(const float* triples, unsigned int index) {
    const float* words = triples + index * kTripleWords;
    return {{words[0], words[1]}, __float_as_uint(words[2])};
}

__device__ inline void store_triple(float* triples, unsigned int index, Triple triple) {
    float* words = triples + index * kTripleWords;
    words[0] = triple.pair.scale;
    words[1] = triple.pair.sumsq;
    words[2] = __uint_as_float(triple.flag);
}

/// Reduces the 256 triples of a block; lane 0 returns the block's.
__device__ inline Triple reduce_block(Triple own) {
    __shared__ float scales[kThreadsPerBlock];
    __shared__ float sums[kThreadsPerBlock];
    __shared__ unsigned int flags[kThreadsPerBlock];
    const unsigned int lane = threadIdx.x;
    scales[lane] = own.pair.scale;
    sums[lane] = own.pair.sumsq;
    flags[lane] = own.flag;
    __syncthreads();
#pragma unroll 1
    for (unsigned int offset = kThreadsPerBlock / 2; offset > 0; offset /= 2) {
        if (lane < offset) {
            const unsigned int other = lane + offset;
            own = merge(own, {{scales[other], sums[other]}, flags[other]});
            scales[lane] = own.pair.scale;
            sums[lane] = own.pair.sumsq;
            flags[lane] = own.flag;
        }
        __syncthreads();
    }
    return own;
}

template <class Stored>
__device__ inline void scan(const StatisticsArguments& arguments) {
    const Stored* gradients = reinterpret_cast<const Stored*>(arguments.gradients);
    Triple own = {{0.0F, 0.0F}, kGood};
    const unsigned int stride = kThreadsPerBlock * gridDim.x;
    // 4 x elements fits in 32 bits (contract section 3) and stride in 2^18, so the index cannot wrap.
#pragma unroll 1
    for (unsigned int i = blockIdx.x * kThreadsPerBlock + threadIdx.x; i < arguments.elements; i += stride) {
        own = merge(own, element_triple(widen(gradients[i]), arguments.reciprocal_scale));
    }
    own = reduce_block(own);
    if (threadIdx.x == 0) store_triple(reinterpret_cast<float*>(arguments.triples), blockIdx.x, own);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) gradient_statistics_f32(StatisticsArguments arguments) {
    scan<float>(arguments);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) gradient_statistics_f16(StatisticsArguments arguments) {
    scan<F16>(arguments);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) gradient_statistics_bf16(StatisticsArguments arguments) {
    scan<BF16>(arguments);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) gradient_statistics_merge(MergeArguments arguments) {
    const float* triples = reinterpret_cast<const float*>(arguments.triples);
    Triple own = {{0.0F, 0.0F}, kGood};
#pragma unroll 1
    for (unsigned int i = threadIdx.x; i < arguments.blocks; i += kThreadsPerBlock) {
        own = merge(own, load_triple(triples, i));
    }
    own = reduce_block(own);
    if (threadIdx.x == 0) store_triple(reinterpret_cast<float*>(arguments.summary), 0, own);
}

}  // namespace gradguard::kernels
