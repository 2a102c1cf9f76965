// SPDX-License-Identifier: Apache-2.0
// Programs of the kinds that reductions and optimizers are made of. compile.py turns them into the PTX beside this file.
#include <cstdint>

namespace {

__device__ unsigned warp_sum(unsigned value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFU, value, offset);
    return value;
}

__device__ unsigned block_sum(unsigned value, unsigned* shared) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = warp_sum(value);
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? shared[lane] : 0;
    return warp == 0 ? warp_sum(value) : 0;
}

}  // namespace

/// out[block] = sum of in over the block, by shuffles.
extern "C" __global__ void shuffle_reduction(const unsigned* in, unsigned* out) {
    __shared__ unsigned partial[32];
    const unsigned sum = block_sum(in[blockIdx.x * blockDim.x + threadIdx.x], partial);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

/// Four elements at once: out[i] = 3 in[i] + i.
extern "C" __global__ void vector_loads(const uint4* in, uint4* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint4 v = __ldg(in + i);
    out[i] = make_uint4(3 * v.x + 4 * i, 3 * v.y + 4 * i + 1, 3 * v.z + 4 * i + 2, 3 * v.w + 4 * i + 3);
}

/// The last block to finish adds up what the others left. count must be 0.
extern "C" __global__ void last_block_reduction(const unsigned* in, unsigned* partial, unsigned* count, unsigned* out) {
    __shared__ unsigned shared[32];
    __shared__ bool is_last;
    const unsigned sum = block_sum(in[blockIdx.x * blockDim.x + threadIdx.x], shared);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicAdd(count, 1U) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    unsigned total = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) total += static_cast<volatile unsigned*>(partial)[i];
    total = block_sum(total, shared);
    if (threadIdx.x == 0) *out = total;
}

/// Blocks wait for each other `rounds` times and pass values on. arrived must be 0; all blocks must be resident.
extern "C" __global__ void grid_barrier(unsigned* values, unsigned* arrived, unsigned rounds) {
    for (unsigned round = 0; round < rounds; ++round) {
        if (threadIdx.x == 0) {
            volatile unsigned* const from = values + round * gridDim.x;
            volatile unsigned* const to = values + (round + 1) * gridDim.x;
            to[blockIdx.x] = from[(blockIdx.x + 1) % gridDim.x] + 1;
            __threadfence();
            atomicAdd(arrived, 1U);
            while (atomicAdd(arrived, 0U) < (round + 1) * gridDim.x) {
            }
            __threadfence();
        }
        __syncthreads();
    }
}

/// words[0] sum, [1] greatest, [2] least, [3] or, [4] xor, [5] by compare and swap: sum of squares.
extern "C" __global__ void wide_atomics(const unsigned long long* in, unsigned long long* words) {
    const unsigned long long value = in[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(words, value);
    atomicMax(words + 1, value);
    atomicMin(words + 2, value);
    atomicOr(words + 3, value);
    atomicXor(words + 4, value);
    unsigned long long seen = words[5], wanted;
    do {
        wanted = seen;
        seen = atomicCAS(words + 5, wanted, wanted + value * value);
    } while (seen != wanted);
}

/// out[thread] = threads of the block whose value has bit 0, * 4 + whether all have bit 1, * 2 + whether any has bit 2.
extern "C" __global__ void barrier_votes(const unsigned* in, unsigned* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned count = __syncthreads_count(in[i] & 1U);
    const unsigned all = __syncthreads_and(in[i] & 2U) != 0;
    const unsigned any = __syncthreads_or(in[i] & 4U) != 0;
    out[i] = count * 4 + all * 2 + any;
}

/// A permutation that a thread keeps in local memory, indexed by data.
extern "C" __global__ void local_arrays(const unsigned* in, unsigned* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned order[16];
    for (unsigned k = 0; k < 16; ++k) order[k] = k;
    unsigned x = in[i];
    for (unsigned k = 15; k > 0; --k) {
        const unsigned other = x % (k + 1);
        x = x * 1664525U + 1013904223U;
        const unsigned old = order[k];
        order[k] = order[other];
        order[other] = old;
    }
    unsigned digits = 0;
    for (unsigned k = 0; k < 8; ++k) digits = digits * 16 + order[k];
    out[i] = digits;
}

/// A dense switch: a table of branches where the compiler likes one.
extern "C" __global__ void switches(const unsigned* in, unsigned* out) {
    extern __shared__ unsigned dynamic[];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = in[i];
    switch (x % 8) {
        case 0: x = x * 3 + 1; break;
        case 1: x = x ^ (x >> 3); break;
        case 2: x = __popc(x); break;
        case 3: x = __clz(x); break;
        case 4: x = x - 77; break;
        case 5: x = __brev(x); break;
        case 6: x = x | 0x10101010U; break;
        default: x = ~x; break;
    }
    dynamic[threadIdx.x] = x;
    __syncthreads();
    out[i] = dynamic[threadIdx.x ^ 1U];
}
