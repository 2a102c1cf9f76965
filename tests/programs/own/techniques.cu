// SPDX-License-Identifier: Apache-2.0
// What good reduction kernels are made of. Written without headers, so that nvcc and NVRTC both take it as it is.

/// out[b] = sum of the 256 values of block b: shuffles in each warp, then the first warp over what they left in shared
/// memory.
extern "C" __global__ void shuffle_reduction(const unsigned* in, unsigned* out) {
    __shared__ unsigned sums[8];
    unsigned sum = in[blockIdx.x * 256 + threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = threadIdx.x < 8 ? sums[threadIdx.x] : 0;
    for (int offset = 4; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

/// out[i] = in[i] + 1, four words at a time read and two at a time written; 4 words a thread.
extern "C" __global__ void vector_accesses(const uint4* in, uint2* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint4 four = __ldg(in + i);
    out[2 * i] = make_uint2(four.x + 1, four.y + 1);
    out[2 * i + 1] = make_uint2(four.z + 1, four.w + 1);
}

/// out[0] = sum of all values; the block that is done last adds up what the blocks left in partial[gridDim.x].
/// `counter` is 0 before and after.
extern "C" __global__ void last_block_reduction(const unsigned* in, unsigned* out, unsigned* partial,
                                                unsigned* counter) {
    __shared__ unsigned sum;
    __shared__ bool last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(counter, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last || threadIdx.x != 0) return;
    unsigned total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) total += partial[b];
    out[0] = total;
    *counter = 0;  // nobody counts any more: this block has seen the last ticket
}

/// Every block waits for all others between two phases: out[i] = in[i] times in[i] of the next block. All blocks must
/// be resident. `arrived` is 0 before.
extern "C" __global__ void grid_barrier(const unsigned* in, unsigned* out, unsigned* between, unsigned* arrived) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    between[i] = in[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (atomicAdd(arrived, 0u) < gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
    out[i] = between[i] * between[(i + blockDim.x) % (gridDim.x * blockDim.x)];
}

/// out[0] = sum, out[1] = largest, out[2] = exclusive or of in[i] * 2^20 + i, and out[3] counts, by compare and swap,
/// how many values are odd. out is 0 before.
extern "C" __global__ void wide_atomics(const unsigned* in, unsigned long long* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long value = ((unsigned long long)in[i] << 20) + i;
    atomicAdd(&out[0], value);
    atomicMax(&out[1], value);
    atomicXor(&out[2], value);
    if (in[i] % 2 == 0) return;
    unsigned long long seen = atomicAdd(&out[3], 0ull), before;
    do {
        before = seen;
        seen = atomicCAS(&out[3], before, before + 1);
    } while (seen != before);
}
