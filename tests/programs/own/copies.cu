// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies into shared memory as <cuda_pipeline.h> writes them: one stage, two stages, and a planted bug.
#include <cuda_pipeline.h>

/// Tiles of 32 x 32; width and height are multiples of 32.
extern "C" __global__ void transpose(const float* in, float* out, int width, int height) {
    __shared__ __align__(16) float tile[32][36];
    const int x = static_cast<int>(blockIdx.x) * 32, y = static_cast<int>(blockIdx.y) * 32;
    for (int j = static_cast<int>(threadIdx.y); j < 32; j += static_cast<int>(blockDim.y)) {
        for (int i = static_cast<int>(threadIdx.x) * 4; i < 32; i += static_cast<int>(blockDim.x) * 4)
            __pipeline_memcpy_async(&tile[j][i], &in[(y + j) * width + x + i], 16);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.y); j < 32; j += static_cast<int>(blockDim.y)) {
        for (int i = static_cast<int>(threadIdx.x); i < 32; i += static_cast<int>(blockDim.x))
            out[(x + j) * height + y + i] = tile[i][j];
    }
}

/// One block of 128 threads; while it adds one stage the next is under way. What is beyond the end is zero.
template <bool kWaits>
__device__ void add_stages(const unsigned* in, unsigned* out, int n) {
    __shared__ unsigned stage[2][128];
    const int t = static_cast<int>(threadIdx.x), stages = (n + 127) / 128;
    const auto copy = [&](int k) {
        const int i = k * 128 + t;
        __pipeline_memcpy_async(&stage[k & 1][t], &in[i < n ? i : 0], 4, i < n ? 0 : 4);
        __pipeline_commit();
    };
    unsigned sum = 0;
    copy(0);
    for (int k = 0; k < stages; ++k) {
        if (k + 1 < stages) copy(k + 1);
        if (kWaits) {
            if (k + 1 < stages)
                __pipeline_wait_prior(1);
            else
                __pipeline_wait_prior(0);
        }
        __syncthreads();
        sum += stage[k & 1][127 - t];
        __syncthreads();
    }
    out[t] = sum;
}

extern "C" __global__ void staged_sum(const unsigned* in, unsigned* out, int n) { add_stages<true>(in, out, n); }
extern "C" __global__ void staged_sum_without_wait(const unsigned* in, unsigned* out, int n) {
    add_stages<false>(in, out, n);
}
