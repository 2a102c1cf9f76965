// SPDX-License-Identifier: Apache-2.0
// CUB's block-wide reductions by each of its algorithms; one value a thread, 256 threads, any number of blocks.
#include <cub/block/block_reduce.cuh>

namespace {

template <typename T, cub::BlockReduceAlgorithm algorithm>
__device__ void block_sum(const T* in, T* out) {
    using Reduce = cub::BlockReduce<T, 256, algorithm>;
    __shared__ typename Reduce::TempStorage storage;
    const T sum = Reduce(storage).Sum(in[blockIdx.x * 256 + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

}  // namespace

/// All four: out[b] = sum of the 256 values of block b.
extern "C" __global__ void warp_reductions_i32(const int* in, int* out) {
    block_sum<int, cub::BLOCK_REDUCE_WARP_REDUCTIONS>(in, out);
}
extern "C" __global__ void raking_i32(const int* in, int* out) {
    block_sum<int, cub::BLOCK_REDUCE_RAKING>(in, out);
}
extern "C" __global__ void raking_commutative_only_i32(const int* in, int* out) {
    block_sum<int, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(in, out);
}
/// Values whose sums are exact in any order.
extern "C" __global__ void warp_reductions_f32(const float* in, float* out) {
    block_sum<float, cub::BLOCK_REDUCE_WARP_REDUCTIONS>(in, out);
}
