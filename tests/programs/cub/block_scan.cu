// SPDX-License-Identifier: Apache-2.0
// CUB's block-wide scans by each of its algorithms; one value a thread, 256 threads, one block.
#include <cub/block/block_scan.cuh>

namespace {

template <cub::BlockScanAlgorithm algorithm>
__device__ void exclusive_sum(const int* in, int* out) {
    using Scan = cub::BlockScan<int, 256, algorithm>;
    __shared__ typename Scan::TempStorage storage;
    int value, total;
    Scan(storage).ExclusiveSum(in[threadIdx.x], value, total);
    out[threadIdx.x] = value;
    if (threadIdx.x == 0) out[256] = total;
}

}  // namespace

/// All three: out[i] = sum of in before i, out[256] = sum of all.
extern "C" __global__ void raking_i32(const int* in, int* out) { exclusive_sum<cub::BLOCK_SCAN_RAKING>(in, out); }
extern "C" __global__ void raking_memoize_i32(const int* in, int* out) {
    exclusive_sum<cub::BLOCK_SCAN_RAKING_MEMOIZE>(in, out);
}
extern "C" __global__ void warp_scans_i32(const int* in, int* out) {
    exclusive_sum<cub::BLOCK_SCAN_WARP_SCANS>(in, out);
}
