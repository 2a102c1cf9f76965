// SPDX-License-Identifier: Apache-2.0
// Cooperative groups and a decoupled look-back: tiles, aggregated atomics, blocks that wait for blocks before them.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

/// Sum and maximum of each 16 threads.
extern "C" __global__ void tile_reduce(const int* in, int* out) {
    const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int sum = cg::reduce(tile, in[i], cg::plus<int>());
    const int largest = cg::reduce(tile, in[i], cg::greater<int>());
    if (tile.thread_rank() == 0) {
        out[i / 16 * 2] = sum;
        out[i / 16 * 2 + 1] = largest;
    }
}

/// Counts what is odd and keeps it, in any order: one atomic for all odd lanes of a warp.
extern "C" __global__ void keep_odd(const unsigned* in, int n, unsigned* count, unsigned* out) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n && in[i] % 2 != 0) {
        const auto active = cg::coalesced_threads();
        unsigned base = 0;
        if (active.thread_rank() == 0) base = atomicAdd(count, active.size());
        out[active.shfl(base, 0) + active.thread_rank()] = in[i];
    }
}

/// Inclusive sums over all blocks of 256 in one launch: a block publishes its total (flag 1), looks back over those
/// before it, then publishes its prefix (flag 2). `state` is flag and value in one word, so that they come together.
extern "C" __global__ void look_back_scan(const unsigned* in, unsigned* out, unsigned long long* state,
                                          unsigned* ticket) {
    __shared__ unsigned sums[256], block, before;
    const unsigned t = threadIdx.x;
    if (t == 0) block = atomicAdd(ticket, 1U);
    __syncthreads();
    sums[t] = in[block * 256 + t];
    for (unsigned d = 1; d < 256; d *= 2) {
        __syncthreads();
        const unsigned value = t >= d ? sums[t - d] : 0;
        __syncthreads();
        sums[t] += value;
    }
    __syncthreads();
    if (t == 0) {
        const unsigned total = sums[255];
        unsigned prefix = 0;
        if (block > 0) {
            atomicExch(&state[block], 1ULL << 32 | total);
            for (int k = static_cast<int>(block) - 1; k >= 0;) {
                const unsigned long long seen = atomicAdd(&state[k], 0ULL);
                if (seen >> 32 == 0) {
                    __nanosleep(20);
                    continue;
                }
                prefix += static_cast<unsigned>(seen);
                if (seen >> 32 == 2) break;
                --k;
            }
        }
        atomicExch(&state[block], 2ULL << 32 | (prefix + total));
        before = prefix;
    }
    __syncthreads();
    out[block * 256 + t] = before + sums[t];
}
